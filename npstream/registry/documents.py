"""Avro and Protobuf values to documents, by the schema whose id they begin with.

A schema never changes under its id, so the same bytes give the same document
at any time, which a replay needs. What cannot be looked up now and perhaps later
is therefore never a bad event: the registry away is `Retryable`, an id that it
does not have is `UnknownSchema`.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from npstream.codec.document import FRAME_BYTES, document, frame_problem
from npstream.codec.event import SCHEMA_FORMATS, EventFormat
from npstream.errors import BadEvent, UnknownSchema
from npstream.registry.client import NotRegistered, Schema, UnusableSchema

KEPT_MAX = 1_000
"""Compiled schemas kept; a topic has a handful."""
_REFERENCES_MAX = 200

Reader = Callable[[bytes], Any]


class SchemaSource(Protocol):
    """Where schemas come from."""

    @property
    def url(self) -> str:
        """The name of it in messages."""

    def schema(self, identity: int) -> Schema:
        """The schema with this id. Raises `NotRegistered`, `Retryable`, `Fatal`."""

    def version(self, subject: str, version: int) -> Schema:
        """The schema of one version of a subject. Raises the same."""


class DocumentReader:
    """Reads values of one topic; fetches each schema once."""

    def __init__(self, format: EventFormat, schemas: SchemaSource, max_bytes: int) -> None:
        assert format in SCHEMA_FORMATS, format
        self._format = format
        self._schemas = schemas
        self._max_bytes = max_bytes
        self._readers: OrderedDict[bytes, Reader | BadEvent] = OrderedDict()

    def read(self, value: bytes | None) -> bytes | None:
        """The value with its content, unless it is missing, empty or too long to be looked at.

        Raises `UnknownSchema`, `Retryable`, `Fatal`.
        """
        if not value or len(value) > self._max_bytes:
            return value
        if problem := frame_problem(value):
            return document(value, problem)
        frame = value[1:FRAME_BYTES]
        reader = self._readers.get(frame)
        if reader is None:
            reader = self._compile(frame)
        if isinstance(reader, BadEvent):
            return document(value, reader)
        try:
            return document(value, reader(value[FRAME_BYTES:]))
        except MemoryError:
            raise
        except Exception:
            # Readers raise anything at all for bytes that are not theirs, in words that change with their versions.
            return document(value, BadEvent("not_of_schema", f"it does not fit schema {int.from_bytes(frame)}"))

    def _compile(self, frame: bytes) -> Reader | BadEvent:
        identity = int.from_bytes(frame)
        try:
            schema = self._schemas.schema(identity)
            reader = self._reader_of(schema, identity)
        except NotRegistered:
            raise UnknownSchema(f"schema {identity}, which the registry {self._schemas.url} does not have") from None
        except UnusableSchema as error:
            raise UnknownSchema(f"schema {identity}, which cannot be used: {error}") from None
        self._readers[frame] = reader
        if len(self._readers) > KEPT_MAX:
            self._readers.popitem(last=False)
        return reader

    def _reader_of(self, schema: Schema, identity: int) -> Reader | BadEvent:
        if schema.kind != self._format.upper():
            detail = f"schema {identity} is of type {schema.kind}, events.format is {self._format}"
            return BadEvent("wrong_schema_type", detail)
        imported: dict[str, Schema] = {}
        self._collect(schema, imported, ())
        # Here and not above: these are an extra, and nobody else should load them.
        if self._format == "avro":
            from npstream.registry.avro import compile_avro

            return compile_avro(schema, list(imported.values()))
        from npstream.registry.protobuf import compile_protobuf

        return compile_protobuf(schema, imported.items())

    def _collect(self, schema: Schema, found: dict[str, Schema], above: tuple[str, ...]) -> None:
        """Everything that a schema refers to, each after what it needs itself."""
        for reference in schema.references:
            if reference.name in above:
                raise UnusableSchema(f"{reference.name!r} refers to itself")
            if reference.name not in found:
                if len(found) >= _REFERENCES_MAX:
                    raise UnusableSchema(f"it refers to more than {_REFERENCES_MAX} others")
                try:
                    inner = self._schemas.version(reference.subject, reference.version)
                except NotRegistered:
                    raise UnusableSchema(
                        f"it refers to version {reference.version} of {reference.subject!r}, which is not registered"
                    ) from None
                self._collect(inner, found, (*above, reference.name))
                found[reference.name] = inner
