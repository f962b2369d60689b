"""Sources made of other sources: the last events held back, and all partitions as one."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice

from npstream.backtest.source import ROUND, ArraySource, RecordSource, Source, TopicSource
from npstream.records import Batch, Record

HELD_BACK_MAX = 0.2
"""At most this share is held back: most of a history is for learning."""


def hold_back(source: Source, last: int) -> tuple[Source, Source]:
    """The events to learn from and the last ones, some `last` over all partitions, which no learner has seen."""
    match source:
        case ArraySource(x=x, y=y):
            at = len(y) - _share(last, len(y))
            return replace(source, x=x[:at], y=y[:at]), replace(source, x=x[at:], y=y[at:])
        case RecordSource(records=records):
            cuts = {p: len(found) - _share(last // len(records), len(found)) for p, found in records.items()}
            before = {p: found[: cuts[p]] for p, found in records.items()}
            after = {p: found[cuts[p] :] for p, found in records.items() if cuts[p] < len(found)}
            return replace(source, records=before), replace(source, records=after)
        case TopicSource(ranges=ranges):
            ends = {p: end - _share(last // len(ranges), end - begin) for p, (begin, end) in ranges.items()}
            earlier = {p: (begin, ends[p]) for p, (begin, _) in ranges.items()}
            later = {p: (ends[p], end) for p, (_, end) in ranges.items() if ends[p] < end}
            return replace(source, ranges=earlier), replace(source, ranges=later)
    raise TypeError(f"{type(source).__name__} cannot be split")


def _share(last: int, size: int) -> int:
    return min(last, int(HELD_BACK_MAX * size))


@dataclass(frozen=True, slots=True)
class MergedSource:
    """Records of several partitions as one, in the order of their timestamps, numbered anew.

    A label finds its event by id as before, unless that id is the default one,
    which names a partition and an offset.
    """

    source: RecordSource | TopicSource
    format: None = None

    @property
    def topic(self) -> str | None:
        """The topic the events are from."""
        return self.source.topic

    @property
    def ranges(self) -> Mapping[int, tuple[int, int]]:
        """One partition with room for all."""
        return {0: (0, sum(end - begin for begin, end in self.source.ranges.values()))}

    def rounds(self) -> Iterator[list[Batch]]:
        """The next records by time, whatever partition they are from."""
        merged = heapq.merge(*self.source.readers().values(), key=_timestamp)
        numbered = (record._replace(offset=offset) for offset, record in zip(count(), merged, strict=False))
        while records := list(islice(numbered, ROUND)):
            yield [Batch(0, records)]


def as_one(source: Source) -> Source:
    """The same events on a single partition."""
    if isinstance(source, ArraySource):
        return replace(source, partitions=1)
    if isinstance(source, RecordSource | TopicSource) and len(source.ranges) > 1:
        return MergedSource(source)
    return source


def _timestamp(record: Record) -> int:
    return record.timestamp_ms
