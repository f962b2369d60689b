"""Files as messages to produce: lines of events as they are, rows of data sets as events."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npstream import client
from npstream.client import Message
from npstream.codec.decoder import EventConfig
from npstream.codec.features import Feature, column_of
from npstream.codec.table import Column
from npstream.data import files
from npstream.data.columns import Wanted
from npstream.data.files import Rows
from npstream.data.lines import event_key, read_lines, refuse_label
from npstream.errors import UsageError
from npstream.records import Record

_TARGETS = {1: True, -1: False, 0: None}


class Outgoing(NamedTuple):
    """The messages of a file, how many they are, and which columns were taken for what (None without columns)."""

    total: int
    messages: Iterator[Message]
    columns: str | None = None


def messages_of_file(path: Path, events: EventConfig, delay: int, label: str | None = None) -> Outgoing:
    """What a file makes; `label` names a table's column. Raises `UsageError` naming what is wrong with it."""
    if path.suffix == ".jsonl":
        refuse_label(path, label)
        found = read_lines(path)
        if not found.exported:
            _refuse_format(path, events)
        lines = found.records
        return Outgoing(len(lines), (_of_line(line, number, events) for number, (_, line) in enumerate(lines)))
    _refuse_format(path, events)
    rows = files.read_rows(path, Wanted.by(events, label))
    files.check_width(path, rows, events)
    if rows.y is None and delay:
        raise UsageError(f"{path}: has no labels to send later; leave out --delay")
    later = int(np.count_nonzero(rows.y)) if delay and rows.y is not None else 0
    return Outgoing(len(rows.x) + later, _of_rows(rows, events, delay), rows.columns)


def _refuse_format(path: Path, events: EventConfig) -> None:
    if events.format not in ("json", "f32"):
        raise UsageError(
            f"{path}: cannot be sent as events.format {events.format}, which a serializer of the schema registry "
            "writes; send it with a producer of your own, or an export of the topic with this command"
        )


def _of_line(line: Record, number: int, events: EventConfig) -> Message:
    """An exported record's own key, headers and time; else the event under the key it is sent with."""
    value = line.value or b""
    if line.key is None:
        return Message(event_key(line.value, number, events.id), value)
    headers = [(name, content) for name, content in line.headers if content is not None]
    return Message(line.key, value, headers, line.timestamp_ms)


def _of_rows(rows: Rows, events: EventConfig, delay: int) -> Iterator[Message]:
    """Row i is the event of its own id, or of the number i."""
    using, count = client.Events(events), len(rows.x)
    ids = rows.ids or range(count)
    targets = [None] * count if rows.y is None else [_TARGETS[sign] for sign in rows.y.tolist()]
    values = _values(rows, events)
    for i in range(count + delay):
        if i < count:
            target = None if delay else targets[i]
            if events.external:
                yield using.event(ids[i], score=rows.x[i, 0], target=target)
            else:
                yield using.event(ids[i], next(values), target=target)
        if delay and i >= delay and (late := targets[i - delay]) is not None:
            yield using.label(ids[i - delay], target=late)


def _values(rows: Rows, events: EventConfig) -> Iterator[Any]:
    """Of each row the values of its features: by name where they have names, else in their order."""
    if rows.cells is None or events.mapping is None:
        names = None if events.format == "f32" else events.features
        return (row if names is None else dict(zip(names, row, strict=True)) for row in rows.x.tolist())
    columns = [_cells(feature, rows.cells[column_of(feature.path)]) for feature in events.mapping]
    names = tuple(feature.name for feature in events.mapping)
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _cells(feature: Feature, column: Column) -> list[Any]:
    """The values of a column as an event has them, None where one is missing."""
    numbers = column.seconds() if feature.kind == "time" else None
    if numbers is None and feature.kind in ("number", "time"):
        numbers = column.numbers()
    if numbers is None:
        return column.distinct(feature.kind).rows()
    return [None if number != number else number for number in numbers.tolist()]
