"""For upstream and downstream code: make events, read decisions. Needs no Kafka client of ours.

    from confluent_kafka import Producer
    from npstream import client

    producer = Producer({"bootstrap.servers": "localhost:9092"})
    message = client.event("order-17", [3.1, 0.2, 41.0])
    producer.produce("events", message.value, message.key, headers=list(message.headers),
                     partition=client.partition_for(message.key, 12))
    later = client.label("order-17", target=True)

An event and its label carry the same key, hence meet on the same partition.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import orjson

from npstream.codec import murmur2
from npstream.codec.decisions import Decision, decode_decision
from npstream.codec.envelope import OFFSET_HEADER
from npstream.records import Headers

__all__ = ["Decision", "Message", "event", "input_offset", "label", "partition_for", "read_decision"]

Format = Literal["json", "f32"]


class Message(NamedTuple):
    """One record to produce. `timestamp_ms` 0 means: the time of sending."""

    key: bytes
    value: bytes
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp_ms: int = 0


def event(
    identity: str | int,
    x: Sequence[float] | Mapping[str, float] | None = None,
    *,
    score: float | None = None,
    target: bool | None = None,
    key: bytes | None = None,
    timestamp_ms: int = 0,
    format: Format = "json",
) -> Message:
    """An observation, with its label when `target` is given.

    Give features `x`, or a `score` for preset external. The key is the id unless
    given. Raises ValueError when there is neither, or both.
    """
    if (x is None) == (score is None):
        raise ValueError("give features x, or a score (preset external), and not both")
    if format == "json":
        return Message(_key(identity, key), _json(identity, x, score, target), (), timestamp_ms)
    numbers = [score] if score is not None else x
    if isinstance(numbers, Mapping):
        raise ValueError("format f32 has no names: give x as a sequence in the order of events.features")
    return Message(_key(identity, key), _floats(numbers or ()), _headers(identity, target), timestamp_ms)


def label(
    identity: str | int,
    *,
    target: bool,
    key: bytes | None = None,
    timestamp_ms: int = 0,
    format: Format = "json",
) -> Message:
    """The label of an event sent earlier with the same id and key."""
    if format == "json":
        return Message(_key(identity, key), orjson.dumps({"id": identity, "y": 1 if target else -1}), (), timestamp_ms)
    return Message(_key(identity, key), b"", _headers(identity, target), timestamp_ms)


def partition_for(key: bytes, partitions: int) -> int:
    """The partition Kafka's Java clients would choose for a key."""
    return murmur2.partition_for(key, partitions)


def read_decision(value: bytes | None) -> Decision:
    """A decision from the value of a record of the decisions topic. Raises `UsageError` when it is none."""
    return decode_decision(value)


def input_offset(headers: Headers | None) -> int:
    """The offset of the event a decision answers, from the decision's headers. Raises ValueError without it."""
    for name, content in headers or ():
        if name == OFFSET_HEADER and content is not None:
            return int(content)
    raise ValueError(f"no {OFFSET_HEADER} header: this record is not a decision")


def _key(identity: str | int, key: bytes | None) -> bytes:
    return str(identity).encode() if key is None else key


def _json(
    identity: str | int, x: Sequence[float] | Mapping[str, float] | None, score: float | None, target: bool | None
) -> bytes:
    document: dict[str, object] = {"id": identity}
    if x is None:
        document["score"] = score
    else:
        document["x"] = dict(x) if isinstance(x, Mapping) else list(x)
    if target is not None:
        document["y"] = 1 if target else -1
    return orjson.dumps(document)


def _floats(numbers: Iterable[float]) -> bytes:
    values = list(numbers)
    return struct.pack(f"<{len(values)}f", *values)


def _headers(identity: str | int, target: bool | None) -> list[tuple[str, bytes]]:
    headers = [("id", str(identity).encode())]
    if target is not None:
        headers.append(("y", b"1" if target else b"-1"))
    return headers
