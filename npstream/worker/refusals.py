"""Partitions whose own records stop them: found by elimination, kept out of later sessions.

A transaction holds the outputs of many partitions, and an error that ends it
seldom says whose record was to blame. So after one that may come back,
partitions are published one by one for a while: the one it comes back for is
paused at that offset, and the others go on. Pure, and older than a session:
what is known here ends with the process, or when the partition has moved on.
"""

from dataclasses import dataclass

from npstream.errors import Refused, StateCorrupt

_NAMELESS_S = 5.0
"""An error without a name must have come back for at least this long: a hiccup of the brokers may strike thrice."""

UNKNOWN = -1
"""Takes the place of the committed offset of a partition that could not be restored, or has none."""


@dataclass(frozen=True, slots=True)
class _Strikes:
    offset: int
    count: int
    since: float


class Refusals:
    """What happened to which partition at which committed offset. `now` is monotonic, in seconds."""

    def __init__(self) -> None:
        self._suspects: set[int] = set()
        self._strikes: dict[int, _Strikes] = {}
        self._refused: dict[int, tuple[int, str]] = {}

    @property
    def apart(self) -> bool:
        """Whether partitions are to be published one by one: until each that took part in a refusal came through."""
        return bool(self._suspects)

    def clear(self, partition: int) -> None:
        """This partition was published, paused or given away: it is no suspect any more."""
        self._suspects.discard(partition)

    def note(self, error: Refused, now: float) -> None:
        """A commit, a read or a restore was refused. The last strike allowed makes its partition refused."""
        self._suspects |= error.together
        if error.partition is None:
            return
        offset = UNKNOWN if error.committed is None else error.committed
        last = self._strikes.get(error.partition)
        if last is None or last.offset != offset:
            last = _Strikes(offset, 0, now)
        self._strikes[error.partition] = _Strikes(offset, last.count + 1, last.since)
        long_enough = error.strikes == 1 or now - last.since >= _NAMELESS_S
        if last.count + 1 >= error.strikes and long_enough:
            self._refused[error.partition] = (offset, str(error))

    def check(self, partition: int, committed: int) -> None:
        """Raise `StateCorrupt` for a partition that was refused at this very offset."""
        offset, reason = self._refused.get(partition, (None, ""))
        if offset == committed:
            self.clear(partition)
            raise StateCorrupt(f"{reason} (the other partitions go on; restart the worker after the fix)")
