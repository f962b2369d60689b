"""Dead letters, from outside: choose, show, and send them back to the end of the topic they came from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from npstream.codec.dead_letters import DeadLetter, read_dead_letter
from npstream.codec.text import text_of
from npstream.port import Log
from npstream.records import Channel, Headers, Topics
from npstream.report.page import text_table

_VALUE_SHOWN = 60


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which dead letters are meant; empty and None mean all. Offsets are those of the events."""

    partitions: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    first_offset: int | None = None
    end_offset: int | None = None
    first_ms: int | None = None
    end_ms: int | None = None

    def takes(self, dead_letter: DeadLetter) -> bool:
        """Whether this one is meant."""
        return (
            (not self.reasons or dead_letter.reason in self.reasons)
            and (self.first_offset is None or dead_letter.offset >= self.first_offset)
            and (self.end_offset is None or dead_letter.offset < self.end_offset)
            and (self.first_ms is None or dead_letter.timestamp_ms >= self.first_ms)
            and (self.end_ms is None or dead_letter.timestamp_ms < self.end_ms)
        )


def chosen(log: Log, choice: DeadLetterFilter) -> Iterator[DeadLetter]:
    """The dead letters that are meant, partition after partition. Raises `UsageError` on a record that is none.

    An event that was refused again after a rollback has several; the first counts. An event of another
    topic that had the same name and offset before is another event.
    """
    for partition in choice.partitions or range(log.partitions(Channel.DEAD_LETTERS)):
        ends = log.ends(Channel.DEAD_LETTERS, partition)
        seen: set[int] = set()
        for record in log.read(Channel.DEAD_LETTERS, partition, ends.begin, ends.stable):
            dead_letter = read_dead_letter(record)
            event = hash((dead_letter.topic, dead_letter.offset, dead_letter.timestamp_ms, dead_letter.value))
            again = event in seen
            seen.add(event)
            if not again and choice.takes(dead_letter):
                yield dead_letter


def counted(dead_letters: Iterable[DeadLetter], limit: int) -> tuple[Counter[str], list[DeadLetter]]:
    """How many there are for each reason, and the first `limit` of them."""
    reasons: Counter[str] = Counter()
    few: list[DeadLetter] = []
    for dead_letter in dead_letters:
        reasons[dead_letter.reason] += 1
        if len(few) < limit:
            few.append(dead_letter)
    return reasons, few


@dataclass(frozen=True, slots=True)
class Redriven:
    """What a redrive did: sent (or would have), and left out: from another topic, or not whole any more."""

    sent: int
    foreign: int
    truncated: int
    by_partition: dict[int, int]


def redrive(
    log: Log,
    topics: Topics,
    dead_letters: Iterable[DeadLetter],
    *,
    dry_run: bool,
    pace: Callable[[int], None],
    chunk: int,
) -> Redriven:
    """Append each event or label as it was first sent, without our headers, to the topic and partition it came from.

    Order is not kept: they come after everything that followed them. After every
    `chunk` of them `pace` gets how many were sent so far and may wait.
    """
    sent, foreign, truncated = 0, 0, 0
    by_partition: Counter[int] = Counter()
    own = iter(dead_letters)
    channels = {topics.events: Channel.EVENTS, topics.labels: Channel.LABELS}
    while few := list(islice(own, chunk)):
        for (topic, partition), records in _whole(few).items():
            if topic in channels:
                if not dry_run:
                    log.append(channels[topic], partition, records)
                by_partition[partition] += len(records)
        foreign += sum(dead_letter.topic not in channels for dead_letter in few)
        truncated += sum(dead_letter.topic in channels and dead_letter.truncated is not None for dead_letter in few)
        sent = by_partition.total()
        pace(sent)
    return Redriven(sent, foreign, truncated, dict(sorted(by_partition.items())))


def _whole(
    dead_letters: Sequence[DeadLetter],
) -> dict[tuple[str, int], list[tuple[bytes | None, bytes | None, Headers, int]]]:
    """What is whole in the dead letters, by the topic and partition each came from, in order."""
    found: dict[tuple[str, int], list[tuple[bytes | None, bytes | None, Headers, int]]] = {}
    for dead_letter in dead_letters:
        if dead_letter.truncated is None:
            event = (dead_letter.key, dead_letter.value, dead_letter.headers, dead_letter.timestamp_ms)
            found.setdefault((dead_letter.topic, dead_letter.partition), []).append(event)
    return found


def paced(rate: float | None, clock: Callable[[], float], sleep: Callable[[float], None]) -> Callable[[int], None]:
    """A function that takes how many were sent so far and waits, for `rate` per second at most; None never waits."""
    started = clock()

    def wait(sent: int) -> None:
        if rate is not None:
            sleep(max(0.0, started + sent / rate - clock()))

    return wait


def dead_letter_json(dead_letter: DeadLetter) -> dict[str, Any]:
    """One dead letter in full."""
    return {
        "topic": dead_letter.topic,
        "partition": dead_letter.partition,
        "offset": dead_letter.offset,
        "timestamp": dead_letter.timestamp_ms,
        "reason": dead_letter.reason,
        "detail": dead_letter.detail,
        "truncated": dead_letter.truncated,
        "key": text_of(dead_letter.key),
        "headers": [[name, text_of(content)] for name, content in dead_letter.headers],
        "value": text_of(dead_letter.value),
    }


def list_text(reasons: Counter[str], few: list[DeadLetter]) -> str:
    """Counts by reason, then a line for each of the few."""
    if not reasons:
        return "no dead letters"
    counts = "\n".join(f"{count:>8}  {reason}" for reason, count in reasons.most_common())
    rows = [[f"{item.partition}/{item.offset}", _when(item), item.reason, _shown(item.value)] for item in few]
    table = text_table(("event", "time", "reason", "value"), rows) if rows else ""
    left = sum(reasons.values()) - len(few)
    more = f"\nand {left} more (--limit)" if left else ""
    return f"{counts}\n\n{table}{more}" if rows else counts


def dead_letter_text(dead_letter: DeadLetter) -> str:
    """One dead letter in full, for a person."""
    headers = "\n".join(f"  header     {name}: {content!r}" for name, content in dead_letter.headers)
    lines = [
        f"{dead_letter.topic}/{dead_letter.partition} offset {dead_letter.offset}, {_when(dead_letter)}",
        f"  reason     {dead_letter.reason}",
        f"  detail     {dead_letter.detail}",
        *([f"  truncated  {dead_letter.truncated}"] if dead_letter.truncated else []),
        f"  key        {dead_letter.key!r}",
        *([headers] if headers else []),
        f"  value      {dead_letter.value!r}",
    ]
    return "\n".join(lines)


def _when(dead_letter: DeadLetter) -> str:
    try:
        return datetime.fromtimestamp(dead_letter.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # a producer may send any number
        return f"{dead_letter.timestamp_ms} ms"


def _shown(value: bytes | None) -> str:
    text = "(none)" if value is None else ascii(value.decode(errors="backslashreplace"))[1:-1]
    return text if len(text) <= _VALUE_SHOWN else text[: _VALUE_SHOWN - 3] + "..."
