"""Files as messages to produce: lines of events as they are, rows of data sets as events."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from npstream import client
from npstream.client import Message
from npstream.codec.decoder import EventConfig
from npstream.data import files
from npstream.data.columns import Wanted
from npstream.data.files import Rows
from npstream.data.lines import event_key, read_lines, refuse_label
from npstream.errors import UsageError
from npstream.records import Record


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
        return Outgoing(len(lines), (_of_line(line, number) for number, (_, line) in enumerate(lines)))
    _refuse_format(path, events)
    rows = files.read_rows(path, Wanted(events.features, label))
    files.check_width(path, rows, events)
    if rows.y is None and delay:
        raise UsageError(f"{path}: has no labels to send later; leave out --delay")
    return Outgoing(len(rows.x) * (2 if delay else 1), _of_rows(rows, events, delay), rows.columns)


def _refuse_format(path: Path, events: EventConfig) -> None:
    if events.format not in ("json", "f32"):
        raise UsageError(
            f"{path}: cannot be sent as events.format {events.format}, which a serializer of the schema registry "
            "writes; send it with a producer of your own, or an export of the topic with this command"
        )


def _of_line(line: Record, number: int) -> Message:
    """An exported record's own key, headers and time; else the event under the key it is sent with."""
    value = line.value or b""
    if line.key is None:
        return Message(event_key(line.value, number), value)
    headers = [(name, content) for name, content in line.headers if content is not None]
    return Message(line.key, value, headers, line.timestamp_ms)


def _of_rows(rows: Rows, events: EventConfig, delay: int) -> Iterator[Message]:
    """Row i is the event of its own id, or of the number i."""
    x, count = rows.x.tolist(), len(rows.x)
    ids = rows.ids or range(count)
    targets = None if rows.y is None else (rows.y > 0).tolist()
    for i in range(count + delay):
        if i < count:
            yield _of_row(ids[i], x[i], None if targets is None or delay else targets[i], events)
        if delay and i >= delay and targets is not None:
            yield client.label(ids[i - delay], target=targets[i - delay], format=events.format)


def _of_row(identity: str | int, row: list[float], target: bool | None, events: EventConfig) -> Message:
    if events.external:
        return client.event(identity, score=row[0], target=target, format=events.format)
    names = events.features
    features = row if names is None or events.format == "f32" else dict(zip(names, row, strict=True))
    return client.event(identity, features, target=target, format=events.format)
