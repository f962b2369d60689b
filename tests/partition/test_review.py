"""The review sample: who is in it, what its labels count, and what they say of all observations."""

from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.codec.decisions import Decision, decode_decision
from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.errors import SettingsError
from npstream.model import Params
from npstream.partition import LabelConfig, PartitionConfig, PartitionProcessor
from npstream.partition.review import ReviewSample, places
from npstream.records import Record, SampleLabels
from npstream.report.intervals import sampled
from tests.partition.builders import D, config, mixed, point, processor, record, split


def reviewing(share: float, **params: Any) -> PartitionConfig:
    """A model whose waiting observations are reviewed by this share."""
    chosen = Params.from_dict({"d": D, "D": 8, "tau": 0.1, "budget": 5.0, "control": "alarm_rate"} | params)
    return config(params=chosen, labels=LabelConfig(buffer_max=4000, review=share))


def observations(n: int, seed: int = 0, first: int = 0) -> list[Record]:
    """Events without a label; `e0`, `e1`, ... are their ids."""
    rng = np.random.default_rng(seed)
    return [record(i, {"id": f"e{i}", "x": point(rng, -1)}) for i in range(first, first + n)]


def labels(ids: list[str], y: int, offset: int) -> list[Record]:
    """A label for each id."""
    return [record(offset + i, {"id": each, "y": y}) for i, each in enumerate(ids)]


def decided(machine: PartitionProcessor, records: list[Record], size: int = 10_000) -> list[Decision]:
    """What is published for these records, in batches."""
    return [decode_decision(o.value) for part in split(records, size) for o in machine.process(part).outputs]


def test_a_random_share_without_alarm_asks_for_a_review() -> None:
    """Near the share asked for, with its probability in the decision, and never an alarm."""
    found = decided(processor(reviewing(0.2)), observations(3000))
    asked = [each for each in found if each.review]

    assert len(asked) / sum(each.decision < 0 for each in found) == pytest.approx(0.2, abs=0.03)
    assert {(each.decision, each.review_probability) for each in asked} == {(-1, 0.2)}
    assert all(each.review_probability is None for each in found if not each.review)


def test_the_sample_follows_from_place_and_seed_alone() -> None:
    """The same decisions in any batching, other ones under another seed; ids play no part."""
    chosen = []
    for seed, size, first in ((0, 10_000, 0), (0, 7, 5000), (1, 10_000, 0)):
        found = decided(processor(reviewing(0.2, seed=seed)), observations(1000, first=first), size)
        places_of = places(0, 1000, 0.2, seed, 0)
        assert [each.review for each in found] == [
            bool(place) and each.decision < 0 for place, each in zip(places_of, found, strict=True)
        ]
        chosen.append({*np.flatnonzero(places_of).tolist()})

    assert chosen[0] == chosen[1]
    assert len(chosen[0] & chosen[2]) < 0.5 * len(chosen[0])


def test_partitions_have_samples_of_their_own() -> None:
    """Or all of them would ask at the same moment, and whoever sees one would know the others."""
    using = reviewing(0.2, seed=5)
    asked = [[each.review for each in decided(processor(using, partition), observations(500))] for partition in (0, 3)]

    assert all(80 < sum(each) < 110 for each in asked)
    assert np.mean(np.array(asked[0]) & np.array(asked[1])) < 0.1


def test_a_retry_asks_for_no_review_and_the_label_counts_for_the_first() -> None:
    """A label has one observation to count for; what is asked of the desk is what counts."""
    machine = processor(reviewing(0.2))
    twice = [each for first in observations(100) for each in (first, first)]
    sent = [each._replace(offset=i) for i, each in enumerate(twice)]
    found = decided(machine, sent)
    asked = [str(each.id) for each in found if each.review]
    machine.process(labels(asked, -1, len(sent)))
    counts = machine.review.labels()

    assert 10 < len(asked) < 40
    assert not any(each.review for each in found[1::2])
    assert machine.review.requested == len(asked)
    assert counts is not None
    assert sum(labelled for labelled, share in counts.other_non_targets if share == 0.2) == len(asked)


def test_reviews_are_those_of_their_events_though_thousands_expire_between_them() -> None:
    """A batch of more operations than one call lays out, decided by decision: as in small batches."""
    using = replace(reviewing(0.5), labels=LabelConfig(buffer_max=2000, review=0.5, expire_seconds=1.0))
    waiting = [each._replace(timestamp_ms=5) for each in observations(1500)]
    # Time moves by 1% of a second for each event: in the middle of these all that waits is due.
    late = [each._replace(timestamp_ms=10**6) for each in observations(150, first=1500)]
    whole, parts = processor(using), processor(using)
    whole.process(waiting), parts.process(waiting)

    assert decided(whole, late) == decided(parts, late, 10)
    assert whole.tally.observations_expired > 1500
    assert whole.review.requested == parts.review.requested


