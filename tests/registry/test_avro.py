"""Avro values to documents: what an event in JSON would carry, and nothing that a hostile value can break."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.registry.avro import DEPTH_MAX, compile_avro
from npstream.registry.client import Schema, UnusableSchema


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A logical type."""
    return {"type": kind, "logicalType": name, **more}


EVERYTHING: dict[str, Any] = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": logical("bytes", "decimal", precision=10, scale=2)},
        {"name": "at", "type": logical("long", "timestamp-millis")},
        {"name": "seen", "type": logical("long", "timestamp-micros")},
        {"name": "local", "type": logical("long", "local-timestamp-millis")},
        {"name": "day", "type": logical("int", "date")},
        {"name": "hour", "type": logical("int", "time-millis")},
        {"name": "token", "type": logical("string", "uuid")},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SETTLED"]}},
        {"name": "raw", "type": "bytes"},
        {
            "name": "card",
            "type": ["null", {"type": "record", "name": "Card", "fields": [{"name": "n", "type": "int"}]}],
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "scores", "type": {"type": "map", "values": ["double", "null"]}},
    ],
}
CONTENT: dict[str, Any] = {
    "id": "p-1",
    "amount": Decimal("1234.56"),
    "at": datetime(2026, 5, 1, 10, 30, 0, 125_000, tzinfo=UTC),
    "seen": datetime(2026, 5, 1, 10, 30, tzinfo=UTC),
    "local": datetime(2026, 5, 1, 12, 30),  # noqa: DTZ001
    "day": date(2026, 5, 1),
    "hour": time(10, 30),
    "token": UUID(int=5),
    "state": "SETTLED",
    "raw": b"\x00\xff",
    "card": {"n": 7},
    "tags": ["a", "b"],
    "scores": {"x": 0.5, "y": None},
}
LIST: dict[str, Any] = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}


def written(schema: Any, content: Any) -> bytes:
    """A value as fastavro's writer makes it."""
    target = BytesIO()
    fastavro.schemaless_writer(target, schema, content)
    return target.getvalue()


def reader(schema: Any, *imported: Any) -> Callable[[bytes], Any]:
    """The reader under test."""
    texts = [Schema("AVRO", orjson.dumps(each).decode()) for each in (schema, *imported)]
    return compile_avro(texts[0], texts[1:])


def test_every_type_in_the_terms_of_json() -> None:
    """Decimals are the numbers of their digits, moments ISO text, bytes base64; orjson needs no help with any."""
    document = reader(EVERYTHING)(written(EVERYTHING, CONTENT))

    assert document == {
        "id": "p-1",
        "amount": 1234.56,
        "at": "2026-05-01T10:30:00.125000Z",
        "seen": "2026-05-01T10:30:00Z",
        "local": "2026-05-01T12:30:00",
        "day": "2026-05-01",
        "hour": "10:30:00",
        "token": "00000000-0000-0000-0000-000000000005",
        "state": "SETTLED",
        "raw": "AP8=",
        "card": {"n": 7},
        "tags": ["a", "b"],
        "scores": {"x": 0.5, "y": None},
    }
    assert orjson.loads(orjson.dumps(document)) == document


def test_a_schema_that_refers_to_others() -> None:
    """Named types come from the imported schemas, in the order in which they need each other."""
    country = {"type": "enum", "name": "shop.Country", "symbols": ["DE", "PT"]}
    card = {"type": "record", "name": "shop.Card", "fields": [{"name": "country", "type": "shop.Country"}]}
    payment = {"type": "record", "name": "shop.Payment", "fields": [{"name": "card", "type": "shop.Card"}]}

    assert reader(payment, country, card)(b"\x02") == {"card": {"country": "PT"}}


@pytest.mark.parametrize(
    "broken", ["not JSON", '{"type":"record"}', '{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]}']
)
def test_what_is_not_a_schema(broken: str) -> None:
    """A text that Avro cannot use is named as such."""
    with pytest.raises(UnusableSchema, match="not an Avro schema"):
        compile_avro(Schema("AVRO", broken), [])


@pytest.mark.parametrize("items", ["null", {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}])
def test_an_array_of_nothing_is_refused(items: Any) -> None:
    """Five bytes of it would ask for a list as long as memory."""
    with pytest.raises(UnusableSchema, match="take no bytes"):
        reader({"type": "record", "name": "A", "fields": [{"name": "a", "type": {"type": "array", "items": items}}]})


def test_nesting_has_an_end() -> None:
    """A schema that contains itself is read to a depth; a value beyond is refused and never ends the process."""
    read = reader(LIST)

    fits = read(b"\x02" * (DEPTH_MAX - 2) + b"\x00")

    assert str(fits).count("next") == DEPTH_MAX - 1
    for levels in (DEPTH_MAX - 1, 100_000):
        with pytest.raises((ValueError, RecursionError)):
            read(b"\x02" * levels + b"\x00")


def test_types_that_share_types_are_looked_at_once() -> None:
    """Forty records, each with two of the one before: a walk into every one of them would never end."""
    fields: list[dict[str, Any]] = [{"name": "n", "type": "int"}]
    schemas: list[Any] = []
    for number in range(40):
        schemas.append({"type": "record", "name": f"R{number}", "fields": fields})
        fields = [{"name": "a", "type": f"R{number}"}, {"name": "b", "type": ["null", f"R{number}"]}]

    read = reader(
        {"type": "record", "name": "Top", "fields": [{"name": "l", "type": {"type": "array", "items": "R2"}}]}, *schemas
    )

    assert read(b"\x02\x02\x00\x00\x00") == {"l": [{"a": {"a": {"n": 1}, "b": None}, "b": None}]}


def test_two_types_in_each_other_are_as_deep_as_one_in_itself() -> None:
    """A cycle is found through other types, arrays and unions."""
    inner = {"type": "record", "name": "B", "fields": [{"name": "a", "type": {"type": "array", "items": "A"}}]}
    outer = {"type": "record", "name": "A", "fields": [{"name": "b", "type": ["null", inner]}]}

    with pytest.raises((ValueError, RecursionError)):
        reader(outer)(b"\x02\x02" * 60_000 + b"\x00")


def test_bytes_left_over_do_not_fit() -> None:
    """A value of another schema may begin like one of this."""
    with pytest.raises(ValueError, match="left over"):
        reader(EVERYTHING)(written(EVERYTHING, CONTENT) + b"\x00")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(value: bytes) -> None:
    """Nothing but an exception or a document in the terms of JSON comes out, the same one each time."""
    read = reader(EVERYTHING)
    found = []
    for _ in range(2):
        try:
            found.append(repr(read(value)))
        except Exception as error:
            found.append(type(error).__name__)
    assert found[0] == found[1]
