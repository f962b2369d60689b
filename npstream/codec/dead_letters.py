"""Dead letters: a bad event as it came, with headers that say what is wrong and where it was.

Key, value and headers are untouched; five headers are added at the end, so that
an event that fails again after it was sent back keeps its history:

    npstream-reason      one of `REASONS`
    npstream-detail      one sentence, ASCII, at most 256 bytes
    npstream-topic       where the event was: topic,
    npstream-partition   partition, in decimal,
    npstream-offset      offset, in decimal
"""

from dataclasses import dataclass

from npstream.codec.envelope import OFFSET_HEADER, published_timestamp
from npstream.errors import BadEvent, UsageError
from npstream.records import Channel, Headers, Output, Record

REASON_HEADER = "npstream-reason"
DETAIL_HEADER = "npstream-detail"
TOPIC_HEADER = "npstream-topic"
PARTITION_HEADER = "npstream-partition"

ADDED_HEADERS = (REASON_HEADER, DETAIL_HEADER, TOPIC_HEADER, PARTITION_HEADER, OFFSET_HEADER)
"""The headers a dead letter ends with, in order."""

_DETAIL_MAX_BYTES = 256


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One dead letter, read back: the event as it was sent, and what was wrong with it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    reason: str
    detail: str
    topic: str
    partition: int
    offset: int


def dead_letter(record: Record, error: BadEvent, topic: str, partition: int) -> Output:
    """The record to publish for a bad event of `topic`."""
    added = (
        error.reason.encode("ascii"),
        error.detail.encode("ascii", "backslashreplace")[:_DETAIL_MAX_BYTES],
        topic.encode(),
        b"%d" % partition,
        b"%d" % record.offset,
    )
    headers = [*record.headers, *zip(ADDED_HEADERS, added, strict=True)]
    return Output(Channel.DEAD_LETTERS, record.key, record.value, headers, published_timestamp(record.timestamp_ms))


def read_dead_letter(record: Record) -> DeadLetter:
    """Take a record of the dead-letter topic apart. Raises `UsageError` when npstream did not write it."""
    headers = tuple(record.headers)
    original, added = headers[: -len(ADDED_HEADERS)], headers[-len(ADDED_HEADERS) :]
    reason, detail, topic, partition, offset = _texts(added, record.offset)
    if not (partition.isdecimal() and offset.isdecimal()):
        raise _foreign(record.offset)
    return DeadLetter(
        record.key, record.value, original, record.timestamp_ms, reason, detail, topic, int(partition), int(offset)
    )


def _texts(added: Headers, offset: int) -> list[str]:
    if tuple(name for name, _ in added) != ADDED_HEADERS:
        raise _foreign(offset)
    try:
        return [(content or b"").decode() for _, content in added]
    except UnicodeDecodeError:
        raise _foreign(offset) from None


def _foreign(offset: int) -> UsageError:
    return UsageError(
        f"the record at offset {offset} is not a dead letter: it does not end with the headers "
        f"{', '.join(ADDED_HEADERS)}; check the name of the dead-letter topic"
    )
