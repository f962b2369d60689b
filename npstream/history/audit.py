"""Audit: recompute what a range of events must have led to, and compare it with what was published, bit for bit.

Key, value, headers and timestamp of every decision and dead letter are compared
in the order of the input. Where the range ends at the committed offset, the
recomputed state must also match the committed proof, which catches an edited
event that no decision has followed yet.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from npstream.history.coverage import Coverage, Superseded, superseded
from npstream.history.published import Published, event_offset, published
from npstream.history.rebuild import Past, Walk, start_before, steps
from npstream.records import Channel, Headers, Output, Position

RecordContent = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
"""Key, value, headers, timestamp: what bit for bit means."""

_CHANNELS = (Channel.DECISIONS, Channel.DEAD_LETTERS)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a partition is not what it must be; either side is None when there is no record."""

    channel: Channel
    offset: int
    what: str
    expected: RecordContent | None
    found: RecordContent | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One partition's audit: how many records there had to be, how many were equal, and the first difference.

    `origin` is the offset the state was recomputed from, None when nothing was. `proof` says whether the
    committed digests were reproduced, None when the range does not end there.
    """

    partition: int
    coverage: Coverage
    superseded: tuple[Superseded, ...]
    origin: int | None = None
    decisions: int = 0
    dead_letters: int = 0
    reproduced: int = 0
    changes: int = 0
    proof: bool | None = None
    difference: Difference | None = None

    @property
    def holds(self) -> bool:
        """Whether everything that was recomputed is what it must be."""
        return self.difference is None and self.proof is not False


def audit(
    past: Past, coverage: Coverage, position: Position | None, progress: Callable[[int], None] = lambda records: None
) -> Verdict:
    """Audit what was published for the input offsets that can be recomputed."""
    begin, end = coverage.begin, coverage.end
    given_up = superseded(past)
    if coverage.is_empty:
        return Verdict(past.partition, coverage, given_up)
    walk = start_before(past, begin)
    origin = walk.processor.next_offset
    compare = compare_on_the_way(past, walk, begin, end, progress, coverage.kept_from)
    proof = None
    if position is not None and position.next_offset == end and compare.difference is None and walk.halted is None:
        proof = walk.processor.proof() == position.proof
    changes = sum(origin <= change.offset < end and not change.is_birth for change in past.history.changes)
    counts = compare.counts
    return Verdict(
        partition=past.partition,
        coverage=coverage,
        superseded=given_up,
        origin=origin,
        decisions=counts[Channel.DECISIONS],
        dead_letters=counts[Channel.DEAD_LETTERS],
        reproduced=compare.equal,
        changes=changes,
        proof=proof,
        difference=compare.difference,
    )


def compare_on_the_way(
    past: Past,
    walk: Walk,
    begin: int,
    end: int,
    progress: Callable[[int], None] = lambda records: None,
    kept_from: Mapping[Channel, int] | None = None,
) -> "Comparison":
    """Walk to `end` and compare what was published for offsets from `begin` on; stops at the first difference.

    `kept_from` are the input offsets before which retention has taken outputs.
    """
    compare = Comparison(past, begin, end, kept_from or {})
    for outputs in steps(past, walk, end):
        compare.take(outputs)
        progress(len(outputs))
        if compare.difference is not None:
            return compare
    compare.finish()
    return compare


class Comparison:
    """Expected outputs beside published ones, one after another, until the first difference."""

    def __init__(self, past: Past, begin: int, end: int, kept_from: Mapping[Channel, int]) -> None:
        self._end = end
        self._begin = {channel: max(begin, kept_from.get(channel, 0)) for channel in _CHANNELS}
        self._found: dict[Channel, Iterator[Published]] = {
            channel: published(past.log, channel, past.partition, self._begin[channel], end, past.history.resets)
            for channel in _CHANNELS
        }
        self.counts = dict.fromkeys(_CHANNELS, 0)
        self.equal = 0
        self.difference: Difference | None = None

    def take(self, outputs: list[Output]) -> None:
        """The next expected outputs."""
        for output in outputs:
            offset = event_offset(output.headers)
            if not self._begin[output.channel] <= offset < self._end:
                continue
            self.counts[output.channel] += 1
            self._compare(output, offset, next(self._found[output.channel], None))
            if self.difference is not None:
                return

    def _compare(self, output: Output, offset: int, found: Published | None) -> None:
        expected = _plain(output.key, output.value, output.headers, output.timestamp_ms)
        if found is None or found.event_offset > offset:
            self.difference = Difference(output.channel, offset, _missing(found), expected, None)
            return
        record = found.record
        got = _plain(record.key, record.value, record.headers, record.timestamp_ms)
        if got == expected:
            self.equal += 1
        elif found.event_offset == offset:
            self.difference = Difference(output.channel, offset, _what(expected, got), expected, got)
        else:
            self.difference = _unasked(output.channel, found)

    def finish(self) -> None:
        """Whatever else was published for this range was not asked for."""
        for channel, rest in self._found.items():
            extra = next(rest, None)
            if extra is not None and self.difference is None:
                self.difference = _unasked(channel, extra)


def _unasked(channel: Channel, found: Published) -> Difference:
    record = found.record
    got = _plain(record.key, record.value, record.headers, record.timestamp_ms)
    what = "does not say which event it is for" if found.event_offset < 0 else "is there though no event asked for it"
    return Difference(channel, found.event_offset, f"(log offset {record.offset}) {what}", None, got)


def _missing(following: Published | None) -> str:
    """A missing record, and how many are: retention takes the oldest only, so it was not retention."""
    until = "nothing is there after it" if following is None else f"the next one is for {following.event_offset}"
    return (
        f"is missing; {until}. Retention has not taken it: somebody deleted records, or deleted the topic and created "
        "it again"
    )


def _what(expected: RecordContent, got: RecordContent) -> str:
    names = ("key", "value", "headers", "timestamp")
    differing = [name for name, a, b in zip(names, expected, got, strict=True) if a != b]
    return f"has another {' and '.join(differing)}"


def _plain(key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> RecordContent:
    return key, value, tuple((name, content) for name, content in headers), timestamp_ms
