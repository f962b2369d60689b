"""From what a command was given to a source: a file by its ending, or a range of the topic."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from npstream import files
from npstream.backtest.lines import read_lines, read_partitions
from npstream.backtest.replay import replay
from npstream.backtest.source import ArraySource, RecordSource, Source, TopicSource
from npstream.errors import UsageError
from npstream.partition import PartitionConfig
from npstream.port import Log
from npstream.records import Batch, Channel

_SAMPLE = 2000
"""Records timed for a plan: a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Range:
    """Part of a topic: from, to (ISO timestamps or offsets, None for the ends), and which partitions (empty: all)."""

    begin: str | None = None
    end: str | None = None
    partitions: tuple[int, ...] = ()


def features_of(path: Path) -> int:
    """Features of the events in a file: its columns, or the length of the first event's x."""
    if path.suffix != ".jsonl":
        return int(files.read(path)[0].shape[1])
    for record in read_lines(path):
        try:
            document = orjson.loads(record.value or b"")
        except orjson.JSONDecodeError:
            continue
        if isinstance(document, dict) and isinstance(document.get("x"), list):
            return len(document["x"])
    raise UsageError(f"{path}: no event with an array x to count features by; give --config")


def file_source(path: Path, d: int, partitions: int, delay: int) -> Source:
    """A file as a source. Raises `UsageError` when it cannot be read or has another number of features."""
    if path.suffix == ".jsonl":
        return RecordSource(read_partitions(path))
    x, y = files.read(path)
    if x.shape[1] != d:
        raise UsageError(f"{path}: has {x.shape[1]} features, the settings say {d} (model.d)")
    return ArraySource(x, y, partitions, delay)


def topic_source(log: Log, topic: str, where: Range) -> TopicSource:
    """A range of the events topic. Raises `UsageError` when it is empty or lies in the future."""
    ranges = {}
    for partition in partitions_of(log, topic, where.partitions):
        ends = log.ends(Channel.EVENTS, partition)
        begin = offset_of(log, partition, where.begin, ends.begin)
        end = offset_of(log, partition, where.end, ends.stable)
        if begin < min(end, ends.stable):
            ranges[partition] = (max(begin, ends.begin), min(end, ends.stable))
    if not ranges:
        raise UsageError(f"{topic}: no event between {where.begin or 'the start'} and {where.end or 'the end'}")
    return TopicSource(log, topic, ranges)


def partitions_of(log: Log, topic: str, chosen: Sequence[int]) -> list[int]:
    """The chosen partitions of the events topic, all when none is chosen. Raises `UsageError` for one too many."""
    count = log.partitions(Channel.EVENTS)
    wrong = [p for p in chosen if not 0 <= p < count]
    if wrong:
        raise UsageError(f"partition {wrong[0]} does not exist: {topic} has partitions 0 to {count - 1}")
    return list(chosen) or list(range(count))


def offset_of(log: Log, partition: int, text: str | None, default: int) -> int:
    """The input offset that a text means, an offset itself or an ISO timestamp. Raises `UsageError` for neither."""
    if text is None:
        return default
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is neither an offset nor a timestamp such as 2026-05-01T00:00:00Z") from None
    if moment.tzinfo is None:
        raise UsageError(f"{text!r} must name its time zone, for instance {text}Z for UTC")
    return log.offset_at(partition, int(moment.timestamp() * 1000))


@dataclass(frozen=True, slots=True)
class _Few:
    """The first batches of another source, to be timed."""

    source: Source

    @property
    def format(self) -> Any:
        return self.source.format

    @property
    def topic(self) -> str | None:
        return self.source.topic

    @property
    def ranges(self) -> Any:
        return self.source.ranges

    def rounds(self) -> Iterator[list[Batch]]:
        yield from islice(self.source.rounds(), max(1, _SAMPLE // 1000))


def plan_of(config: PartitionConfig, source: Source) -> dict[str, Any]:
    """How many events and bytes a source has and how long a replay takes, measured on its first records."""
    few = _Few(source)
    replay(config, few)
    started = time.perf_counter()
    result = replay(config, few)
    seconds = time.perf_counter() - started
    records = [record for batches in few.rounds() for batch in batches for record in batch.records]
    size = sum(len(record.value or b"") + len(record.key or b"") for record in records)
    events = sum(end - begin for begin, end in source.ranges.values())
    each = seconds / max(1, result.events)
    return {
        "events": events,
        "partitions": len(source.ranges),
        "bytes": int(events * size / max(1, len(records))),
        "seconds": events * each,
        "us_per_event": 1e6 * each,
    }
