"""Decisions found by the id or the key of their event, in the topic that they were published to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from npstream.codec.decisions import Decision, decode_decision, id_prefixes
from npstream.codec.resets import Reset
from npstream.errors import UsageError
from npstream.history.published import event_offset, passes
from npstream.port import Log
from npstream.records import Channel, Record

LATE_MAX = 10_000
"""So many decisions in a row that are behind a time range end the search: events come somewhat out of order."""
_AVRO_FRAME = 5


@dataclass(frozen=True, slots=True)
class Sought:
    """What is known of a decision: at least its id or its key, and from when to when its event was, in ms."""

    id: str | None = None
    key: bytes | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class Hit(NamedTuple):
    """A decision, and the input offset of its event."""

    partition: int
    offset: int
    timestamp_ms: int
    decision: Decision


def find_decisions(log: Log, partition: int, sought: Sought, resets: Sequence[Reset] = ()) -> Iterator[Hit]:
    """The decisions that are meant, in the order in which they were published.

    With a time range the partition's `resets` are needed: after one, earlier events are decided again.
    """
    json, avro = _prefixes(sought.id)
    for record in _candidates(log, partition, sought, resets):
        value = record.value or b""
        if json and not value.startswith(json) and not value.startswith(avro, _AVRO_FRAME):
            continue
        if _is_meant(record, sought):
            hit = _hit(partition, record)
            # Bytes that begin as a decision with this id may be another one in the other format.
            if hit is not None and (sought.id is None or str(hit.decision.id) == sought.id):
                yield hit


def _candidates(log: Log, partition: int, sought: Sought, resets: Sequence[Reset]) -> Iterator[Record]:
    """Decisions that may be of that time.

    Not by the times of the decisions topic: it also holds the ends of transactions, with the time of their commit,
    which a search by time finds first. The events topic says where the time begins.
    """
    if sought.since_ms is None and sought.until_ms is None:
        ends = log.ends(Channel.DECISIONS, partition)
        yield from log.read(Channel.DECISIONS, partition, ends.begin, ends.stable)
        return
    first = 0 if sought.since_ms is None else log.offset_at(partition, sought.since_ms, Channel.EVENTS)
    for part in passes(log, Channel.DECISIONS, partition, first, resets):
        late = 0
        for record in log.read(Channel.DECISIONS, partition, part.begin, part.end):
            yield record
            late = late + 1 if sought.until_ms is not None and record.timestamp_ms >= sought.until_ms else 0
            if late == LATE_MAX:
                break


def _prefixes(identity: str | None) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    prefixes = () if identity is None else id_prefixes(identity)
    json = tuple(prefix for prefix in prefixes if prefix.startswith(b"{"))
    return json, tuple(prefix for prefix in prefixes if prefix not in json)


def _is_meant(record: Record, sought: Sought) -> bool:
    if sought.key is not None and record.key != sought.key:
        return False
    after = sought.since_ms is None or record.timestamp_ms >= sought.since_ms
    return after and (sought.until_ms is None or record.timestamp_ms < sought.until_ms)


def _hit(partition: int, record: Record) -> Hit | None:
    offset = event_offset(record.headers)
    if offset < 0:
        return None
    try:
        return Hit(partition, offset, record.timestamp_ms, decode_decision(record.value))
    except UsageError:
        return None  # damaged: audit finds it
