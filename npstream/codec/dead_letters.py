"""Dead letters: a bad event as it came, with headers that say what is wrong and where it was.

Key, value and headers are untouched (headers whose names cannot be read are left
out); five headers are added at the end, so that an event that fails again after
it was sent back keeps its history:

    npstream-reason      one of `REASONS`
    npstream-detail      one sentence, ASCII, at most 256 bytes
    npstream-topic       where the event was: topic,
    npstream-partition   partition, in decimal,
    npstream-offset      offset, in decimal

A sixth, `npstream-before`, follows on dead letters of the labels topic: the
offset of the event that they were read before.

What would not fit the topic is cut: a value beyond `VALUE_MAX_BYTES` to its
first bytes, a key or headers beyond their bounds to nothing. Then a sixth
header before the five, `npstream-truncated`, has the lengths and the SHA-256
of what was cut, as JSON; the event itself stays where it was.
"""

from dataclasses import dataclass
from hashlib import sha256

import orjson

from npstream.codec.envelope import BEFORE_HEADER, OFFSET_HEADER, published_timestamp
from npstream.codec.screen import HEADERS_MAX_BYTES, KEY_MAX_BYTES, headers_bytes
from npstream.errors import BadEvent, UsageError
from npstream.records import UNREADABLE_HEADERS, Channel, Headers, Output, Record

REASON_HEADER = "npstream-reason"
DETAIL_HEADER = "npstream-detail"
TOPIC_HEADER = "npstream-topic"
PARTITION_HEADER = "npstream-partition"

ADDED_HEADERS = (REASON_HEADER, DETAIL_HEADER, TOPIC_HEADER, PARTITION_HEADER, OFFSET_HEADER)
"""The headers a dead letter ends with, in order."""

TRUNCATED_HEADER = "npstream-truncated"

VALUE_MAX_BYTES = 700_000
"""Longest value that is published whole: with the longest key and headers the record stays below the 1,000,000 bytes
that every topic takes by default, uncompressed, since what the sender's compression folds ours may not."""
_VALUE_KEPT_BYTES = 4_096
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
    truncated: str | None = None
    """What was cut off, as JSON; None when the event is here as it was sent."""


def dead_letter(record: Record, error: BadEvent, topic: str, partition: int, before: int | None = None) -> Output:
    """The record to publish for a bad event of `topic`; `before` is for labels."""
    added = (
        error.reason.encode("ascii"),
        error.detail.encode("ascii", "backslashreplace")[:_DETAIL_MAX_BYTES],
        topic.encode(),
        b"%d" % partition,
        b"%d" % record.offset,
    )
    key, value, own = _cut(record)
    headers = [*own, *zip(ADDED_HEADERS, added, strict=True)]
    if before is not None:
        headers.append((BEFORE_HEADER, b"%d" % before))
    return Output(Channel.DEAD_LETTERS, key, value, headers, published_timestamp(record.timestamp_ms))


def _cut(record: Record) -> tuple[bytes | None, bytes | None, Headers]:
    """Key, value and headers as they can be published, with a header that describes what cannot."""
    key, value, headers = record.key, record.value, record.headers
    cut: dict[str, dict[str, object]] = {}
    if key is not None and len(key) > KEY_MAX_BYTES:
        cut["key"] = _described(key)
        key = None
    if value is not None and len(value) > VALUE_MAX_BYTES:
        cut["value"] = _described(value)
        value = value[:_VALUE_KEPT_BYTES]
    if headers == UNREADABLE_HEADERS:
        headers = ()
    elif (size := headers_bytes(headers)) > HEADERS_MAX_BYTES:
        cut["headers"] = {"bytes": size}
        headers = ()
    if not cut:
        return key, value, headers
    return key, value, [*headers, (TRUNCATED_HEADER, orjson.dumps(cut, option=orjson.OPT_SORT_KEYS))]


def _described(content: bytes) -> dict[str, object]:
    return {"bytes": len(content), "sha256": sha256(content).hexdigest()}


def read_dead_letter(record: Record) -> DeadLetter:
    """Take a record of the dead-letter topic apart. Raises `UsageError` when npstream did not write it."""
    headers = tuple(record.headers)
    if headers and headers[-1][0] == BEFORE_HEADER:
        headers = headers[:-1]
    original, added = headers[: -len(ADDED_HEADERS)], headers[-len(ADDED_HEADERS) :]
    reason, detail, topic, partition, offset = _texts(added, record.offset)
    if not (partition.isdecimal() and offset.isdecimal()):
        raise _foreign(record.offset)
    truncated = None
    if original and original[-1][0] == TRUNCATED_HEADER:
        *kept, (_, content) = original
        original, truncated = tuple(kept), (content or b"").decode(errors="replace")
    place = (reason, detail, topic, int(partition), int(offset))
    return DeadLetter(record.key, record.value, original, record.timestamp_ms, *place, truncated)


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
