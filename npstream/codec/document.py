"""Values in a schema registry's wire format: a zero byte, four bytes of schema id, then the value itself.

JSON needs no schema to be read. Avro and Protobuf do: schemas are fetched, and
decoding has no effects, so whoever reads records from a topic looks the schema
up, and hands on the bytes together with what they say. The bytes stay what they
are, for dead letters and exports.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import orjson

from npstream.codec.event import Decoded, EventConfig, size_problem
from npstream.codec.json_events import JsonDecoder
from npstream.errors import BadEvent
from npstream.records import Record

FRAME_BYTES = 5
NO_SCHEMA = bytes(FRAME_BYTES)
"""The frame of a value that nobody has registered a schema for."""


class Document(bytes):
    """The bytes of a value, as they are in the topic; `content` is what they say."""

    content: Any
    """The document in the terms of JSON, or a `BadEvent` when the bytes do not fit their schema."""


def document(value: bytes, content: Any | BadEvent) -> Document:
    """A value with its content."""
    made = Document(value)
    made.content = content
    return made


def frame_problem(value: bytes) -> BadEvent | None:
    """What is wrong with the first bytes of a value."""
    if value[0] == 0 and len(value) >= FRAME_BYTES:
        return None
    return BadEvent("not_wire_format", f"its first bytes are {value[:FRAME_BYTES].hex(' ')}")


def unframed(records: Sequence[Record]) -> tuple[list[Record], dict[int, BadEvent]]:
    """The records with the value behind the frame; and what is wrong with those without one, by index.

    A value that is missing or empty stays as it is.
    """
    bad: dict[int, BadEvent] = {}
    found: list[Record] = []
    for index, record in enumerate(records):
        value = record.value
        problem = frame_problem(value) if value else None
        if problem is not None:
            bad[index] = problem
        found.append(record if problem is not None or not value else record._replace(value=value[FRAME_BYTES:]))
    return found, bad


class SchemaDecoder:
    """Decodes batches of values that come with their documents: by their JSON, which compiled code reads."""

    def __init__(self, config: EventConfig) -> None:
        self._max_bytes = config.max_bytes
        self._json = JsonDecoder(config)

    def warm_up(self) -> None:
        """Have the compiled code ready."""
        self._json.warm_up()

    def decode(self, records: Sequence[Record]) -> Decoded:
        """Decode one batch. Never raises for what a record holds."""
        contents = [self._content(record.value) for record in records]
        return self._json.decode_texts([_text(content) for content in contents], contents.__getitem__)

    def _content(self, value: bytes | None) -> Any | BadEvent:
        if isinstance(value, Document):
            return value.content
        assert not value or len(value) > self._max_bytes, "records of this format are read through DocumentReader"
        return size_problem(value, self._max_bytes)


def _text(content: Any | BadEvent) -> bytes:
    """A document as JSON; empty when it is none, or says what JSON cannot: then it is read as it is."""
    try:
        text = orjson.dumps(content)
    except TypeError:  # a BadEvent, or nested too deeply
        return b""
    return text if b"null" not in text or _is_finite(content) else b""


def _is_finite(content: Any) -> bool:
    """Whether no number in a document is one that JSON would write as null."""
    todo = [content]
    while todo:
        value = todo.pop()
        if type(value) is float and not isfinite(value):
            return False
        if isinstance(value, dict | list):
            todo += value.values() if isinstance(value, dict) else value
    return True
