"""Single records: events and labels in the short form to send, decisions to read."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from npstream.codec import murmur2
from npstream.codec.decisions import Decision, decode_decision
from npstream.codec.envelope import OFFSET_HEADER
from npstream.codec.event import ID_MAX_BYTES, MAGNITUDE_MAX, EventFormat, RecordFormat
from npstream.records import Headers


@dataclass(frozen=True, slots=True)
class Message:
    """One record to produce. `timestamp_ms` 0 means: the time of sending."""

    key: bytes
    value: bytes
    headers: list[tuple[str, Any]] = field(default_factory=list)
    """Names and bytes. A list, and not bytes by type, because Kafka clients take nothing else."""
    timestamp_ms: int = 0


def event(
    identity: str | int,
    x: Iterable[float] | Mapping[str, float] | None = None,
    *,
    score: float | None = None,
    target: bool | None = None,
    key: bytes | None = None,
    timestamp_ms: int = 0,
    format: EventFormat = "json",
) -> Message:
    """An observation, with its label when `target` is given.

    Give features `x`, or a `score` for preset external. The key is the id unless
    given. Raises ValueError for what would become a dead letter:
    neither or both of them, numbers that are not finite or absurd, an id of no or too many bytes.
    """
    check_format(format)
    if (x is None) == (score is None):
        raise ValueError("give features x, or a score (preset external), and not both")
    numbers = [score] if x is None else list(x.values()) if isinstance(x, Mapping) else list(x)
    _check_id(identity)
    _check_numbers(numbers)
    if format == "f32":
        if isinstance(x, Mapping):
            raise ValueError("format f32 has no names: give x as a sequence in the order of events.features")
        value = struct.pack(f"<{len(numbers)}f", *numbers)
        return Message(_key(identity, key), value, _headers(identity, target), timestamp_ms)
    document: dict[str, object] = {"id": identity}
    if x is None:
        document["score"] = score
    else:
        document["x"] = dict(x) if isinstance(x, Mapping) else numbers
    if target is not None:
        document["y"] = 1 if target else -1
    return Message(_key(identity, key), orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY), [], timestamp_ms)


def label(
    identity: str | int,
    *,
    target: bool,
    key: bytes | None = None,
    timestamp_ms: int = 0,
    format: EventFormat = "json",
) -> Message:
    """The label of an event sent earlier with the same id and key. Raises ValueError for an id that cannot be."""
    check_format(format)
    _check_id(identity)
    if format == "json":
        return Message(_key(identity, key), orjson.dumps({"id": identity, "y": 1 if target else -1}), [], timestamp_ms)
    return Message(_key(identity, key), b"", _headers(identity, target), timestamp_ms)


def partition_for(key: bytes, partitions: int) -> int:
    """The partition Kafka's Java clients would choose for a key."""
    return murmur2.partition_for(key, partitions)


def read_decision(value: bytes | None) -> Decision:
    """A decision from the value of a record of the decisions topic. Raises `UsageError` when it is none."""
    return decode_decision(value)


def input_offset(headers: Headers | None) -> int:
    """The offset of the event a decision belongs to, from the decision's headers. Raises ValueError without it."""
    for name, content in headers or ():
        if name == OFFSET_HEADER and content is not None:
            return int(content)
    raise ValueError(f"no {OFFSET_HEADER} header: this record is not a decision")


def check_format(format: RecordFormat) -> None:
    """Raises ValueError for a format that is not written here."""
    if format not in ("json", "f32"):
        raise ValueError(f"format {format} is written by a serializer of your schema registry; here: json or f32")


def _check_id(identity: str | int) -> None:
    if isinstance(identity, str) and not 0 < len(identity.encode()) <= ID_MAX_BYTES:
        raise ValueError(f"an id of text has 1 to {ID_MAX_BYTES} bytes, not {len(identity.encode())}")


def _check_numbers(numbers: Iterable[float | None]) -> None:
    for at, number in enumerate(numbers):
        if number is None or not abs(number) <= MAGNITUDE_MAX:  # NaN compares with nothing
            raise ValueError(f"number {at} is {number}; features and scores are finite and at most {MAGNITUDE_MAX:g}")


def _key(identity: str | int, key: bytes | None) -> bytes:
    return str(identity).encode() if key is None else key


def _headers(identity: str | int, target: bool | None) -> list[tuple[str, Any]]:
    headers = [("id", str(identity).encode())]
    if target is not None:
        headers.append(("y", b"1" if target else b"-1"))
    return headers
