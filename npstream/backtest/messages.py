"""Files as messages to produce: lines of events as they are, rows of data sets as events."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from npstream import client, files
from npstream.backtest.lines import read_lines
from npstream.client import Message
from npstream.codec.events import EventConfig
from npstream.errors import UsageError
from npstream.records import Record


def messages_of_file(path: Path, events: EventConfig, delay: int) -> tuple[int, Iterator[Message]]:
    """How many messages a file makes, and the messages. Raises `UsageError` naming what is wrong with it."""
    if path.suffix == ".jsonl":
        lines = read_lines(path).records
        return len(lines), (_of_line(line, number) for number, (_, line) in enumerate(lines))
    x, y = files.read(path)
    if x.shape[1] != events.width:
        wanted = "one score (preset external)" if events.external else f"{events.d} (model.d)"
        raise UsageError(f"{path}: has {x.shape[1]} features, the settings say {wanted}")
    rows = len(y)
    return rows * (2 if delay else 1), _of_rows(x.tolist(), y.tolist(), events, delay)


def _of_line(line: Record, number: int) -> Message:
    """An exported record's own key, headers and time; else the event under the key it is sent with."""
    value = line.value or b""
    if line.key is None:
        return Message(event_key(line.value, number), value)
    headers = [(name, content) for name, content in line.headers if content is not None]
    return Message(line.key, value, headers, line.timestamp_ms)


def event_key(value: bytes | None, number: int) -> bytes:
    """The id of an event, else its number: what spreads over partitions and brings a label to its event."""
    try:
        identity = orjson.loads(value or b"").get("id")
    except (orjson.JSONDecodeError, AttributeError):
        identity = None
    return str(number if identity is None else identity).encode()


def _of_rows(x: list[list[float]], y: list[int], events: EventConfig, delay: int) -> Iterator[Message]:
    for i in range(len(y) + delay):
        if i < len(y):
            yield _of_row(i, x[i], y[i] > 0 if not delay else None, events)
        if delay and i >= delay:
            yield client.label(i - delay, target=y[i - delay] > 0, format=events.format)


def _of_row(i: int, row: list[float], target: bool | None, events: EventConfig) -> Message:
    if events.external:
        return client.event(i, score=row[0], target=target, format=events.format)
    names = events.features
    features = row if names is None or events.format == "f32" else dict(zip(names, row, strict=True))
    return client.event(i, features, target=target, format=events.format)
