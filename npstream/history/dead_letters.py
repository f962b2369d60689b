"""Dead letters, from outside: choose, show, and send them back to the end of the events topic."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from npstream.codec.dead_letters import DeadLetter, read_dead_letter
from npstream.port import Log
from npstream.records import Channel, Headers
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

    def takes(self, letter: DeadLetter) -> bool:
        """Whether this one is meant."""
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (self.first_offset is None or letter.offset >= self.first_offset)
            and (self.end_offset is None or letter.offset < self.end_offset)
            and (self.first_ms is None or letter.timestamp_ms >= self.first_ms)
            and (self.end_ms is None or letter.timestamp_ms < self.end_ms)
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
            letter = read_dead_letter(record)
            event = hash((letter.topic, letter.offset, letter.timestamp_ms, letter.value))
            again = event in seen
            seen.add(event)
            if not again and choice.takes(letter):
                yield letter


def counted(letters: Iterable[DeadLetter], limit: int) -> tuple[Counter[str], list[DeadLetter]]:
    """How many there are for each reason, and the first `limit` of them."""
    reasons: Counter[str] = Counter()
    few: list[DeadLetter] = []
    for letter in letters:
        reasons[letter.reason] += 1
        if len(few) < limit:
            few.append(letter)
    return reasons, few


@dataclass(frozen=True, slots=True)
class Redriven:
    """What a redrive did: sent (or would have), and left out: from another topic, or not whole any more."""

    sent: int
    foreign: int
    truncated: int
    by_partition: dict[int, int]


def redrive(
    log: Log, topic: str, letters: Iterable[DeadLetter], *, dry_run: bool, pace: Callable[[int], None], chunk: int
) -> Redriven:
    """Append each event as it was first sent, without our headers, to the partition it came from.

    Order is not kept: they come after everything that followed them. After every
    `chunk` of them `pace` is told how many were sent so far and may wait.
    """
    sent, foreign, truncated = 0, 0, 0
    by_partition: Counter[int] = Counter()
    own = iter(letters)
    while few := list(islice(own, chunk)):
        for partition, records in _events(few, topic).items():
            if not dry_run:
                log.append(Channel.EVENTS, partition, records)
            by_partition[partition] += len(records)
        foreign += sum(letter.topic != topic for letter in few)
        truncated += sum(letter.topic == topic and letter.truncated is not None for letter in few)
        sent = by_partition.total()
        pace(sent)
    return Redriven(sent, foreign, truncated, dict(sorted(by_partition.items())))


def _events(
    letters: Sequence[DeadLetter], topic: str
) -> dict[int, list[tuple[bytes | None, bytes | None, Headers, int]]]:
    """The whole events in the letters of one topic, by the partition each came from, in order."""
    found: dict[int, list[tuple[bytes | None, bytes | None, Headers, int]]] = {}
    for letter in letters:
        if letter.topic == topic and letter.truncated is None:
            event = (letter.key, letter.value, letter.headers, letter.timestamp_ms)
            found.setdefault(letter.partition, []).append(event)
    return found


def paced(rate: float | None, clock: Callable[[], float], sleep: Callable[[float], None]) -> Callable[[int], None]:
    """What waits, told how many were sent so far, so that no more than `rate` a second are; None never waits."""
    started = clock()

    def wait(sent: int) -> None:
        if rate is not None:
            sleep(max(0.0, started + sent / rate - clock()))

    return wait


def letter_json(letter: DeadLetter, text_of: Callable[[bytes | None], Any]) -> dict[str, Any]:
    """One dead letter in full; `text_of` turns bytes into what JSON can hold."""
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp_ms,
        "reason": letter.reason,
        "detail": letter.detail,
        "truncated": letter.truncated,
        "key": text_of(letter.key),
        "headers": [[name, text_of(content)] for name, content in letter.headers],
        "value": text_of(letter.value),
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


def letter_text(letter: DeadLetter) -> str:
    """One dead letter in full, for a person."""
    headers = "\n".join(f"  header     {name}: {content!r}" for name, content in letter.headers)
    lines = [
        f"{letter.topic}/{letter.partition} offset {letter.offset}, {_when(letter)}",
        f"  reason     {letter.reason}",
        f"  detail     {letter.detail}",
        *([f"  truncated  {letter.truncated}"] if letter.truncated else []),
        f"  key        {letter.key!r}",
        *([headers] if headers else []),
        f"  value      {letter.value!r}",
    ]
    return "\n".join(lines)


def _when(letter: DeadLetter) -> str:
    try:
        return datetime.fromtimestamp(letter.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # a producer may send any number
        return f"{letter.timestamp_ms} ms"


def _shown(value: bytes | None) -> str:
    text = "(none)" if value is None else ascii(value.decode(errors="backslashreplace"))[1:-1]
    return text if len(text) <= _VALUE_SHOWN else text[: _VALUE_SHOWN - 3] + "..."
