"""What a partition has published, by the input offset it belongs to, in the order of the input.

After a position was moved back, events are decided again: what was published for
them before no longer counts. Where no reset explains it, a second decision on the
same event is a finding and is passed on as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from npstream.codec.envelope import BEFORE_HEADER, OFFSET_HEADER
from npstream.codec.resets import Reset
from npstream.errors import Retryable
from npstream.port import Log
from npstream.records import Channel, Headers, Position, Record

_BISECT_FROM = 20_000
"""Ranges longer than this are searched by halves first; a probe costs as much as reading a few thousand records."""
_SETTLE_PAUSE_S = 0.05
_DIGITS_MAX = 19


@dataclass(frozen=True, slots=True)
class Published:
    """One record of an output topic; `event_offset` is that of its event, -1 when it does not say."""

    event_offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class Pass:
    """A run of records in the order of the input, from log offset `begin` to `end`.

    `first` is the lowest input offset that can be in it. Input offsets from `below` on were decided again later.
    `reset` is the one that it came after, if any.
    """

    begin: int
    end: int
    first: int
    below: int
    reset: Reset | None = None


def event_offset(headers: Headers) -> int:
    """The input offset in the headers of a record, -1 when there is none that can be read.

    The last one counts: a dead letter that was sent back and failed again has several,
    and one of the labels topic says last which event it was read before.
    """
    found = [content for name, content in headers if name in (OFFSET_HEADER, BEFORE_HEADER)]
    text = found[-1] if found else None
    return int(text) if text is not None and text.isdigit() and len(text) <= _DIGITS_MAX else -1


def _order(headers: Headers) -> tuple[int, int]:
    """Records of one pass increase by this: several bad labels, each with its own offset, may come before one event."""
    found = event_offset(headers)
    if not headers or headers[-1][0] != BEFORE_HEADER:
        return found, 2**63
    return found, event_offset(headers[:-1])


def published(
    log: Log, channel: Channel, partition: int, begin: int, end: int, resets: Sequence[Reset]
) -> Iterator[Published]:
    """What was published for input offsets from `begin` to `end`, and records that do not say what they are for."""
    for part in passes(log, channel, partition, begin, resets):
        for record in log.read(channel, partition, part.begin, part.end):
            item = Published(event_offset(record.headers), record)
            if item.event_offset < 0 or begin <= item.event_offset < min(end, part.below):
                yield item


def passes(log: Log, channel: Channel, partition: int, begin: int, resets: Sequence[Reset]) -> list[Pass]:
    """The runs that hold what was published for input offsets from `begin` on; reads all of a topic with resets."""
    ends = log.ends(channel, partition)
    if not resets:
        return [Pass(_bisect(log, channel, partition, begin), ends.stable, 0, 2**63)]
    runs: list[tuple[int, int, Reset | None]] = []  # (log offset, input offset) of the first record, reset before it
    left = list(resets)
    last = -1, 0
    for record in log.read(channel, partition, ends.begin, ends.stable):
        place = found, _ = _order(record.headers)
        reset = _explaining(found, last[0], left) if runs and place <= last else None
        if not runs or reset is not None:
            runs.append((record.offset, found, reset))
        last = place if found >= 0 else last
    if not runs:
        return []
    bounds = [*(first for first, _, _ in runs[1:]), ends.stable]
    return [
        Pass(first, bound, begun, min((later for _, later, _ in runs[i + 1 :]), default=2**63), reset)
        for i, ((first, begun, reset), bound) in enumerate(zip(runs, bounds, strict=True))
    ]


def _explaining(found: int, last: int, left: list[Reset]) -> Reset | None:
    """The reset that lets an event at or below one that was decided come again; a reset does so once.

    Those before it in `left` have led to nothing in this topic; all of them are taken out.
    """
    at = next((i for i, reset in enumerate(left) if reset.to <= found and last < reset.origin), None)
    if at is None:
        return None
    reset = left[at]
    del left[: at + 1]
    return reset


def _bisect(log: Log, channel: Channel, partition: int, offset: int) -> int:
    """A log offset below which nothing is for `offset` or a later event; good enough, not exact.

    It is looked for where it would be if outputs were spread evenly over the events, and then by halves.
    """
    ends, events = log.ends(channel, partition), log.ends(Channel.EVENTS, partition)
    low, high = ends.begin, ends.stable
    share = (offset - events.begin) / max(events.stable - events.begin, 1)
    likely = low + round(share * (high - low))
    guesses = [likely - _BISECT_FROM // 2, likely + _BISECT_FROM // 2]
    while offset > 0 and high - low > _BISECT_FROM:
        guess = guesses.pop(0) if guesses else low
        at = guess if low < guess < high else (low + high) // 2
        record = next(log.read(channel, partition, at, high), None)
        if record is None or event_offset(record.headers) >= offset or event_offset(record.headers) < 0:
            high = at
        else:
            low = at
    return low


def newest_event_offset(log: Log, channel: Channel, partition: int) -> int | None:
    """The input offset of the newest record, None when there is none."""
    ends = log.ends(channel, partition)
    width = 1
    while width // 2 < ends.stable - ends.begin:
        # The end of a log holds marks of transactions too: look further back until there is a record.
        found = list(log.read(channel, partition, max(ends.begin, ends.stable - width), ends.stable))
        if found:
            return event_offset(found[-1].headers)
        width *= 8
    return None


def oldest_event_offset(log: Log, partition: int, resets: Sequence[Reset] = ()) -> int | None:
    """The lowest input offset of the kept outputs, None when there is none; some may be lower after resets."""
    found = [_oldest(log, channel, partition, resets) for channel in (Channel.DECISIONS, Channel.DEAD_LETTERS)]
    return min((offset for offset in found if offset is not None), default=None)


def kept_from(log: Log, channel: Channel, partition: int, decided: int, resets: Sequence[Reset]) -> int:
    """The input offset from which on retention has taken nothing of a topic; `decided` where it has taken all."""
    if log.ends(channel, partition).begin == 0:
        return 0
    oldest = _oldest(log, channel, partition, resets)
    # Several dead letters may have come before one event: some of those before the first kept event may be gone.
    return decided if oldest is None else oldest + (channel is Channel.DEAD_LETTERS)


def _oldest(log: Log, channel: Channel, partition: int, resets: Sequence[Reset]) -> int | None:
    ends = log.ends(channel, partition)
    first = next(log.read(channel, partition, ends.begin, ends.stable), None)
    found = [] if first is None else [event_offset(first.headers)]
    found += [part.first for part in passes(log, channel, partition, 0, resets)] if resets else []
    return min((offset for offset in found if offset >= 0), default=None)


def decided_below(log: Log, partition: int, position: Position | None) -> int:
    """Everything below this input offset has been decided; without a position, as far as the outputs show."""
    if position is not None:
        return position.next_offset
    found = [newest_event_offset(log, channel, partition) for channel in (Channel.DECISIONS, Channel.DEAD_LETTERS)]
    return max((offset + 1 for offset in found if offset is not None), default=0)


def wait_settled(
    log: Log, partition: int, clock: Callable[[], float], sleep: Callable[[float], None], timeout_s: float
) -> None:
    """Wait until everything decided so far can be read. Raises `Retryable` when a transaction holds it back."""
    deadline = clock() + timeout_s
    for channel in (Channel.DECISIONS, Channel.DEAD_LETTERS):
        high = log.ends(channel, partition).high
        while log.ends(channel, partition).stable < high:
            if clock() > deadline:
                raise Retryable(
                    f"{channel.name.lower()} of partition {partition} are held back by an undecided transaction: "
                    "wait, or run `npstream doctor`, which names hanging ones and their remedy"
                )
            sleep(_SETTLE_PAUSE_S)
