"""Alarms per day of event time, from counts by the hour over the last 24."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from npstream.arrays import Ints, Signs
from npstream.jit import jit

_HOUR_MS = 3_600_000
_HOURS = 24
_PLAUSIBLE_MS = 946_684_800_000
"""Event times before 2000 are none: zero, or another unit."""
_FIRST, _NEWEST = range(2)


class Daily:
    """When a partition's events happened, by their own account, and how many alarms each of the last hours had."""

    def __init__(self) -> None:
        self._clock = np.zeros(2, np.int64)
        self._alarms = np.zeros(_HOURS, np.int64)

    def count(self, stamps: Ints, decisions: Signs) -> None:
        """Take note of published decisions, in their order."""
        _count(stamps, decisions, self._clock, self._alarms)

    @property
    def alarms_per_day(self) -> float | None:
        """None before an hour of event time has passed, or where event times are none."""
        first, newest = self._clock.tolist()
        span = newest - max(first, (newest // _HOUR_MS - (_HOURS - 1)) * _HOUR_MS)
        return None if span < _HOUR_MS else float(self._alarms.sum()) * _HOURS * _HOUR_MS / span

    def dump(self) -> list[int]:
        """The state, ready for JSON."""
        return [*self._clock.tolist(), *self._alarms.tolist()]

    @classmethod
    def load(cls, dumped: Sequence[int]) -> Self:
        """The inverse of `dump`. Raises ValueError when it is none."""
        made = cls()
        made._clock[:], made._alarms[:] = dumped[:2], dumped[2:]
        return made


@jit
def _count(stamps: Ints, decisions: Signs, clock: Ints, alarms: Ints) -> None:
    """One far-future event time moves the clock by an hour, no more."""
    for i in range(stamps.size):
        stamp = stamps[i]
        if stamp < _PLAUSIBLE_MS:
            continue
        if clock[_NEWEST] == 0:
            clock[_FIRST] = clock[_NEWEST] = stamp
        if stamp > clock[_NEWEST]:
            stamp = min(stamp, clock[_NEWEST] + _HOUR_MS)
            if stamp // _HOUR_MS > clock[_NEWEST] // _HOUR_MS:
                alarms[stamp // _HOUR_MS % _HOURS] = 0
            clock[_NEWEST] = stamp
        hour = stamp // _HOUR_MS
        if decisions[i] > 0 and hour > clock[_NEWEST] // _HOUR_MS - _HOURS:
            alarms[hour % _HOURS] += 1
