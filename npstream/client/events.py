"""The events of one topic by its settings: features by name, put at their paths and found there."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import orjson

from npstream.client.messages import Message, check_format
from npstream.codec.document import FRAME_BYTES, frame_problem
from npstream.codec.draft import DocumentDecoder
from npstream.codec.event import EventConfig, EventId, Kind
from npstream.codec.features import Steps, steps_of
from npstream.codec.mapping import EventReading, find
from npstream.codec.mapping import Mapping as EventMapping
from npstream.errors import BadEvent, DataError


@dataclass(frozen=True, slots=True)
class NamedEvent:
    """One event as its settings read it: `features` by name, as they are written, None where one is missing."""

    id: EventId | None
    target: bool | None
    features: dict[str, Any]


class Events:
    """The events of one topic, by its settings: `Events(npstream.settings.events_config("payments.yaml"))`.

    With `events.format: avro` give `avro`, the texts of the registered schemas by their ids: events are written with
    the last, and read with the one they name. Everything raises `DataError`, a ValueError, for what would become a
    dead letter.
    """

    def __init__(self, config: EventConfig, avro: Mapping[int, str] | None = None) -> None:
        self._config = config
        self._documents = DocumentDecoder(config)
        self._reader = EventMapping(config)
        self._paths = {feature.name: steps_of(feature.path) for feature in config.mapping or ()}
        self._format: _JsonValues | _AvroValues = _JsonValues()
        if config.format == "avro":
            if not avro:
                raise DataError("events.format is avro: give the registered schemas, avro={id: text}")
            self._format = _AvroValues(avro)
        else:
            check_format(config.format)

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
                    _put(document, self._paths[name], self._format.plain(value))
        elif isinstance(values, Mapping):
            document["x"] = {name: self._format.plain(value) for name, value in values.items()}
        elif values is not None:
            document["x"] = [self._format.plain(value) for value in values]
        if score is not None:
            document["score"] = self._format.plain(score)
        return self.message(document, key=key, timestamp_ms=timestamp_ms)

    def label(self, identity: EventId, *, target: bool, key: bytes | None = None, timestamp_ms: int = 0) -> Message:
        """The label of an event sent earlier with the same id and key."""
        return self.message(self._of(identity, target), key=key, timestamp_ms=timestamp_ms)

    def message(self, document: Mapping[str, Any], *, key: bytes | None = None, timestamp_ms: int = 0) -> Message:
        """A whole event, as its sender has it. The key is the id unless given."""
        value, document = self._format.write(document)
        reading = self._read(document)
        if reading.event_id is None and key is None:
            raise DataError(f"{self._config.id}: the event has no id; give a key")
        key = str(reading.event_id).encode() if key is None else key
        if self._config.format != "f32":
            return Message(key, value, [], timestamp_ms)
        headers = [("id", str(reading.event_id).encode())] if reading.event_id is not None else []
        headers += [("y", b"%d" % reading.label)] if reading.label else []
        return Message(key, struct.pack(f"<{len(reading.values)}f", *reading.values), headers, timestamp_ms)

    def read(self, value: bytes | None) -> NamedEvent:
        """An event from the value of a record in JSON or Avro. Raises `DataError` for a bad one."""
        document = self._format.read(value or b"")
        reading = self._read(document)
        features = {name: find(document, steps) for name, steps in self._paths.items()}
        if not features and reading.kind != Kind.LABEL:
            features = dict(zip(self._config.features or _numbered(reading), reading.values, strict=True))
        return NamedEvent(reading.event_id, None if reading.label == 0 else reading.label > 0, features)

    def _of(self, identity: EventId, target: bool | None) -> dict[str, Any]:
        """An event with id and label alone."""
        if self._config.transform is not None:
            raise DataError("events.transform takes whole events: give yours to message(), as it is")
        document: dict[str, Any] = {}
        _put(document, steps_of(self._config.id), identity)
        rule = self._config.label
        if target is not None:
            _put(document, steps_of(rule.path), rule.target[0] if target else rule.non_target[0])
        return document

    def _read(self, document: object) -> EventReading:
        try:
            document = self._documents.prepared(document)
            if isinstance(document, BadEvent):
                raise document
            return self._reader.read(document)
        except BadEvent as error:
            raise DataError(f"{error.detail} ({error.reason})") from None


class _JsonValues:
    """Documents as JSON."""

    def plain(self, value: Any) -> Any:
        return value.isoformat() if isinstance(value, datetime) else _of_python(value)

    def write(self, document: Mapping[str, Any]) -> tuple[bytes, Any]:
        return orjson.dumps(document), document

    def read(self, value: bytes) -> Any:
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            raise DataError("the value is not one JSON document") from None


class _AvroValues:
    """Documents as Avro, with the id of a registered schema in front."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        from npstream.registry.avro import compile_avro, compile_avro_writer  # an extra, which nobody else shall load
        from npstream.registry.client import Schema, UnusableSchema

        schemas = {identity: Schema("AVRO", text) for identity, text in texts.items()}
        self._newest, newest = [*schemas.items()][-1]
        try:
            self._readers = {identity: compile_avro(schema, []) for identity, schema in schemas.items()}
            self._write = compile_avro_writer(newest)
        except UnusableSchema as error:
            raise DataError(f"avro: {error}") from None

    def plain(self, value: Any) -> Any:
        return _of_python(value)

    def write(self, document: Mapping[str, Any]) -> tuple[bytes, Any]:
        """The value, and the document that a worker will read from it."""
        try:
            value = b"\0" + self._newest.to_bytes(4) + self._write(document)
            return value, self.read(value)
        except Exception as error:  # the writer raises anything at all for what is not of its schema
            raise DataError(f"it does not fit schema {self._newest} ({error!r:.200})") from None

    def read(self, value: bytes) -> Any:
        if problem := frame_problem(value or b"\0"):
            raise DataError(f"{problem.detail} ({problem.reason})")
        identity = int.from_bytes(value[1:FRAME_BYTES])
        if identity not in self._readers:
            raise DataError(f"it is written with schema {identity}; given are {', '.join(map(str, self._readers))}")
        try:
            return self._readers[identity](value[FRAME_BYTES:])
        except Exception:  # the reader raises anything at all for bytes that are not its own
            raise DataError(f"it does not fit schema {identity} (not_of_schema)") from None


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


def _of_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _numbered(reading: EventReading) -> list[str]:
    return [str(place) for place in range(len(reading.values))]
