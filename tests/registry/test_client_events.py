"""The client's events in Avro: the bytes of Confluent's own serializer, checked by the rules of the worker."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest

from npstream import client
from npstream.errors import DataError
from npstream.settings import events_config
from tests.registry import Registry
from tests.registry.payments import AVRO, EVENTS, avro_payments, payments
from tests.registry.values import register

SETTINGS: dict[str, Any] = {
    "events": {**EVENTS, "format": "avro", "registry": {"url": "http://elsewhere", "password": "${NOT_KNOWN_HERE}"}}
}
TEXTS = [orjson.dumps(schema).decode() for schema in AVRO]


def events(*ids: int) -> client.Events:
    """Those of the payments topic, the schemas registered under these ids."""
    return client.Events(events_config(SETTINGS), avro=dict(zip(ids, TEXTS, strict=False)))


def test_a_document_becomes_the_bytes_of_the_usual_serializer(registry: Registry, topic_prefix: str) -> None:
    """In every version of the schema; the reader finds each by the id in front."""
    topic = f"{topic_prefix}payments"
    theirs = avro_payments(registry.url, topic)
    given = [(payment, i % 3) for i, payment in enumerate(payments(60))]
    expected = [theirs(payment, version) for payment, version in given]
    ids = [register(registry.url, f"{topic}-value", text) for text in TEXTS]

    ours = [client.Events(events_config(SETTINGS), avro={ids[i]: TEXTS[i]}) for i in range(3)]
    assert [ours[version].message(payment).value for payment, version in given] == expected

    reader = events(*ids)
    assert [reader.read(value).id for value in expected] == [payment["payment_id"] for payment, _ in given]


def test_features_by_name_are_written_by_the_schema() -> None:
    """Times and decimals as the schema has them; what it may leave out is left out."""
    payments = events(7)
    at = datetime(2026, 5, 1, 6, tzinfo=UTC)
    values = {"amount": Decimal("12.50"), "velocity": 3, "device_score": 0.5, "country": "DE", "three_ds": True}

    message = payments.event("p-1", {**values, "hour": at}, target=True)

    assert message.value[:5] == b"\0\0\0\0\7"
    read = payments.read(message.value)
    assert (read.id, read.target) == ("p-1", True)
    assert read.features == {**values, "amount": 12.5, "mcc": None, "hour": "2026-05-01T06:00:00Z"}


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (b"", "its first bytes are 00"),
        (b"\1abcd", "its first bytes are 01 61 62 63 64 (not_wire_format)"),
        (b"\0\0\0\0\x09abc", "it is written with schema 9; given are 7"),
        (b"\0\0\0\0\7\xff", "it does not fit schema 7 (not_of_schema)"),
    ],
)
def test_values_of_something_else_are_refused(value: bytes, reported: str) -> None:
    """Each with the reason that its dead letter would have."""
    with pytest.raises(DataError, match=reported.replace("(", r"\(").replace(")", r"\)")):
        events(7).read(value)


def test_what_the_schema_cannot_say_is_refused() -> None:
    """Before anything is sent; also a schema that is none, and no schema at all."""
    with pytest.raises(DataError, match="it does not fit schema 7"):
        events(7).event("p-1", {"amount": "much"})
    with pytest.raises(DataError, match="avro: it is not an Avro schema"):
        client.Events(events_config(SETTINGS), avro={1: "[]["})
    with pytest.raises(DataError, match=r"give the registered schemas, avro=\{id: text\}"):
        client.Events(events_config(SETTINGS))
