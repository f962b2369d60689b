"""A payments topic as an upstream team writes it, in JSON, Avro and Protobuf, by three versions of its schema each.

The second version has a new field in front of the others and a score that may
be absent; the third has another order, and a card with more in it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

from npstream.client import Message
from tests.registry.protos import message_classes
from tests.registry.values import avro_writer, register

FEATURES: dict[str, Any] = {
    "amount": {"number": "amount", "scale": "log"},
    "velocity": {"number": "velocity_1h"},
    "device_score": {"number": "device_score", "missing": "allow"},
    "country": {"category": "card.country"},
    "mcc": {"category": "merchant_mcc", "buckets": 256},
    "three_ds": {"flag": "auth.three_ds"},
    "hour": {"time": "created_at", "cycle": "day"},
}
EVENTS: dict[str, Any] = {
    "id": "payment_id",
    "label": {"path": "fraud", "target": [True], "non_target": [False]},
    "features": FEATURES,
}

_FIRST = datetime(2026, 5, 1, tzinfo=UTC)
_ID = {"name": "payment_id", "type": "string"}
_AMOUNT = {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}}
_VELOCITY = {"name": "velocity_1h", "type": "int"}
_CARD = {"name": "card", "type": {"type": "record", "name": "Card", "fields": [{"name": "country", "type": "string"}]}}
_MCC = {"name": "merchant_mcc", "type": ["null", "int"], "default": None}
_AUTH = {
    "name": "auth",
    "type": {"type": "record", "name": "Auth", "fields": [{"name": "three_ds", "type": "boolean"}]},
}
_AT = {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
_FRAUD = {"name": "fraud", "type": ["null", "boolean"], "default": None}
_SCORE = {"name": "device_score", "type": "double"}
_MAYBE_SCORE = {"name": "device_score", "type": ["null", "double"], "default": None}
_SHOP = {"name": "shop", "type": "string", "default": ""}
_LONG_CARD = {
    "name": "card",
    "type": {
        "type": "record",
        "name": "Card",
        "fields": [{"name": "bin", "type": "string", "default": ""}, {"name": "country", "type": ["null", "string"]}],
    },
}
AVRO = [
    {"type": "record", "name": "Payment", "namespace": "shop", "fields": fields}
    for fields in (
        [_ID, _AMOUNT, _VELOCITY, _SCORE, _CARD, _MCC, _AUTH, _AT, _FRAUD],
        [_SHOP, _ID, _AMOUNT, _VELOCITY, _MAYBE_SCORE, _CARD, _MCC, _AUTH, _AT, _FRAUD],
        [_FRAUD, _AT, _AUTH, _MAYBE_SCORE, _MCC, _LONG_CARD, _VELOCITY, _AMOUNT, _ID],
    )
]

_PROTO = """
syntax = "proto3";
package shop{version};
import "google/protobuf/timestamp.proto";
message Payment {{
  message Card {{ string country = 1; {card} }}
  message Auth {{ bool three_ds = 1; }}
  string payment_id = 1;
  double amount = 2;
  int32 velocity_1h = 3;
  Card card = 4;
  optional int32 merchant_mcc = 5;
  Auth auth = 6;
  google.protobuf.Timestamp created_at = 7;
  optional bool fraud = 8;
  {more}
}}
"""
PROTOBUF = [
    _PROTO.format(version=1, card="", more="double device_score = 9;"),
    _PROTO.format(version=2, card="", more="optional double device_score = 9; string shop = 10;"),
    _PROTO.format(version=3, card="string bin = 2;", more="optional double device_score = 9;"),
]


def payments(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Payments, a fifth of them fraud, as documents with Python's own types; the versions take turns."""
    random = Random(seed)
    return [_with_gaps(_payment(number, random), number) for number in range(count)]


def _payment(number: int, random: Random) -> dict[str, Any]:
    fraud = random.random() < 0.2
    payment: dict[str, Any] = {
        "payment_id": f"p-{number}",
        "amount": Decimal(random.randrange(100, 500_000 if fraud else 50_000)) / 100,
        "velocity_1h": random.randrange(20 if fraud else 5),
        "device_score": random.random(),
        "card": {"country": random.choice(["DE", "PT", "US"])},
        "merchant_mcc": random.choice([5411, 5812, 7995]),
        "auth": {"three_ds": random.random() < 0.5},
        "created_at": _FIRST + timedelta(milliseconds=random.randrange(86_400_000)),
        "fraud": fraud,
    }
    return payment


def _with_gaps(payment: dict[str, Any], number: int) -> dict[str, Any]:
    """Some merchants and scores are missing; the first version of the schema requires a score."""
    gone = (["device_score"] if number % 3 and number % 7 == 1 else []) + (["merchant_mcc"] if number % 10 == 4 else [])
    return payment | dict.fromkeys(gone)


Write = Callable[[dict[str, Any], int], bytes]
"""Writes one payment by the version of the schema with this index."""


def json_writer(registry: str, topic: str) -> Write:
    """JSON as `json.dumps` writes it, spaces included."""
    return lambda payment, _: json.dumps(plain(payment)).encode()


def json_schema_writer(registry: str, topic: str) -> Write:
    """The same with the id of a schema in front."""
    identity = register(registry, f"{topic}-value", '{"type":"object"}', "JSON")
    return lambda payment, _: b"\0" + identity.to_bytes(4) + json.dumps(plain(payment)).encode()


def avro_payments(registry: str, topic: str) -> Write:
    """Avro by Confluent's own serializer, which registers each version."""
    writers = [avro_writer(registry, topic, schema) for schema in AVRO]
    return lambda payment, version: writers[version](payment)


def protobuf_payments(registry: str, topic: str) -> Write:
    """Protobuf by protoc's classes, the .proto text registered as Java's serializer does it."""
    identities = [register(registry, f"{topic}-value", text, "PROTOBUF") for text in PROTOBUF]
    classes = [_protobuf_class(version) for version in range(3)]

    def write(payment: dict[str, Any], version: int) -> bytes:
        fields = {name: value for name, value in payment.items() if value is not None}
        message = classes[version](**fields | {"amount": float(payment["amount"])})
        return b"\0" + identities[version].to_bytes(4) + b"\0" + bytes(message.SerializeToString())

    return write


@cache
def _protobuf_class(version: int) -> Any:
    return message_classes({"payment.proto": PROTOBUF[version]})[f"shop{version + 1}.Payment"]


WRITERS: Mapping[str, Callable[[str, str], Write]] = {
    "json": json_writer,
    "json_schema": json_schema_writer,
    "avro": avro_payments,
    "protobuf": protobuf_payments,
}


def messages(some: Sequence[dict[str, Any]], write: Write) -> list[Message]:
    """The payments as records of a topic, by versions in turn, each under its id."""
    first_ms = int(_FIRST.timestamp() * 1000)
    return [
        Message(payment["payment_id"].encode(), write(payment, number % 3), [], first_ms + number)
        for number, payment in enumerate(some)
    ]


def plain(payment: dict[str, Any]) -> dict[str, Any]:
    """A payment in the terms of JSON."""
    at = payment["created_at"].isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    return {**payment, "amount": float(payment["amount"]), "created_at": at}
