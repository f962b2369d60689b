"""Sources made of other sources: the last events held back, and all partitions as one."""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice

from npstream.codec.decisions import default_id
from npstream.codec.decoder import EventConfig, EventDecoder, EventId, Kind
from npstream.records import Batch, Record
from npstream.replay.replay import FILE_TOPIC
from npstream.replay.source import ROUND, ArraySource, RecordSource, Source, TopicSource, size_of

HELD_BACK_MAX = 0.2
"""At most this share is held back: most of a history is for learning."""


def hold_back(source: Source, last: int, events: EventConfig) -> tuple[Source, Source]:
    """The events to learn from and the last ones, which no learner has seen.

    Some `last` observations over all partitions that have their label among what
    is held back, however late it came; but never more than `HELD_BACK_MAX`, and
    where no label is to be had the last events as they are. `events` says how to
    read a record.
    """
    match source:
        case ArraySource(y=y):
            at = len(y) - _share(last, len(y))
            return source.cut(0, at), source.cut(at, len(y))
        case RecordSource(records=records):
            cuts = _cuts(source, last, events)
            at_cut = {p: bisect_left(records[p], cut, key=_offset) for p, cut in cuts.items()}
            before = {p: records[p][:at] for p, at in at_cut.items()}
            after = {p: records[p][at:] for p, at in at_cut.items() if at < len(records[p])}
            return replace(source, records=before), replace(source, records=after)
        case TopicSource(ranges=ranges):
            cuts = _cuts(source, last, events)
            earlier = {p: (begin, cuts[p]) for p, (begin, _) in ranges.items()}
            later = {p: (cuts[p], end) for p, (_, end) in ranges.items() if cuts[p] < end}
            return replace(source, ranges=earlier), replace(source, ranges=later)
    raise TypeError(f"{type(source).__name__} cannot be split")


def _share(last: int, size: int) -> int:
    return min(last, int(HELD_BACK_MAX * size))


def _cuts(source: RecordSource | TopicSource, last: int, events: EventConfig) -> dict[int, int]:
    """The offset from which on each partition is held back."""
    decoder, topic = EventDecoder(events), source.topic or FILE_TOPIC
    cuts = {}
    for p, (begin, end) in source.ranges.items():
        wanted = _share(last // len(source.ranges), end - begin)
        cuts[p] = end - wanted
        if wanted:
            reader = source.since(p, end - _share(end - begin, end - begin))
            labelled = _labelled(reader, decoder, partial(default_id, topic, p))
            cuts[p] = labelled[-wanted:][0] if labelled else cuts[p]
    return cuts


def _labelled(records: Iterator[Record], decoder: EventDecoder, nameless: Callable[[int], str]) -> list[int]:
    """The offsets of observations that have their label among these records, in order."""
    waiting: dict[EventId, int] = {}
    found: list[int] = []
    while batch := list(islice(records, ROUND)):
        decoded = decoder.decode(batch)
        for record, kind, identity in zip(batch, decoded.kinds, decoded.ids, strict=True):
            if kind == Kind.LABELLED:
                found.append(record.offset)
            elif kind == Kind.OBSERVATION:
                waiting.setdefault(nameless(record.offset) if identity is None else identity, record.offset)
            elif identity is not None and identity in waiting:
                found.append(waiting.pop(identity))
    return sorted(found)


@dataclass(frozen=True, slots=True)
class MergedSource:
    """Records of several partitions as one, in the order of their timestamps, numbered again.

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
        return {0: (0, size_of(self.source))}

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


def _offset(record: Record) -> int:
    return record.offset
