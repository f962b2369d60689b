"""What a replay will cost, measured on its first records."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from npstream.codec.event import RecordFormat
from npstream.partition import PartitionConfig
from npstream.records import Batch
from npstream.replay.replay import replay
from npstream.replay.source import Source, size_of

_ROUNDS = 8
"""Rounds timed: some thousand records, a fraction of a second."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """How much there is to replay, and about how long one run over it takes on this machine."""

    events: int
    partitions: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first rounds of another source."""

    source: Source
    count: int

    @property
    def format(self) -> RecordFormat | None:
        return self.source.format

    @property
    def topic(self) -> str | None:
        return self.source.topic

    @property
    def ranges(self) -> Mapping[int, tuple[int, int]]:
        return self.source.ranges

    def rounds(self) -> Iterator[list[Batch]]:
        yield from islice(self.source.rounds(), self.count)


def forecast(config: PartitionConfig, source: Source, clock: Callable[[], float]) -> Forecast:
    """Replay the first records by the clock. Offsets that are gone count as events."""
    first = _Beginning(source, _ROUNDS)
    records = [record for batches in first.rounds() for batch in batches for record in batch.records]
    size = sum(len(record.value or b"") + len(record.key or b"") for record in records)
    events = size_of(source)
    share = events / max(1, len(records))
    # What each replay begins with costs once, however many events follow.
    fixed = _seconds(config, _Beginning(source, 0), clock)
    seconds = fixed + share * max(0.0, _seconds(config, first, clock) - fixed)
    return Forecast(events, len(source.ranges), int(share * size), seconds)


def _seconds(config: PartitionConfig, source: Source, clock: Callable[[], float]) -> float:
    started = clock()
    replay(config, source)
    return clock() - started
