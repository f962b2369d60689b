"""Records that no format can make an event of, whatever their value: found before anything is decoded.

A decision carries its event's key and trace headers, so both are bounded here:
an output must fit its topic, or one hostile record would stop its partition.
"""

from collections.abc import Sequence
from itertools import chain

from npstream.errors import BadEvent
from npstream.records import UNREADABLE_HEADERS, Headers, Record

KEY_MAX_BYTES = 64_000
"""Longest key taken: keys name customers and cards, and are copied to the decision."""
HEADERS_MAX_BYTES = 64_000
"""Most bytes of all headers together, names and contents and 8 for each: far above what tracing systems send."""

_HEADER_BYTES = 8
"""What a header takes beside its name and content; so an empty one does not come for nothing."""

_PART = 64
_PART_MAX = min(KEY_MAX_BYTES, HEADERS_MAX_BYTES) // 4  # no character takes more than 4 bytes
"""Records are measured together: while so many have so few characters, none of them needs a look of its own."""


def unusable(records: Sequence[Record]) -> dict[int, BadEvent]:
    """What is wrong with the key or the headers of records, by index; empty for all but hostile batches."""
    if not records:
        return {}
    _, _, keys, _, headers = zip(*records, strict=True)
    if not any(headers) and max(map(len, filter(None, keys)), default=0) <= KEY_MAX_BYTES:
        return {}
    found: dict[int, BadEvent] = {}
    for begin in range(0, len(records), _PART):
        part = records[begin : begin + _PART]
        if _suspicious(part):
            found |= {begin + at: error for at, record in enumerate(part) if (error := _problem(record))}
    return found


def _suspicious(records: Sequence[Record]) -> bool:
    _, _, keys, _, headers = zip(*records, strict=True)
    if UNREADABLE_HEADERS in headers:
        return True
    texts = chain(keys, chain.from_iterable(chain.from_iterable(headers)))
    return sum(map(len, filter(None, texts))) + _HEADER_BYTES * sum(map(len, headers)) > _PART_MAX


def _problem(record: Record) -> BadEvent | None:
    if record.headers == UNREADABLE_HEADERS:
        return BadEvent("bad_headers", "the name of a header is not UTF-8")
    if len(record.key or b"") > KEY_MAX_BYTES:
        return BadEvent("oversize_key", f"the key has {len(record.key or b'')} bytes, at most {KEY_MAX_BYTES} allowed")
    size = headers_bytes(record.headers)
    if size > HEADERS_MAX_BYTES:
        return BadEvent("bad_headers", f"the headers have {size} bytes, at most {HEADERS_MAX_BYTES} allowed")
    return None


def headers_bytes(headers: Headers) -> int:
    """How much room headers take: names, contents, and the lengths of both."""
    return sum(_HEADER_BYTES + len(name.encode()) + len(content or b"") for name, content in headers)
