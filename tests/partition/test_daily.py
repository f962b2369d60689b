"""Alarms per day of event time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.partition.daily import Daily

HOUR = 3_600_000
START = 1_700_000_000_000


def counted(stamps: list[int], decisions: list[int]) -> Daily:
    """After these decisions."""
    made = Daily()
    made.count(np.array(stamps, np.int64), np.array(decisions, np.int8))
    return made


@pytest.mark.parametrize("step", [60_000, 600_000])
def test_a_steady_rate_is_found_however_long_it_lasts(step: int) -> None:
    """One alarm in five events, one event each so many milliseconds; only the last day counts."""
    n = 3 * 24 * HOUR // step
    made = counted([START + i * step for i in range(n)], [1 if i % 5 == 0 else -1 for i in range(n)])

    assert made.alarms_per_day == pytest.approx(24 * HOUR / step / 5, rel=0.02)


def test_the_rate_of_today_is_not_that_of_yesterday() -> None:
    """A day with an alarm each minute, then one with an alarm each hour."""
    busy = [START + 60_000 * i for i in range(24 * 60)]
    calm = [busy[-1] + HOUR * (1 + i) for i in range(24)]

    assert counted(busy + calm, [1] * (len(busy) + len(calm))).alarms_per_day == pytest.approx(24, rel=0.05)


def test_nothing_is_said_before_an_hour_or_without_event_times() -> None:
    """Zero, negative and tiny timestamps are none; one hour is the least."""
    assert counted([0, -5, 12, 946_684_799_999], [1, 1, 1, 1]).alarms_per_day is None
    assert counted([START, START + HOUR - 1], [1, 1]).alarms_per_day is None
    assert counted([START, 0, START + HOUR], [1, 1, -1]).alarms_per_day == pytest.approx(24)


def test_one_far_future_event_ages_by_an_hour() -> None:
    """A wrong clock somewhere does not empty the day."""
    stamps = [START + 60_000 * i for i in range(300)]
    calm = counted(stamps, [1] * 300).alarms_per_day
    disturbed = counted([*stamps, 2**62], [1] * 300 + [-1]).alarms_per_day

    assert calm == pytest.approx(24 * 60, rel=0.01)
    assert disturbed == pytest.approx(24 * 60 * 299 / 359, rel=0.01)


@given(st.lists(st.tuples(st.integers(-(2**62), 2**62) | st.integers(START, START + 99 * HOUR), st.booleans())))
def test_batches_and_restores_leave_no_trace(events: list[tuple[int, bool]]) -> None:
    """One call, or one for each event with its state through a snapshot: the same."""
    stamps, decisions = [stamp for stamp, _ in events], [1 if alarm else -1 for _, alarm in events]
    parts = Daily()
    for stamp, decision in zip(stamps, decisions, strict=True):
        parts.count(np.array([stamp]), np.array([decision], np.int8))
        parts = Daily.load(parts.dump())

    assert parts.dump() == counted(stamps, decisions).dump()