def test_decisions_on_labelled_events_take_a_place_but_are_not_reviewed() -> None:
    """Of each three events one brings its label, another one is a label: the latter has no decision, so no place."""
    rng = np.random.default_rng(0)
    kinds: list[dict[str, Any]] = [{"y": -1}, {}, {"kind": "label", "y": 1}]
    events = [record(i, {"id": f"e{i}", "x": point(rng, -1)} | kinds[i % 3]) for i in range(900)]
    found = decided(processor(reviewing(0.25)), events)
    expected = places(0, 600, 0.25, 0, 0) & (np.arange(600) % 2 == 1) & np.array([each.decision < 0 for each in found])

    assert expected.sum() > 50
    assert [each.review for each in found] == expected.tolist()


@given(
    st.integers(0, 10**9),
    st.integers(0, 2000),
    st.floats(0, 0.999, exclude_min=True),
    st.integers(0, 2**63 - 1),
    st.data(),
)
def test_the_sample_is_spread_evenly_however_it_is_asked_for(
    first: int, count: int, share: float, seed: int, data: st.DataObject
) -> None:
    """A stretch has at most one in each block that it meets; where the stretch is cut plays no part."""
    cut = data.draw(st.integers(0, count))
    whole = places(first, count, share, seed, 0)
    parts = [places(first, cut, share, seed, 0), places(first + cut, count - cut, share, seed, 0)]

    assert whole.tolist() == np.concatenate(parts).tolist()
    assert whole.sum() <= count // int(min(1 / share, 2001)) + 2


@pytest.mark.parametrize("size", [2, 50, 500])
def test_a_whole_number_of_decisions_has_one_in_each(size: int) -> None:
    """So that chance neither doubles the sample for a while nor leaves it out."""
    found = places(7 * size, 40 * size, 1 / size, 3, 0).reshape(40, size)

    assert found.sum(axis=1).tolist() == [1] * 40
    assert len({*found.argmax(axis=1).tolist()}) > min(size, 20) / 2


def test_every_place_is_as_likely_as_the_share_says() -> None:
    """Over many seeds; so that 1/share is the right weight wherever in its stretch a decision is."""
    for share in (0.08, 0.4):  # 12 and 2 in a block, so that one in 25 and one in 5 of them has none
        often = np.mean([places(0, 40, share, seed, 0) for seed in range(4000)], axis=0)

        assert np.abs(often - share).max() < 4.5 * (share * (1 - share) / 4000) ** 0.5


def test_where_the_expired_are_learned_a_review_teaches_no_more_than_they_do() -> None:
    """The observations that it stands for come themselves; in rates it counts the same as ever."""
    learned = {}
    for on_expiry in ("drop", "negative"):
        rules = LabelConfig(buffer_max=4000, review=0.05, on_expiry=on_expiry)
        machine = processor(replace(reviewing(0.05), labels=rules))
        found = decided(machine, observations(400))
        machine.process(labels([str(each.id) for each in found if each.review], -1, 400))
        learned[on_expiry] = machine

    assert learned["drop"].review.labels() == learned["negative"].review.labels()
    assert learned["drop"].review.sampling.learned_max == np.inf
    assert learned["negative"].review.sampling.learned_max == 1.0
    assert learned["drop"].model.digest() != learned["negative"].model.digest()


def test_without_a_sample_nothing_is_added() -> None:
    """Decisions have no further field, and the snapshot holds no share."""
    machine = processor(config())
    outputs = machine.process(observations(50)).outputs

    assert all(output.value is not None and b"review" not in output.value for output in outputs)
    assert machine.snapshot().meta["review"]["shares"] == []
    assert machine.review.labels() is None


@pytest.mark.parametrize("control", ["fpr", "alarm_rate"])
@pytest.mark.parametrize("size", [1, 7, 500])
def test_batches_and_restores_leave_no_trace(control: str, size: int) -> None:
    """Outputs and snapshot bytes are those of one batch, also through a snapshot after every batch."""
    records = observations(400)
    ids = [f"e{i}" for i in range(0, 400, 3)]
    records += labels(ids, -1, 400) + observations(200, seed=1, first=1000) + labels(["e1001", "e1002"], 1, 2000)
    whole, parts = processor(reviewing(0.3, control=control)), processor(reviewing(0.3, control=control))
    expected = whole.process(records).outputs
    found = []
    for part in split(records, size):
        found += parts.process(part).outputs
        parts = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(parts.snapshot())))

    assert found == expected
    assert encode_snapshot(parts.snapshot()) == encode_snapshot(whole.snapshot())
    assert parts.review.labels() == whole.review.labels()


