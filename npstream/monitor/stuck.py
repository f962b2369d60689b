"""A stuck log, named: a transaction that nobody ends holds back every read_committed reader in silence.

The stable end stays below the high watermark. That is normal for as long as a
transaction may last; after that an operator has to act.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from npstream.port import Ends, Place
from npstream.records import Topics

BROKER_CHECK_S = 10.0
"""Brokers look for timed-out transactions this often."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """One partition whose stable end has not moved though there are records after it."""

    place: Place
    topic: str
    stable: int
    high: int
    seconds: float

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.place[1]

    def __str__(self) -> str:
        tool = "kafka-transactions.sh --bootstrap-server ADDRESS"
        return (
            f"{self.topic}/{self.partition} is stuck: readers have been held at offset {self.stable} for "
            f"{self.seconds:.0f} s while the log goes on to {self.high}: a transaction hangs. "
            f"Look for it with `{tool} find-hanging --broker-id ID`; if it is listed there, and not just long, end it "
            f"with `{tool} abort --topic {self.topic} --partition {self.partition} --start-offset {self.stable}`"
        )


def threshold_s(transaction_timeout_ms: int) -> float:
    """How long a stable end may stay where it is before it counts as stuck."""
    return transaction_timeout_ms / 1000 + BROKER_CHECK_S


class StuckWatch:
    """Compares the ends of partitions over time. Pure: the time is given, nothing is asked."""

    def __init__(self, topics: Topics, after_s: float) -> None:
        self._names = topics.names()
        self._after_s = after_s
        self._since: dict[Place, tuple[int, float]] = {}

    def look(self, now_s: float, ends: Mapping[Place, Ends]) -> list[Stuck]:
        """Note the ends as they are now; returns every partition that has been stuck for too long."""
        self._since = {
            place: self._since_of(place, found.stable, now_s)
            for place, found in ends.items()
            if found.stable < found.high
        }
        return [
            Stuck(place, self._names[place[0]], stable, ends[place].high, now_s - since_s)
            for place, (stable, since_s) in self._since.items()
            if now_s - since_s > self._after_s
        ]

    def forget(self) -> None:
        """Start over: while nobody could look, brokers may have been away and could not end anything either."""
        self._since = {}

    def _since_of(self, place: Place, stable: int, now_s: float) -> tuple[int, float]:
        before = self._since.get(place)
        return before if before is not None and before[0] == stable else (stable, now_s)
