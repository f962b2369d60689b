"""A range of the events topic, as a command line names it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from npstream.errors import UsageError
from npstream.port import Log
from npstream.records import Channel
from npstream.replay.source import TopicSource

_TAIL = 100
"""Offsets looked at to date a partition's end: the very last may be gone, or a transaction's marker."""


NEITHER = "is neither an offset nor a timestamp"
"""What is wrong with a text where either would do."""


@dataclass(frozen=True, slots=True)
class Range:
    """Part of a topic: from, to (ISO timestamps or offsets, None for the ends), and which partitions (empty: all)."""

    begin: str | None = None
    end: str | None = None
    partitions: tuple[int, ...] = ()


def topic_source(log: Log, topic: str, where: Range, *, has_labels: bool = False) -> TopicSource:
    """A range of the events topic. Raises `UsageError` when it is empty or lies in the future."""
    ranges, held = {}, {}
    for partition in partitions_of(log, topic, where.partitions):
        ends = log.ends(Channel.EVENTS, partition)
        begin = max(ends.begin, offset_of(log, partition, where.begin, ends.begin))
        end = min(ends.stable, offset_of(log, partition, where.end, ends.stable))
        if begin < end:
            ranges[partition] = (begin, end)
        if ends.begin < ends.stable:
            held[partition] = (ends.begin, ends.stable)
    if not ranges:
        raise UsageError(_nothing(log, topic, where, held))
    return TopicSource(log, topic, ranges, has_labels=has_labels)


def partitions_of(log: Log, topic: str, chosen: Sequence[int]) -> list[int]:
    """The chosen partitions of the events topic, all when none is chosen. Raises `UsageError` for one too many."""
    count = log.partitions(Channel.EVENTS)
    wrong = [p for p in chosen if not 0 <= p < count]
    if wrong:
        held = f"partitions 0 to {count - 1}" if count > 1 else "partition 0 only"
        raise UsageError(f"partition {wrong[0]} does not exist: {topic} has {held}")
    return list(chosen) or list(range(count))


def offset_of(log: Log, partition: int, text: str | None, default: int) -> int:
    """The input offset that a text means, an offset itself or an ISO timestamp. Raises `UsageError` for neither."""
    if text is None:
        return default
    return int(text) if text.isdecimal() else log.offset_at(partition, moment_ms(text, NEITHER))


def moment_ms(text: str, wrong: str = "is not a timestamp") -> int:
    """The milliseconds of an ISO timestamp that names its zone. Raises `UsageError`: anything else `wrong`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} {wrong} such as 2026-05-01T00:00:00Z") from None
    if moment.tzinfo is None:
        raise UsageError(f"{text!r} must name its time zone, for instance {moment.isoformat()}Z for UTC")
    return int(moment.timestamp() * 1000)


def _nothing(log: Log, topic: str, where: Range, held: Mapping[int, tuple[int, int]]) -> str:
    """Why there is nothing to read, and what there is instead."""
    if not held:
        return f"{topic}: is empty; send events first, for instance with `npstream produce`"
    shown = [f"{begin} to {end - 1} in partition {partition}" for partition, (begin, end) in held.items()]
    offsets = ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")
    newest = max((_newest_ms(log, partition, end) for partition, (_, end) in held.items()), default=0)
    return (
        f"{topic}: no event between {where.begin or 'the start'} and {where.end or 'the end'}; "
        f"it holds offsets {offsets}, and its newest event is of {_date(newest)}"
    )


def _newest_ms(log: Log, partition: int, end: int) -> int:
    tail = log.read(Channel.EVENTS, partition, max(0, end - _TAIL), end)
    return max((record.timestamp_ms for record in tail), default=0)


def _date(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms // 1000, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"timestamp {timestamp_ms}"
