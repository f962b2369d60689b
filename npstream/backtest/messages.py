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
        lines = read_lines(path)
        return len(lines), (_of_line(line, number) for number, line in enumerate(lines))
    x, y = files.read(path)
    if events.external or x.shape[1] != events.d:
        raise UsageError(f"{path}: has {x.shape[1]} features, the settings say {events.d} (model.d)")
    rows = len(y)
    return rows * (2 if delay else 1), _of_rows(x.tolist(), y.tolist(), events, delay)


def _of_line(line: Record, number: int) -> Message:
    """A line's own key, else the id of its event, else its number: something that spreads over partitions."""
    value = line.value or b""
    if line.key is not None:
        return Message(line.key, value, (), line.timestamp_ms)
    try:
        identity = orjson.loads(value).get("id", number)
    except (orjson.JSONDecodeError, AttributeError):
        identity = number
    return Message(str(identity).encode(), value)


def _of_rows(x: list[list[float]], y: list[int], events: EventConfig, delay: int) -> Iterator[Message]:
    names = events.features
    for i in range(len(y) + delay):
        if i < len(y):
            features = x[i] if names is None or events.format == "f32" else dict(zip(names, x[i], strict=True))
            target = y[i] > 0 if not delay else None
            yield client.event(i, features, target=target, format=events.format)
        if delay and i >= delay:
            yield client.label(i - delay, target=y[i - delay] > 0, format=events.format)
