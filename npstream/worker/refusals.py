"""Partitions whose own records stop them: found by elimination, kept out of later sessions.

A transaction holds the outputs of many partitions, and an error that ends it
seldom says whose record was to blame. So after one that may come back,
partitions are published one by one for a while: the one it comes back for is
paused at that offset, and the others go on. Pure, and older than a session:
what is known here ends with the process, or when the partition has moved on.
"""

from dataclasses import dataclass

from npstream.errors import Refused, StateCorrupt

_APART_S = 10.0
"""How long partitions are published one by one after a refusal: long enough for each to come to its next commit."""


@dataclass(frozen=True, slots=True)
class _Strike:
    offset: int
    count: int


UNKNOWN = -1
"""Stands for the committed offset of a partition that could not be restored."""


class Refusals:
    """What happened to which partition at which committed offset. `now` is monotonic, in seconds."""

    def __init__(self) -> None:
        self._apart_until: float | None = None
        self._strikes: dict[int, _Strike] = {}
        self._refused: dict[int, tuple[int, str]] = {}

    def apart(self, now: float) -> bool:
        """Whether partitions are to be published one by one."""
        return self._apart_until is not None and now < self._apart_until

    def note(self, error: Refused, committed: int, now: float) -> None:
        """A commit, a read or a restore was refused, at the committed offset of its partition where it has one.

        The last strike allowed makes the partition refused.
        """
        self._apart_until = now + _APART_S
        if error.partition is None:
            return
        last = self._strikes.get(error.partition)
        count = 1 + (last.count if last is not None and last.offset == committed else 0)
        self._strikes[error.partition] = _Strike(committed, count)
        if count >= error.strikes:
            self._refused[error.partition] = (committed, str(error))

    def check(self, partition: int, committed: int) -> None:
        """Raise `StateCorrupt` for a partition that was refused at this very offset."""
        offset, reason = self._refused.get(partition, (None, ""))
        if offset == committed:
            raise StateCorrupt(f"{reason} (the other partitions go on; restart the worker after the fix)")
