"""Where a replay's events come from: arrays, exported lines, or a range of a topic.

A source hands out rounds of batches, one batch a partition, and says which
offsets there are, so that progress, quarters and the time left are known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice, repeat
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from npstream.codec.cells import id_words
from npstream.codec.event import EventId, RecordFormat
from npstream.port import Log
from npstream.records import Batch, Channel, Headers, Record

_record: Callable[[tuple[int, int, None, bytes, Headers]], Record] = partial(tuple.__new__, Record)
"""A record of its fields without a step in Python: a million rows are made in no time."""

ROUND = 1000
"""Records of one partition in one round: large enough for speed, small enough for a smooth curve."""


class Source(Protocol):
    """Events of some partitions, in order within each."""

    @property
    def format(self) -> RecordFormat | None:
        """The format of the values; None when it is the topic's own."""

    @property
    def topic(self) -> str | None:
        """The topic whose name default ids begin with; None where none is known."""

    @property
    def ranges(self) -> Mapping[int, tuple[int, int]]:
        """First offset, and the one after the last, of each partition."""

    def rounds(self) -> Iterator[list[Batch]]:
        """Batches of all partitions, again and again until all is read."""


def size_of(source: Source) -> int:
    """How many offsets there are, those that hold no record any more included."""
    return sum(end - begin for begin, end in source.ranges.values())


@dataclass(frozen=True, slots=True)
class ArraySource:
    """Rows of a data set as events, dealt to partitions in turn.

    `x` are the columns of the model, `y` is 0 where the label is missing. Without
    `ids` a row's id is its number, as for `npstream produce`. With a `delay` a row
    comes without its label, which follows `delay` rows of the same partition later.
    """

    x: NDArray[np.float32]
    y: NDArray[np.int8]
    partitions: int = 1
    delay: int = 0
    format: Literal["columns"] = "columns"
    topic: str | None = None
    ids: Sequence[EventId] | None = None

    def cut(self, begin: int, end: int) -> "ArraySource":
        """Some of the rows, with the ids that they have among all."""
        return replace(self, x=self.x[begin:end], y=self.y[begin:end], ids=self._ids()[begin:end])

    def _ids(self) -> Sequence[EventId]:
        return range(len(self.y)) if self.ids is None else self.ids

    @property
    def ranges(self) -> Mapping[int, tuple[int, int]]:
        """Every partition begins at 0 and holds its events and, when they come later, their labels."""
        known = self.y != 0 if self.delay else np.zeros(len(self.y), np.bool_)
        parts = [known[p :: self.partitions] for p in range(self.partitions)]
        return {p: (0, len(part) + int(part.sum())) for p, part in enumerate(parts)}

    def rounds(self) -> Iterator[list[Batch]]:
        """One row after another to the partitions in turn."""
        makers = [self._late(p) if self.delay else self._labelled(p) for p in range(self.partitions)]
        while batches := [Batch(p, records) for p, maker in enumerate(makers) if (records := next(maker, []))]:
            yield batches

    def _labelled(self, partition: int) -> Iterator[list[Record]]:
        x, y = self.x[partition :: self.partitions], self.y[partition :: self.partitions]
        ids = self._ids()[partition :: self.partitions]
        label = {1: (("y", b"1"),), -1: (("y", b"-1"),), 0: ()}
        for at in range(0, len(y), ROUND):
            rows = np.ascontiguousarray(x[at : at + ROUND], "<f4")
            values = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()  # bytes, a row each
            names = _names(ids[at : at + ROUND])
            headers = [(name, *label[sign]) for name, sign in zip(names, y[at : at + ROUND].tolist(), strict=True)]
            yield list(map(_record, zip(count(at), count(at + 1), repeat(None), values, headers, strict=False)))

    def _late(self, partition: int) -> Iterator[list[Record]]:
        x, y = self.x[partition :: self.partitions], self.y[partition :: self.partitions].tolist()
        names = _names(self._ids()[partition :: self.partitions])
        records: list[Record] = []
        offset = 0
        for i in range(len(y) + self.delay):
            if i < len(y):
                records.append(Record(offset, offset + 1, None, x[i].astype("<f4").tobytes(), (names[i],)))
                offset += 1
            if 0 <= i - self.delay < len(y) and y[i - self.delay]:
                earlier = i - self.delay
                label = (names[earlier], ("y", b"%d" % y[earlier]))
                records.append(Record(offset, offset + 1, None, b"", label))
                offset += 1
            if len(records) >= ROUND:
                yield records
                records = []
        if records:
            yield records


@dataclass(frozen=True, slots=True)
class RecordSource:
    """Records that are in memory already, by partition: an export, or a test's own."""

    records: Mapping[int, Sequence[Record]]
    topic: str | None = None
    format: None = None

    @property
    def ranges(self) -> Mapping[int, tuple[int, int]]:
        """The records' own offsets."""
        return {p: (records[0].offset, records[-1].offset + 1) for p, records in self.records.items() if records}

    def readers(self) -> dict[int, Iterator[Record]]:
        """The records of each partition, from the first."""
        return {partition: iter(records) for partition, records in self.records.items()}

    def since(self, partition: int, offset: int) -> Iterator[Record]:
        """The records of one partition from an offset on."""
        return (record for record in self.records[partition] if record.offset >= offset)

    def rounds(self) -> Iterator[list[Batch]]:
        """Slices of all partitions."""
        return _in_turn(self.readers())


@dataclass(frozen=True, slots=True)
class TopicSource:
    """A range of the events topic: `ranges` holds the first offset and the one after the last, by partition."""

    log: Log
    topic: str
    ranges: Mapping[int, tuple[int, int]]
    format: None = None

    def readers(self) -> dict[int, Iterator[Record]]:
        """The records of each partition, read as they are asked for."""
        return {p: self.since(p, begin) for p, (begin, _) in self.ranges.items()}

    def since(self, partition: int, offset: int) -> Iterator[Record]:
        """The records of one partition from an offset on, read as they are asked for."""
        return self.log.read(Channel.EVENTS, partition, offset, self.ranges[partition][1])

    def rounds(self) -> Iterator[list[Batch]]:
        """Reads of all partitions in turn."""
        return _in_turn(self.readers())


def _names(ids: Sequence[EventId]) -> list[tuple[str, bytes]]:
    """The header of each id, in JSON, so that numbers stay numbers."""
    return [("id", word.encode()) for word in id_words([*ids])]


def _in_turn(readers: Mapping[int, Iterator[Record]]) -> Iterator[list[Batch]]:
    while batches := [Batch(p, records) for p, reader in readers.items() if (records := list(islice(reader, ROUND)))]:
        yield batches
