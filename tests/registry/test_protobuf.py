"""Protobuf values to documents: written by Confluent's serializer, read by the registered text alone."""

from typing import Any

import orjson
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.registry.client import Schema, UnusableSchema
from npstream.registry.protobuf import compile_protobuf
from tests.registry import Registry
from tests.registry.protos import message_classes

MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; string currency = 2; }'
PAYMENT = """
syntax = "proto3";
package shop;
import "money.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message Payment {
  message Card { string country = 1; }
  enum State { NEW = 0; SETTLED = 1; }
  string id = 1;
  double amount = 2;
  optional double score = 3;
  int64 big = 4;
  State state = 5;
  bytes raw = 6;
  Card card = 7;
  repeated string tags = 8;
  map<string, double> scores = 9;
  map<bool, Card> cards = 10;
  google.protobuf.Timestamp at = 11;
  google.protobuf.Duration took = 12;
  google.protobuf.Struct extra = 13;
  google.protobuf.DoubleValue limit = 14;
  Money money = 15;
  repeated State states = 16;
  oneof auth { bool three_ds = 17; string pin = 18; }
  Payment refund_of = 19;
}
"""
ORDER = """
syntax = "proto3";
message Customer { string mail = 1; }
message Order { string id = 1; message Line { message Item { int32 pieces = 1; } } }
"""
CLASSES = message_classes({"payment.proto": PAYMENT, "money.proto": MONEY, "order.proto": ORDER})
SCHEMA, IMPORTED = Schema("PROTOBUF", PAYMENT), [("money.proto", Schema("PROTOBUF", MONEY))]
READ = compile_protobuf(SCHEMA, IMPORTED)


def framed(registry: Registry, topic: str, name: str, **content: Any) -> bytes:
    """A value as Confluent's serializer frames it, without the id of the form that it registered itself."""
    kind = CLASSES[name]
    serializer = ProtobufSerializer(kind, SchemaRegistryClient({"url": registry.url}), {"use.deprecated.format": False})
    value = serializer(kind(**content), SerializationContext(topic, MessageField.VALUE))
    assert value is not None
    return bytes(value)[5:]


def test_every_type_in_the_terms_of_json() -> None:
    """Numbers stay numbers, also those of 64 bits; enums are their names; messages are objects."""
    payment = CLASSES["shop.Payment"](
        id="p-1",
        amount=12.5,
        score=0.0,
        big=2**60,
        state=1,
        raw=b"\x00\xff",
        card={"country": "PT"},
        tags=["a", "b"],
        scores={"x": 0.5},
        cards={True: {"country": "DE"}},
        at={"seconds": 1_777_631_400, "nanos": 125_000_000},
        took={"seconds": 2, "nanos": 500_000_000},
        extra={"a": 1.0, "b": [None, "c", {"d": True}]},
        limit={"value": 7.0},
        money={"units": 3, "currency": "EUR"},
        states=[1, 5],
        pin="0000",
        refund_of={"id": "p-0"},
    )

    document = READ(b"\x00" + payment.SerializeToString())

    refund = document.pop("refund_of")
    assert document == {
        "id": "p-1",
        "amount": 12.5,
        "score": 0.0,
        "big": 2**60,
        "state": "SETTLED",
        "raw": "AP8=",
        "card": {"country": "PT"},
        "tags": ["a", "b"],
        "scores": {"x": 0.5},
        "cards": {"true": {"country": "DE"}},
        "at": "2026-05-01T10:30:00.125000Z",
        "took": 2.5,
        "extra": {"a": 1.0, "b": [None, "c", {"d": True}]},
        "limit": 7.0,
        "money": {"units": 3, "currency": "EUR"},
        "states": ["SETTLED", 5],
        "pin": "0000",
    }
    assert refund["id"] == "p-0"
    assert orjson.loads(orjson.dumps(document)) == document


def test_absent_is_distinguished_from_zero_where_the_schema_can() -> None:
    """An optional field that was not set is absent; a plain one is its zero, which is how proto3 sends it."""
    assert READ(b"\x00") == {
        "id": "",
        "amount": 0.0,
        "big": 0,
        "state": "NEW",
        "raw": "",
        "tags": [],
        "scores": {},
        "cards": {},
        "states": [],
    }


def test_a_message_that_is_not_the_first(registry: Registry, topic_prefix: str) -> None:
    """The frame says which message of the file it is, nested ones too."""
    read = compile_protobuf(Schema("PROTOBUF", ORDER), [])

    assert read(framed(registry, topic_prefix, "Customer", mail="c")) == {"mail": "c"}
    assert read(framed(registry, topic_prefix, "Order", id="o-1")) == {"id": "o-1"}
    assert read(framed(registry, topic_prefix, "Order.Line.Item", pieces=3)) == {"pieces": 3}


@pytest.mark.parametrize("value", [b"", b"\x02", b"\x02\x0e", b"\x02\x01", b"\x80" * 9, b"\x04\x02\x02", b"\x00\xff"])
def test_a_broken_frame_or_message(value: bytes) -> None:
    """No indexes, indexes of no message, endless numbers, bytes that are no message."""
    with pytest.raises(Exception):  # noqa: B017, PT011
        READ(value)


def test_nesting_has_an_end() -> None:
    """A message in itself, thousands of levels deep, is refused by the parser."""
    value = b""
    for _ in range(3000):
        size = len(value)
        length = b""
        while size > 0x7F:
            length += bytes([size & 0x7F | 0x80])
            size >>= 7
        value = b"\x9a\x01" + length + bytes([size]) + value
    with pytest.raises(Exception, match="pars"):
        READ(b"\x00" + value)


@pytest.mark.parametrize(
    ("text", "imported", "problem"),
    [
        ("this is no .proto", {}, "protoc cannot compile it"),
        ('syntax="proto3"; import "gone.proto"; message A {}', {}, "gone.proto"),
        ('syntax="proto3"; message A {}', {"../escape.proto": ""}, "not a plain path"),
        ('syntax="proto3"; message A {}', {"/tmp/escape.proto": ""}, "not a plain path"),
    ],
)
def test_what_cannot_be_compiled(text: str, imported: dict[str, str], problem: str) -> None:
    """The compiler's own words, or what is wrong with a name."""
    with pytest.raises(UnusableSchema, match=problem):
        compile_protobuf(
            Schema("PROTOBUF", text), [(name, Schema("PROTOBUF", each)) for name, each in imported.items()]
        )


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(value: bytes) -> None:
    """Nothing but an exception or a document comes out, the same one each time."""
    found = []
    for _ in range(2):
        try:
            found.append(repr(READ(value)))
        except Exception as error:
            found.append(type(error).__name__)
    assert found[0] == found[1]
