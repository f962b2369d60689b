"""Archived snapshots: which of a partition's snapshots are kept beyond the ring, and when the next one is due.

That depends on the state alone: on the events so far and on their time. One event
moves that time by a quarter of an hour at most, so that one far-future timestamp
does not end the archive, and a few do not fill it. No decision depends on it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from npstream.arrays import Ints

_STEP_MS = 900_000


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """How often a snapshot is archived, by event time or by events, None for neither; and how many are kept."""

    every_ms: int | None = 86_400_000
    every_events: int | None = None
    keep: int = 30


class Archived(NamedTuple):
    """An archived snapshot: where it resumes, how many chunks it has, the how-manieth of the partition it was."""

    offset: int
    chunks: int
    number: int


@dataclass(slots=True)
class Archive:
    """The archived snapshots of one partition, in the order in which they were written."""

    clock_ms: int = -1
    """Event time; -1 before the first event."""
    saved_ms: int = -1
    """Event time when the newest was archived; that of the first event before there is any."""
    saved_events: int = 0
    kept: list[Archived] = field(default_factory=list)

    def pass_time(self, stamps: Ints) -> None:
        """Events with these timestamps were taken, in this order."""
        if not len(stamps):
            return
        if self.clock_ms < 0:
            self.clock_ms = self.saved_ms = max(0, int(stamps[0]))
        newest = int(stamps.max())
        if newest - self.clock_ms <= _STEP_MS:
            self.clock_ms = max(self.clock_ms, newest)
            return
        for stamp in stamps.tolist():
            if stamp > self.clock_ms:
                self.clock_ms += min(stamp - self.clock_ms, _STEP_MS)

    def is_due(self, rules: ArchiveRules, events: int) -> bool:
        """Whether the snapshot that is written now is to be archived."""
        if rules.keep == 0:
            return False
        by_time = rules.every_ms is not None and self.clock_ms - self.saved_ms >= rules.every_ms
        return by_time or (rules.every_events is not None and events - self.saved_events >= rules.every_events)

    def add(self, archived: Archived, events: int) -> None:
        """This one is written now, after so many events; it replaces one at its offset."""
        self.kept = [each for each in self.kept if each.offset != archived.offset] + [archived]
        self.saved_ms, self.saved_events = self.clock_ms, events

    def measured(self, chunks: int) -> None:
        """The newest turned out to have so many chunks."""
        self.kept[-1] = self.kept[-1]._replace(chunks=chunks)

    def let_go(self, keep: int) -> list[Archived]:
        """The oldest beyond those that are kept, which are no longer."""
        cut = max(0, len(self.kept) - keep)
        gone, self.kept = self.kept[:cut], self.kept[cut:]
        return gone

    def adopt(self, found: Iterable[tuple[int, int]]) -> None:
        """Only these are there, as (offset, chunks); those unknown are of a past that was given up: first to go."""
        there = dict(found)
        known = [each for each in self.kept if each.offset in there]
        strays = there.keys() - {each.offset for each in known}
        self.kept = [Archived(offset, there[offset], -1) for offset in sorted(strays)] + known

    def dump(self) -> bytes:
        """All of it; the length depends on how many are kept alone."""
        head = [self.clock_ms, self.saved_ms, self.saved_events]
        return np.array([*head, *(value for each in self.kept for value in each)], "<i8").tobytes()

    @classmethod
    def load(cls, data: bytes) -> "Archive":
        """What `dump` wrote. Raises ValueError."""
        values = np.frombuffer(data, "<i8").tolist()
        kept = np.reshape(values[3:], (-1, 3)).tolist()
        return cls(values[0], values[1], values[2], [Archived(*map(int, each)) for each in kept])
