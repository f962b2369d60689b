"""Values as other producers write them: by Confluent's own serializers."""

from collections.abc import Mapping
from typing import Any

import orjson
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext


def register(url: str, subject: str, text: str, kind: str = "AVRO", references: Mapping[str, str] | None = None) -> int:
    """Register a schema that refers to the first versions of other subjects, by name; returns its id."""
    others = [SchemaReference(name, other, 1) for name, other in (references or {}).items()]
    return SchemaRegistryClient({"url": url}).register_schema(subject, Schema(text, kind, others))


def avro_writer(url: str, topic: str, schema: Mapping[str, Any]) -> "Writer":
    """Writes values of a topic with this schema, registering it."""
    client = SchemaRegistryClient({"url": url})
    return Writer(AvroSerializer(client, orjson.dumps(schema).decode()), topic)


class Writer:
    """One serializer of Confluent's, for one topic."""

    def __init__(self, serializer: AvroSerializer, topic: str) -> None:
        self._serializer = serializer
        self._context = SerializationContext(topic, MessageField.VALUE)

    def __call__(self, content: Any) -> bytes:
        value = self._serializer(content, self._context)
        assert value is not None
        return bytes(value)
