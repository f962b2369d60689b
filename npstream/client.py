"""For upstream and downstream code: make events, read decisions. Needs no Kafka client of ours.

    from confluent_kafka import Producer
    from npstream import client

    producer = Producer({"bootstrap.servers": "localhost:9092"})
    message = client.event("order-17", [3.1, 0.2, 41.0])
    producer.produce("events", message.value, message.key, headers=message.headers,
                     partition=client.partition_for(message.key, 12))
    later = client.label("order-17", target=True)

An event and its label carry the same key, hence meet on the same partition.

`Events` knows the names and paths of a topic's settings: it makes events of named
features, and reads them back.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import orjson

from npstream.codec import murmur2
from npstream.codec.decisions import Decision, decode_decision
from npstream.codec.envelope import OFFSET_HEADER
from npstream.codec.event import ID_MAX_BYTES, MAGNITUDE_MAX, EventConfig, EventFormat, EventId, Kind
from npstream.codec.features import Steps, steps_of
from npstream.codec.mapping import EventReading, find
from npstream.codec.mapping import Mapping as EventMapping
from npstream.errors import BadEvent, DataError
from npstream.records import Headers

__all__ = [
    "Decision",
    "Events",
    "Message",
    "NamedEvent",
    "event",
    "input_offset",
    "label",
    "partition_for",
    "read_decision",
]


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
    _check_id(identity)
    if format == "json":
        return Message(_key(identity, key), orjson.dumps({"id": identity, "y": 1 if target else -1}), [], timestamp_ms)
    return Message(_key(identity, key), b"", _headers(identity, target), timestamp_ms)


@dataclass(frozen=True, slots=True)
class NamedEvent:
    """One event as its settings read it: `features` by name, as they are written, None where one is missing."""

    id: EventId | None
    target: bool | None
    features: dict[str, Any]


class Events:
    """The events of one topic, by its settings: `Events(npstream.settings.events_config("payments.yaml"))`.

    Everything raises `DataError`, a ValueError, for what would become a dead letter.
    """

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        self._reader = EventMapping(config)
        self._paths = {feature.name: steps_of(feature.path) for feature in config.mapping or ()}

    def event(
        self,
        identity: EventId,
        values: Mapping[str, Any] | Iterable[float] | None = None,
        *,
        score: float | None = None,
        target: bool | None = None,
        key: bytes | None = None,
        timestamp_ms: int = 0,
    ) -> Message:
        """An observation of features by name, each put at its path; a missing one is left out or None."""
        document = self._of(identity, target)
        if isinstance(values, Mapping) and self._paths:
            unknown = [name for name in values if name not in self._paths]
            if unknown:
                raise DataError(f"no feature {', '.join(unknown)}; there are {', '.join(self._paths)}")
            for name, value in values.items():
                if value is not None:
                    _put(document, self._paths[name], _plain(value))
        elif isinstance(values, Mapping):
            document["x"] = {name: _plain(value) for name, value in values.items()}
        elif values is not None:
            document["x"] = [_plain(value) for value in values]
        if score is not None:
            document["score"] = _plain(score)
        return self.message(document, key=key, timestamp_ms=timestamp_ms)

    def label(self, identity: EventId, *, target: bool, key: bytes | None = None, timestamp_ms: int = 0) -> Message:
        """The label of an event sent earlier with the same id and key."""
        return self.message(self._of(identity, target), key=key, timestamp_ms=timestamp_ms)

    def message(self, document: Mapping[str, Any], *, key: bytes | None = None, timestamp_ms: int = 0) -> Message:
        """A whole event, as its sender has it. The key is the id unless given."""
        reading = self._read(document)
        if reading.event_id is None and key is None:
            raise DataError(f"{self._config.id}: the event has no id; give a key")
        key = str(reading.event_id).encode() if key is None else key
        if self._config.format != "f32":
            return Message(key, orjson.dumps(document), [], timestamp_ms)
        headers = [("id", str(reading.event_id).encode())] if reading.event_id is not None else []
        headers += [("y", b"%d" % reading.label)] if reading.label else []
        return Message(key, struct.pack(f"<{len(reading.values)}f", *reading.values), headers, timestamp_ms)

    def read(self, value: bytes | None) -> NamedEvent:
        """An event from the value of a JSON record. Raises `DataError` for a bad one."""
        try:
            document = orjson.loads(value or b"")
        except orjson.JSONDecodeError:
            raise DataError("the value is not one JSON document") from None
        reading = self._read(document)
        features = {name: find(document, steps) for name, steps in self._paths.items()}
        if not features and reading.kind != Kind.LABEL:
            features = dict(zip(self._config.features or _numbered(reading), reading.values, strict=True))
        return NamedEvent(reading.event_id, None if reading.label == 0 else reading.label > 0, features)

    def _of(self, identity: EventId, target: bool | None) -> dict[str, Any]:
        """An event with id and label alone."""
        document: dict[str, Any] = {}
        _put(document, steps_of(self._config.id), identity)
        rule = self._config.label
        if target is not None:
            _put(document, steps_of(rule.path), rule.target[0] if target else rule.non_target[0])
        return document

    def _read(self, document: object) -> EventReading:
        try:
            return self._reader.read(document)
        except BadEvent as error:
            raise DataError(f"{error.detail} ({error.reason})") from None


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


def _put(document: dict[str, Any], steps: Steps, value: Any) -> None:
    """Put a value where a path leads, making the objects and arrays on the way."""
    place: Any = document
    for step, below in zip(steps, (*steps[1:], None), strict=True):
        fits: bool = type(place) is (list if isinstance(step, int) else dict)
        if not fits:
            raise DataError(f"{step}: another path leads to something else there")
        if isinstance(step, int):
            place.extend([None] * (step + 1 - len(place)))
        if below is None:
            place[step] = value
            return
        held = place[step] if isinstance(step, int) else place.get(step)
        if held is None:
            held = place[step] = [] if isinstance(below, int) else {}
        place = held


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


def _numbered(reading: EventReading) -> list[str]:
    return [str(place) for place in range(len(reading.values))]


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
