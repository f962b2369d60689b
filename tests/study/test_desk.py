"""The chargeback desk: who is labelled when, and what the gates make of the rows."""

from dataclasses import replace

import numpy as np
import pytest

from npstream.study import chargebacks, desk
from npstream.study.chargebacks import ALARM_RATE, SAMPLE, SEEDED, VERDICTS, desks, run, stream, week_of

EVENTS = 20_000


def test_the_stream_is_what_its_seed_says() -> None:
    """Share of targets, verdicts and returns are those asked for; another seed is another stream."""
    truth, history = stream(0.01, 3, EVENTS)
    again, other = stream(0.01, 3, EVENTS)[0], stream(0.01, 4, EVENTS)[0]

    assert (len(truth.y), len(history.y)) == (EVENTS, EVENTS // 10)
    assert (truth.y > 0).mean() == pytest.approx(0.01, abs=0.003)
    assert (truth.verdict == truth.y).mean() == pytest.approx(0.9, abs=0.01)
    assert truth.returned.mean() == pytest.approx(0.8, abs=0.01)
    np.testing.assert_array_equal(truth.x, again.x)
    assert (truth.x != other.x).any()


def test_only_alarms_the_sample_and_returned_targets_are_labelled() -> None:
    """Labels of the sample are the verdicts, an hour later, on all alarms and on those in the sample; no others."""
    truth, history = stream(0.01, 1, EVENTS)
    chosen = replace(next(each for each in desks(1) if each.name == ALARM_RATE), expired_are_negative=False)
    found = run(chosen, truth, history)
    hour = EVENTS // (24 * chargebacks.DAYS)
    looked_at = (found.decision > 0) | truth.sampled
    # The hour in which the last whole week ends is decided to its end before the labels are counted.
    end = -(-week_of(EVENTS) * len(found.sample) // hour) * hour - hour
    due = np.flatnonzero(looked_at[:end])
    alarm, target = found.decision[due] > 0, truth.verdict[due] > 0

    expected = [[(kind & ~target).sum(), (kind & target).sum()] for kind in (alarm, ~alarm)]
    counted = found.sample[-1]
    assert counted[1].tolist() == [0, 0]
    assert counted[[0, 2]].tolist() == np.array(expected).tolist()


def test_without_a_sample_verdicts_on_alarms_silence_the_desk() -> None:
    """Every labelled non-target is an alarm, so the threshold climbs until there is none."""
    truth, history = stream(0.01, 1, EVENTS)
    found = run(next(each for each in desks(1) if each.name == VERDICTS), truth, history)

    assert (found.decision[: EVENTS // 4] > 0).any()
    assert (found.decision[EVENTS // 2 :] == -1).all()


def rows(**changes: float) -> list[dict[str, str]]:
    """One run of every setting that keeps all promises, except for `changes`."""
    kept = {
        "events": chargebacks.EVENTS,
        "first_day": 9,
        "alarm_rate": 0.0096,
        "week_min": 0.009,
        "week_max": 0.0101,
        "overdraft": 20,
        "fpr_half": 0.0095,
        "tpr_third": 0.5,
        "tpr_reference": 0.55,
        "weeks": 17,
        "covered": 17,
    }
    shown = [
        {"setting": name, "share": share, "seed": 0, **(kept | changes)}
        for name in (ALARM_RATE, SAMPLE, SEEDED)
        for share in desk.SHARES
    ]
    shown += [{"setting": VERDICTS, "share": share, "seed": 0, **kept, "covered": 0} for share in desk.SHARES]
    return [{name: str(value) for name, value in row.items()} for row in shown]


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, 0),
        ({"first_day": 0}, 1),
        ({"alarm_rate": 0.0104}, 1),
        ({"week_min": 0.007}, 1),
        ({"overdraft": 42}, 1),
        ({"fpr_half": 0.012}, 2),
        ({"tpr_third": 0.4}, 6),
        ({"covered": 15}, 3),
    ],
)
def test_each_promise_can_be_broken(change: dict[str, float], failing: int) -> None:
    """A figure outside its bar fails the gates that are about it, and no others."""
    gates = desk.report(rows(**change)).gates

    assert sum(not gate.passed for gate in gates) == failing


def test_a_short_run_has_no_gates() -> None:
    """A tenth of the stream proves nothing about the rates of a week."""
    assert desk.report(rows(events=EVENTS)).gates == []
