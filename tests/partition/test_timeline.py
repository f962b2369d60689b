"""Counts over time, and alarms per day of event time."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.model import Op, Operations, Reason
from npstream.model.outcome import empty_outcome
from npstream.partition.timeline import HOUR_MS, HOURS, MINUTE_MS, MINUTES, PACKED_MAX, Timeline
from npstream.records import COUNTED_OVER_TIME
from tests.partition.builders import config, mixed, processor, split

START = 1_700_000_000_000


class Done(NamedTuple):
    """One operation, and what came of it."""

    op: Op
    stamp: int = 0
    y: int = 0
    decision: int = -1
    reason: Reason = Reason.SCORE
    warm: bool = False


def count(timeline: Timeline, done: Sequence[Done]) -> Timeline:
    """After these operations, in one call."""
    n = len(done)
    code, y, decision, reason, warm = (
        np.array([getattr(item, name) for item in done], np.int8) for name in ("op", "y", "decision", "reason", "warm")
    )
    operations = Operations(code, np.zeros((n, 2), np.float32), np.zeros(n), y, np.full(n, -1, np.int32))
    outcome = empty_outcome(n)._replace(decision=decision, reason=reason, warm=warm)
    timeline.count(np.array([item.stamp for item in done], np.int64), operations, outcome)
    return timeline


def decided(stamps: Sequence[int], decisions: Sequence[int]) -> Timeline:
    """After observations at these times."""
    pairs = zip(stamps, decisions, strict=True)
    return count(Timeline(), [Done(Op.SCORE, stamp, decision=decision) for stamp, decision in pairs])


def plain(done: Sequence[Done]) -> tuple[int, Counter[tuple[int, str]], Counter[tuple[int, str]]]:
    """The oracle: every count by its minute and its hour since the epoch, and the newest time."""
    newest, far, minutes, hours = 0, None, Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for item in done:
        decides, names = item.op in (Op.SCORE, Op.SCORE_LEARN), list[str]()
        if item.op == Op.RELEASE or (not 946_684_800_000 <= item.stamp < 4_102_444_800_000 if decides else newest == 0):
            continue
        at = item.stamp if decides else newest
        if decides:
            is_far, before = newest > 0 and at > newest + HOUR_MS, far
            far = at if is_far else None
            if is_far:
                at = newest if before is None else max(newest, min(at, before))
            newest = max(newest, at)
        if decides:
            names.append("decisions")
            alarm, held = item.decision > 0, item.reason == Reason.BUDGET
            names += ["warmup"] if item.warm else ["alarms"] if alarm else ["withheld"] if held else []
        if item.op != Op.SCORE and not item.warm:
            names.append("targets" if item.y > 0 else "non_targets")
            if item.decision > 0:
                names.append("detections" if item.y > 0 else "false_alarms")
        minutes.update((at // MINUTE_MS, name) for name in names)
        hours.update((at // HOUR_MS, name) for name in names)
    return newest, minutes, hours


stamps = st.integers(START, START + 40 * HOUR_MS) | st.integers(-(2**62), 2**62)
operations = st.builds(
    Done,
    st.sampled_from([Op.SCORE, Op.SCORE_LEARN, Op.LEARN, Op.RELEASE, Op.CORRECT]),
    stamps,
    st.sampled_from([-1, 1]),
    st.sampled_from([-1, 1]),
    st.sampled_from([Reason.SCORE, Reason.BUDGET, Reason.WARMUP]),
    st.booleans(),
)


@given(st.lists(operations))
def test_the_counts_are_those_of_the_oracle(done: list[Done]) -> None:
    """By minute while they are of the last day, by hour while of the last month, whatever the event times."""
    newest, minutes, hours = plain(done)
    found = count(Timeline(), done).copy()

    assert found.newest_ms == newest
    for ring, unit, expected in ((found.minutes, MINUTE_MS, minutes), (found.hours, HOUR_MS, hours)):
        size, now = len(ring), newest // unit
        kept = {key: n for key, n in expected.items() if now - size < key[0] <= now}
        rows = {(now - back): ring[(now - back) % size] for back in range(size)} if newest else {}
        assert kept == {
            (at, name): n
            for at, row in rows.items()
            for name, n in zip(COUNTED_OVER_TIME, row.tolist(), strict=True)
            if n
        }


@given(st.lists(operations))
def test_batches_and_restores_leave_no_trace(done: list[Done]) -> None:
    """One call, or one for each operation with its state through a snapshot: the same."""
    parts = Timeline()
    for item in done:
        parts = Timeline.load(count(parts, [item]).dump())

    assert parts.dump() == count(Timeline(), done).dump()


@given(st.lists(st.integers(0, 2**31 - 1) | st.just(0), max_size=40), st.randoms(use_true_random=False))
def test_any_counts_come_back(numbers: list[int], random: object) -> None:
    """The largest too, and runs of zeros that cross from one kind to the next."""
    timeline = decided([START], [1])
    counts = timeline.copy()
    flat = timeline._minutes.ravel()
    flat[[random.randrange(flat.size) for _ in numbers]] = numbers  # type: ignore[attr-defined]
    again = Timeline.load(timeline.dump()).copy()

    assert (again.minutes == timeline._minutes).all()
    assert (again.hours == counts.hours).all()
    assert len(timeline.dump()) <= PACKED_MAX


def test_damaged_counts_are_refused() -> None:
    """Cut, extended, or full of continued numbers."""
    whole = decided([START, START + HOUR_MS], [1, 1]).dump()
    for damaged in (b"", whole[:23], whole[:-1], whole + b"\x01", whole[:24] + b"\xff" * 9, whole + b"\x00\x80"):
        with pytest.raises(ValueError, match="damaged"):
            Timeline.load(damaged)


def test_the_labels_of_the_processor_are_counted_as_they_came() -> None:
    """Through the processor: its own counters since the first event, warm-up left out, in any batches."""
    records = [record._replace(timestamp_ms=START + 20_000 * i) for i, record in enumerate(mixed(2000))]
    machine, parts = processor(config()), processor(config())
    machine.process(records)
    for batch in split(records, 7):
        parts.process(batch)
    found = dict(zip(COUNTED_OVER_TIME, machine.timeline.copy().minutes.sum(axis=0).tolist(), strict=True))
    rates, tally = machine.rates(), machine.tally

    assert 20_000 * len(records) < MINUTES * MINUTE_MS < HOURS * HOUR_MS
    assert machine.timeline.dump() == parts.timeline.dump()
    assert found["decisions"] == tally.decisions
    assert (found["alarms"], found["decisions"] - found["warmup"]) == tuple(rates.alarm_rate.lifetime)
    assert (found["false_alarms"], found["non_targets"]) == tuple(rates.fpr.lifetime)
    assert (found["detections"], found["targets"]) == tuple(rates.tpr.lifetime)
    assert found["withheld"] == tally.withheld_budget
    assert found["warmup"] > 0


def test_a_day_of_a_busy_partition_is_small_in_a_snapshot() -> None:
    """A month with 20 events a second, of which a few are alarms: a quarter of the room that is reserved."""
    rng = np.random.default_rng(1)
    timeline = decided([START], [1])
    timeline._minutes[:] = rng.poisson([1200, 0, 12, 0, 1100, 11, 60, 50], timeline._minutes.shape)
    timeline._hours[:] = rng.poisson([72_000, 0, 720, 2, 66_000, 660, 3600, 3000], timeline._hours.shape)

    assert len(timeline.dump()) < PACKED_MAX / 3


@pytest.mark.parametrize("step", [60_000, 600_000])
def test_a_steady_rate_is_found_however_long_it_lasts(step: int) -> None:
    """One alarm in five events, one event each so many milliseconds; only the last day counts."""
    n = 3 * 24 * HOUR_MS // step
    made = decided([START + i * step for i in range(n)], [1 if i % 5 == 0 else -1 for i in range(n)])

    assert made.alarms_per_day == pytest.approx(24 * HOUR_MS / step / 5, rel=0.02)


def test_the_rate_of_today_is_not_that_of_yesterday() -> None:
    """A day with an alarm each minute, then one with an alarm each hour."""
    busy = [START + 60_000 * i for i in range(24 * 60)]
    calm = [busy[-1] + HOUR_MS * (1 + i) for i in range(24)]

    assert decided(busy + calm, [1] * (len(busy) + len(calm))).alarms_per_day == pytest.approx(24, rel=0.05)


def test_nothing_is_said_before_an_hour_or_without_event_times() -> None:
    """Zero, negative and tiny timestamps are none; one hour is the least."""
    assert decided([0, -5, 12, 946_684_799_999], [1, 1, 1, 1]).alarms_per_day is None
    assert decided([START, START + HOUR_MS - 1], [1, 1]).alarms_per_day is None
    assert decided([START, 0, START + HOUR_MS], [1, 1, -1]).alarms_per_day == pytest.approx(24)


def test_one_far_future_event_moves_nothing() -> None:
    """A wrong clock somewhere does not empty the day: what follows says that it was wrong."""
    times = [START + 60_000 * i for i in range(300)]
    calm = decided(times, [1] * 300).alarms_per_day
    disturbed = decided([*times[:200], 4 * 10**12, *times[200:]], [1] * 200 + [-1] + [1] * 100).alarms_per_day

    assert disturbed == calm == pytest.approx(24 * 60, rel=0.01)


@pytest.mark.parametrize("pause", [3 * HOUR_MS, 50 * HOUR_MS, 90 * 24 * HOUR_MS])
def test_after_a_pause_the_second_event_is_where_it_belongs(pause: int) -> None:
    """Nights, weekends and months without events: one event counts before the pause, the others after it."""
    begin = START + pause
    found = decided([START, begin, begin + 1000, begin + 2000], [1] * 4).copy()
    at = {minute: int(row[COUNTED_OVER_TIME.index("alarms")]) for minute, row in enumerate(found.minutes) if row.any()}

    assert found.newest_ms == begin + 2000
    assert at[begin // MINUTE_MS % MINUTES] == 2
    assert sum(at.values()) == (4 if pause < MINUTES * MINUTE_MS else 2)


def test_a_partition_with_an_event_in_two_hours_keeps_time() -> None:
    """Each event confirms the one before it."""
    times = [START + 2 * HOUR_MS * i for i in range(100)]

    assert decided(times, [1] * 100).copy().newest_ms == times[-2]
    assert decided(times, [1] * 100).alarms_per_day == pytest.approx(12, rel=0.1)
