"""How single events are read, for people: column by column, and whether a user's function gives the same twice."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.codec.draft import DocumentDecoder
from npstream.codec.event import Kind, shown
from npstream.codec.features import Feature, column_buckets, steps_of
from npstream.codec.json_events import parsed
from npstream.codec.mapping import find
from npstream.errors import BadEvent
from npstream.records import Record

_LABELS = {1: "target", -1: "non-target", 0: "not known yet"}


class ColumnReading(NamedTuple):
    """One column of the model: what the event has at its path, and what the model sees."""

    column: str
    path: str
    written: str
    value: float

    @property
    def seen(self) -> str:
        """The value in words."""
        if math.isnan(self.value):
            return "missing"
        return f"{self.value:.0f}" if self.value.is_integer() else f"{self.value:.6g}"

    @property
    def texts(self) -> tuple[str, str, str]:
        """All but the value."""
        return self.column, self.path, self.written


class SampleReading(NamedTuple):
    """One event as it is read; `problem` says why it is a bad one, and then there are no columns."""

    offset: int
    event_id: str
    label: str
    problem: str | None
    columns: tuple[ColumnReading, ...]

    def lines(self) -> list[str]:
        """As a small table."""
        if self.problem is not None:
            return [f"event {self.offset} is bad: {self.problem}"]
        widths = [max(map(len, texts)) for texts in zip(*(row.texts for row in self.columns), strict=True)]
        head = f"event {self.offset} is read so: id {self.event_id}, label {self.label}"
        return [head, *(f"  {_padded(row, widths)} -> {row.seen}" for row in self.columns)]


def _padded(row: ColumnReading, widths: list[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(row.texts, widths, strict=True))


def read_sample(record: Record, config: EventConfig) -> SampleReading:
    """How one event is read under these settings."""
    decoded = EventDecoder(config).decode([record])
    error = decoded.errors.get(0)
    if error is not None:
        return SampleReading(record.offset, "none", "none", str(error), ())
    document = None
    if config.format == "json":
        document = DocumentDecoder(config).prepared(parsed(record.value, config.max_bytes))
    row = decoded.x[0].tolist() if decoded.kinds[0] != Kind.LABEL else []
    columns = [
        ColumnReading(column, path, "" if document is None else shown(find(document, steps_of(path))), value)
        for (column, path), value in zip(_columns(config), row, strict=False)
    ]
    event_id = "none" if decoded.ids[0] is None else shown(decoded.ids[0])
    return SampleReading(record.offset, event_id, _LABELS[int(decoded.y[0])], None, tuple(columns))


def _columns(config: EventConfig) -> Iterator[tuple[str, str]]:
    """The name and the path of each column."""
    if config.mapping is not None:
        for feature in config.mapping:
            yield from ((column, feature.path) for column in feature.columns)
    for at in range(config.d if config.mapping is None else 0):
        path = f"x[{at}]" if config.features is None else f'x["{config.features[at]}"]'
        yield path if config.features is None else config.features[at], path


def column_lines(features: Sequence[Feature]) -> list[str]:
    """Each column of the model with what it is made of, and its cells where it is a category."""
    cells = column_buckets(features) or (0,) * sum(len(feature.columns) for feature in features)
    names = [(column, str(feature)) for feature in features for column in feature.columns]
    width = max(len(column) for column, _ in names)
    return [
        f"{column.ljust(width)}  {made_of}" + (f" ({count} cells)" if count else "")
        for (column, made_of), count in zip(names, cells, strict=True)
    ]


def unstable(records: Sequence[Record], config: EventConfig) -> str | None:
    """Run a user's function twice on each event; says which gave something else the second time."""
    if config.transform is None:
        return None
    decoder = DocumentDecoder(config)
    for record in records:
        first, second = (decoder.prepared(parsed(record.value, config.max_bytes)) for _ in range(2))
        bad = isinstance(first, BadEvent) and isinstance(second, BadEvent)
        if (str(first) != str(second)) if bad else (repr(first) != repr(second)):
            return (
                f"{config.transform.name} is not pure: the event at offset {record.offset} gave {shown(first)}, then "
                f"{shown(second)}; it may use nothing but the event: no clock, no randomness, no state"
            )
    return None
