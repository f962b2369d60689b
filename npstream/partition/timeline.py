"""What came of a partition's events over time: counts by the minute of the last day, by the hour of the last month.

Time is that of the events, so that a replay leads to the same counts. A decision
counts where its event lies; a label when it comes, among the decisions of that moment,
and if it is overruled later, it is not taken back. Labels of what was decided in
warm-up count nowhere: there could be no alarm among them.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Counts, Ints, Signs
from npstream.jit import jit, jit_inline
from npstream.model import Op, Operations, Outcome, Reason
from npstream.records import COUNTED_OVER_TIME, CountsOverTime

MINUTES, HOURS = 24 * 60, 31 * 24
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
_EARLIEST_MS, _LATEST_MS = 946_684_800_000, 4_102_444_800_000
"""Event times before 2000 and after 2100 are none: zero, or another unit."""
_DAY_HOURS = 24
_CLOCK = 3
_FIRST, _NEWEST, _FAR = range(_CLOCK)
_DECIDED, _WARMUP, _ALARMS, _WITHHELD, _NON_TARGETS, _FALSE_ALARMS, _TARGETS, _DETECTIONS = range(
    len(COUNTED_OVER_TIME)
)
_SCORE, _SCORE_LEARN, _LEARN, _CORRECT = (int(op) for op in (Op.SCORE, Op.SCORE_LEARN, Op.LEARN, Op.CORRECT))
_BUDGET = int(Reason.BUDGET)
_NUMBER_MAX = 5
"""Bytes of a count, packed."""
PACKED_MAX = 8 * _CLOCK + _NUMBER_MAX * len(COUNTED_OVER_TIME) * (MINUTES + HOURS)
"""Most bytes in a snapshot; a tenth of it is usual."""


class Timeline:
    """Rings of counts; row `m % MINUTES` of the first is minute m since the epoch."""

    def __init__(self) -> None:
        self._clock = np.zeros(_CLOCK, np.int64)
        self._minutes = np.zeros((MINUTES, len(COUNTED_OVER_TIME)), np.int32)
        self._hours = np.zeros((HOURS, len(COUNTED_OVER_TIME)), np.int32)

    def count(self, stamps: Ints, operations: Operations, outcome: Outcome) -> None:
        """Take note of what was done, in its order; `stamps` has the event time of each operation that decides."""
        found = operations.code, operations.y, outcome.decision, outcome.reason, outcome.warm
        _count(stamps, *found, self._clock, self._minutes, self._hours)

    @property
    def alarms_per_day(self) -> float | None:
        """Over the last day; None before an hour of event time has passed, or where event times are none."""
        first, newest, _ = self._clock.tolist()
        hour = newest // HOUR_MS
        span = newest - max(first, (hour - (_DAY_HOURS - 1)) * HOUR_MS)
        if span < HOUR_MS:
            return None
        alarms = self._hours[np.arange(hour - _DAY_HOURS + 1, hour + 1) % HOURS, _ALARMS].sum()
        return float(alarms) * _DAY_HOURS * HOUR_MS / span

    def copy(self) -> CountsOverTime:
        """The counts as they are now."""
        return CountsOverTime(int(self._clock[_NEWEST]), self._minutes.copy(), self._hours.copy())

    def dump(self) -> bytes:
        """For a snapshot; `load` is the inverse. Counts of one kind lie together: most are small, or runs of zeros."""
        packed = np.empty(PACKED_MAX, np.uint8)
        counts = np.concatenate([self._minutes.T.ravel(), self._hours.T.ravel()])
        return self._clock.astype("<i8").tobytes() + packed[: _pack(counts, packed)].tobytes()

    @classmethod
    def load(cls, data: bytes) -> Self:
        """The inverse of `dump`. Raises ValueError when it is none."""
        made = cls()
        counts = np.empty(made._minutes.size + made._hours.size, np.int32)
        if len(data) < 8 * _CLOCK or not _unpack(np.frombuffer(data, np.uint8, offset=8 * _CLOCK).copy(), counts):
            raise ValueError("the counts over time are damaged")
        made._clock[:] = np.frombuffer(data, "<i8", _CLOCK)
        minutes, hours = np.split(counts, [made._minutes.size])
        made._minutes[:], made._hours[:] = minutes.reshape(-1, MINUTES).T, hours.reshape(-1, HOURS).T
        return made


@jit
def _count(
    stamps: Ints,
    code: Signs,
    y: Signs,
    decision: Signs,
    reason: Signs,
    warm: Signs,
    clock: Ints,
    minutes: Counts,
    hours: Counts,
) -> None:
    for i in range(code.size):
        op = code[i]
        decides = op in (_SCORE, _SCORE_LEARN)
        if not (decides or op in (_LEARN, _CORRECT)):
            continue
        stamp = stamps[i] if decides else clock[_NEWEST]
        if not _EARLIEST_MS <= stamp < _LATEST_MS:
            continue
        if decides:
            stamp = _advance(stamp, clock, minutes, hours)
            _add(stamp, _DECIDED, clock, minutes, hours)
            if warm[i]:
                _add(stamp, _WARMUP, clock, minutes, hours)
            elif decision[i] > 0:
                _add(stamp, _ALARMS, clock, minutes, hours)
            elif reason[i] == _BUDGET:
                _add(stamp, _WITHHELD, clock, minutes, hours)
        if op != _SCORE and not warm[i]:
            _add(stamp, _TARGETS if y[i] > 0 else _NON_TARGETS, clock, minutes, hours)
            if decision[i] > 0:
                _add(stamp, _DETECTIONS if y[i] > 0 else _FALSE_ALARMS, clock, minutes, hours)


@jit_inline
def _advance(stamp: int, clock: Ints, minutes: Counts, hours: Counts) -> int:
    """The time that an event counts at. A step of more than an hour is believed when the next event makes one too."""
    newest = clock[_NEWEST]
    if newest == 0:
        clock[_FIRST] = clock[_NEWEST] = stamp
        return stamp
    far = clock[_FAR]
    clock[_FAR] = stamp if stamp > newest + HOUR_MS else 0
    if clock[_FAR]:
        stamp = min(stamp, max(far, newest))
    if stamp > newest:
        minute, hour = stamp // MINUTE_MS, stamp // HOUR_MS
        for empty in range(max(newest // MINUTE_MS, minute - MINUTES) + 1, minute + 1):
            minutes[empty % MINUTES] = 0
        for empty in range(max(newest // HOUR_MS, hour - HOURS) + 1, hour + 1):
            hours[empty % HOURS] = 0
        clock[_NEWEST] = stamp
    return stamp


@jit_inline
def _add(stamp: int, column: int, clock: Ints, minutes: Counts, hours: Counts) -> None:
    newest = clock[_NEWEST]
    if stamp // MINUTE_MS > newest // MINUTE_MS - MINUTES:
        minutes[stamp // MINUTE_MS % MINUTES, column] += 1
    if stamp // HOUR_MS > newest // HOUR_MS - HOURS:
        hours[stamp // HOUR_MS % HOURS, column] += 1


@jit
def _pack(counts: Counts, packed: NDArray[np.uint8]) -> int:
    """Numbers in groups of seven bits, the lowest first; a run of zeros is a zero and its length."""
    at, i = 0, 0
    while i < counts.size:
        number = int(counts[i])
        i += 1
        if number == 0:
            packed[at] = 0
            at += 1
            number = 1
            while i < counts.size and counts[i] == 0:
                number += 1
                i += 1
        while number >= 128:
            packed[at] = 128 + number % 128
            at += 1
            number //= 128
        packed[at] = number
        at += 1
    return at


@jit
def _unpack(packed: NDArray[np.uint8], counts: Counts) -> bool:
    """Whether the bytes are so many counts, no more and no fewer."""
    at, i = 0, 0
    while at < packed.size:
        is_run = packed[at] == 0
        if is_run:
            at += 1
        number, shift = 0, 0
        while at < packed.size and packed[at] >= 128 and shift < 28:
            number += (int(packed[at]) - 128) << shift
            shift += 7
            at += 1
        if at == packed.size or packed[at] >= 128:
            return False
        number += int(packed[at]) << shift
        at += 1
        size = number if is_run else 1
        if number > 2**31 - 1 or i + size > counts.size:
            return False
        counts[i : i + size] = 0 if is_run else number
        i += size
    return i == counts.size