def test_what_a_label_counts() -> None:
    """One on an alarm, 1/share on a reviewed observation, nothing in the sample's rates on any other."""
    machine = processor(reviewing(0.25))
    found = decided(machine, observations(1000))
    kinds = {
        "alarm": [str(each.id) for each in found if each.decision > 0],
        "reviewed": [str(each.id) for each in found if each.review],
        "other": [str(each.id) for each in found if each.decision < 0 and not each.review],
    }
    offset = 1000
    for ids, y in ((kinds["alarm"], -1), (kinds["reviewed"], -1), (kinds["other"][:200], 1)):
        machine.process(labels(ids, y, offset))
        offset += len(ids)
    sample = machine.review.labels()

    assert sample is not None
    reviewed = ((0, 1.0), (len(kinds["reviewed"]), 0.25))
    assert sample == SampleLabels(len(kinds["alarm"]), 0, reviewed, ((0, 1.0), (0, 0.25)))
    assert machine.model.positives == 200  # learned from and counted, but not as a sample of anything
    fpr, (low, high) = sampled(sample.false_alarms, sample.other_non_targets)
    truth = len(kinds["alarm"]) / 1000
    assert low < truth < high
    assert fpr == pytest.approx(truth, rel=0.2)


def test_an_observation_keeps_the_probability_it_was_decided_under() -> None:
    """The share is changed while it waits: its label still counts by the old one."""
    machine = processor(reviewing(0.5))
    before = [str(each.id) for each in decided(machine, observations(100)) if each.review]
    machine.reconfigure(reviewing(0.1))
    machine = PartitionProcessor.from_snapshot(machine.snapshot())
    after = [str(each.id) for each in decided(machine, observations(300, first=500)) if each.review]
    machine.process(labels(before + after, -1, 900))
    sample = machine.review.labels()

    assert sample is not None
    assert sample.other_non_targets == ((0, 1.0), (len(before), 0.5), (len(after), 0.1))
    machine.reconfigure(reviewing(0.0))
    assert not any(each.review for each in decided(machine, observations(100, first=2000)))


def test_a_restart_before_the_first_share_leaves_no_trace() -> None:
    """Labels of alarms count from the first event on, so that a restart in between is not seen by a later proof."""
    whole, early = processor(config()), mixed(600)
    whole.process(early)
    parts = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(whole.snapshot())))
    for machine in (whole, parts):
        machine.reconfigure(config(labels=LabelConfig(buffer_max=50, expire_events=200, review=0.2)))

    counts = whole.review.labels()
    assert counts is not None
    assert sum(counts[:2]) > 0
    assert parts.review.labels() == counts
    assert parts.proof() == whole.proof()


def test_too_many_different_shares_are_refused() -> None:
    """There is room for 117; one that was in force before may come back."""
    sample = ReviewSample()
    for k in range(117):
        sample.adopt(LabelConfig(review=(k + 1) / 1000), Params(d=2, tau=0.1))
    with pytest.raises(SettingsError, match="use an earlier one"):
        sample.adopt(LabelConfig(review=0.9), Params(d=2, tau=0.1))
    sample.adopt(LabelConfig(review=0.001), Params(d=2, tau=0.1))

    assert len(sample.shares) == 117


def desk(share: float, seed: int, n: int = 6000) -> tuple[PartitionProcessor, float]:
    """A stream of non-targets of which only alarms and the sample are labelled, at once; and the true rate."""
    machine = processor(reviewing(share))
    alarms, offset = 0, 0
    rng = np.random.default_rng(seed)
    for begin in range(0, n, 100):
        events = [record(offset + i, {"id": f"e{begin + i}", "x": point(rng, -1)}) for i in range(100)]
        found = decided(machine, events)
        looked_at = [str(each.id) for each in found if each.decision > 0 or each.review]
        alarms += sum(each.decision > 0 for each in found)
        machine.process(labels(looked_at, -1, offset + 100))
        offset += 100 + len(looked_at)
    return machine, alarms / n


def test_rates_are_right_though_only_alarms_and_the_sample_are_looked_at() -> None:
    """The interval covers the truth in nearly every run; the plain rate is far from it in all."""
    covered = 0
    for seed in range(12):
        machine, truth = desk(0.05, seed)
        sample = machine.review.labels()
        assert sample is not None
        _, (low, high) = sampled(sample.false_alarms, sample.other_non_targets)
        covered += low <= truth <= high
        assert machine.model.false_alarms / machine.model.negatives > 3 * truth

    assert covered >= 10


def test_a_damaged_sample_is_refused() -> None:
    """State that no run could have left is not taken."""
    sample = ReviewSample()
    sample.adopt(LabelConfig(review=0.1), Params(d=2, tau=0.1))
    good = sample.dump()
    damages: list[dict[str, Any]] = [
        {"shares": []},
        {"shares": [2.0]},
        {"labelled": [[0, 0]]},
        {"labelled": [[0, 0], [0, 0], [-1, 0]]},
    ]
    for bad in damages:
        with pytest.raises(ValueError, match="review sample"):
            ReviewSample.load(good | bad)

    assert ReviewSample.load(orjson.loads(orjson.dumps(good))).dump() == good
