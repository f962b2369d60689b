"""The fast decoder against its plain oracle, and what does not depend on the format."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.decoder import REASONS, EventConfig, EventDecoder, Kind
from npstream.codec.document import document
from npstream.codec.draft import DocumentDecoder
from npstream.codec.event import shown
from npstream.codec.features import Feature
from npstream.codec.transform import transform_of
from npstream.errors import BadEvent
from npstream.records import UNREADABLE_HEADERS, Record
from tests.codec import payments
from tests.codec.builders import event, f32, reasons, record, rows
from tests.codec.naive_events import naive_row

CONFIGS = {
    "array": EventConfig(d=3, max_bytes=400),
    "named": EventConfig(d=3, features=("a", "b", "c"), max_bytes=400),
    "external": EventConfig(d=0, external=True, max_bytes=400),
}

numbers: st.SearchStrategy[Any] = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, -0.0, 1e15, -1e15, 1.0000000001e15, 1e300, 5e-324, True, None, "1", [1], {}]),
)
ids = st.one_of(
    st.text(max_size=80), st.integers(-(2**63), 2**64 - 1), st.sampled_from([None, True, 1.5, "", "é" * 200])
)
labels: st.SearchStrategy[Any] = st.sampled_from(
    [1, -1, 0, True, False, 1.0, -1.0, 0.0, -0.0, None, 2, "1", 0.5, [], {}]
)
ODD: list[Any] = [True, False, None, "1", [1], {}, 1e15, -1.0000000001e15, 1e300, 2**63]


def with_one_odd(odd: Any, at: int) -> list[Any]:
    return [odd if index == at else 0.5 for index in range(3)]


features = st.one_of(
    st.lists(st.floats(-10, 10), min_size=3, max_size=3),
    st.builds(with_one_odd, st.sampled_from(ODD), st.integers(0, 2)),
    st.lists(numbers, min_size=0, max_size=4),
    st.dictionaries(st.sampled_from("abcd"), numbers, max_size=4),
    numbers,
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "id": ids,
        "x": features,
        "y": labels,
        "score": numbers,
        "kind": st.sampled_from(["label", None, "labels", 1, True]),
        "other": st.integers(0, 9),
    },
)
values = st.one_of(
    documents.map(orjson.dumps),
    documents.map(orjson.dumps),
    st.sampled_from(
        [
            None,
            b"",
            b"{",
            b"[1]",
            b"7",
            b"null",
            b"NaN",
            b'{"x":[NaN,1,2]}',
            b"{}{}",
            b'{"x":[1,2,3]},',
            b"\xff",
            b" " * 401,
        ]
    ),
    st.binary(max_size=20),
)


@pytest.mark.parametrize("name", CONFIGS)
@given(batch=st.lists(values, max_size=12))
@settings(max_examples=300, deadline=None)
def test_json_batches_follow_the_rules_event_by_event(name: str, batch: list[bytes | None]) -> None:
    """Whatever a batch holds, each row is what the plain rules say about its event alone."""
    config = CONFIGS[name]
    expected = [naive_row(value, config) for value in batch]

    actual = rows(EventDecoder(config).decode([record(value) for value in batch]))

    assert expected == actual


@given(batch=st.lists(values, max_size=12), cut=st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_rows_do_not_depend_on_the_batch(batch: list[bytes | None], cut: int) -> None:
    """Decoding a batch in two parts gives the rows of decoding it at once, details included."""
    decoder = EventDecoder(CONFIGS["array"])
    records = [record(value) for value in batch]

    def details(part: list[Record]) -> list[Any]:
        decoded = decoder.decode(part)
        return [(row, str(decoded.errors.get(i))) for i, row in enumerate(rows(decoded))]

    assert details(records) == details(records[:cut]) + details(records[cut:])


def test_formats_agree_to_the_bit() -> None:
    """The same numbers give the same float32 rows from JSON and from raw float32."""
    x = np.random.default_rng(7).normal(size=(50, 4)).astype(np.float32)
    from_json = EventDecoder(EventConfig(d=4)).decode([event(x=[float(v) for v in row]) for row in x])
    from_f32 = EventDecoder(EventConfig(d=4, format="f32")).decode([f32(*row) for row in x])

    assert from_json.x.tobytes() == from_f32.x.tobytes() == x.tobytes()


@pytest.mark.parametrize("config", [EventConfig(d=3), EventConfig(d=3, format="f32")], ids=["json", "f32"])
def test_columns_fit_the_kernel(config: EventConfig) -> None:
    """Columns are contiguous, writable and of the promised types, in an empty batch too."""
    good = event(x=[1, 2, 3], y=1) if config.format == "json" else f32(1, 2, 3, y=b"1")
    for batch in ([], [good], [record(None)], [good, record(None)]):
        decoded = EventDecoder(config).decode(batch)

        assert decoded.x.shape == (len(batch), 3)
        assert [column.dtype.name for column in (decoded.x, decoded.score, decoded.y)] == ["float32", "float64", "int8"]
        assert decoded.x.flags.c_contiguous
        assert decoded.x.flags.writeable
        assert len(decoded.kinds) == len(decoded.ids) == len(decoded.score) == len(decoded.y) == len(batch)


MAPPED = EventConfig(
    d=4,
    mapping=(
        Feature(name="c", kind="category", path="c", buckets=64),
        Feature(name="f", kind="flag", path="f"),
        Feature(name="t", kind="time", path="t", cycle="day", missing="allow"),
    ),
)


def test_every_reason_is_documented_and_can_happen() -> None:
    """The list of reasons is exactly what the decoders give."""
    config = EventConfig(d=2, features=("a", "b"), max_bytes=64)
    bad_json = [
        record(None),
        record(b""),
        record(b" " * 65),
        record(b"{"),
        event_of([1]),
        event(id=1),
        event(x=3),
        event(x=[1]),
        event(x={"a": 1}),
        event(x=[1, "2"]),
        event(x=[1, 1e16]),
        event(x=[1, 2], y=3),
        event(id=1, x=[1, 2], kind="label"),
        event(id="", x=[1, 2]),
        event(y=1),
        event(x=[1, 2], kind="other"),
        event(x=[1, 2])._replace(key=b"k" * 64_001),
        event(x=[1, 2])._replace(headers=UNREADABLE_HEADERS),
    ]
    mapped = [event(c=1.5), event(f=2), event(t="noon")]
    seen = {
        *reasons(EventDecoder(config).decode(bad_json)),
        *reasons(EventDecoder(MAPPED).decode(mapped)),
        *reasons(EventDecoder(EventConfig(d=2, transform=transform_of("tests.codec.builders:no_dict"))).decode(mapped)),
        *reasons(EventDecoder(EventConfig(d=2, format="f32")).decode([f32(1, float("nan"))])),
        *reasons(EventDecoder(EventConfig(d=2, format="json_schema")).decode([event(x=[1, 2])])),
    }
    of_schemas = {"wrong_schema_type", "not_of_schema"}  # tests/registry/test_documents.py

    assert set(REASONS) == seen | of_schemas


def test_json_behind_the_id_of_a_schema() -> None:
    """Five bytes are no part of the document; a value without them is bad, whatever it looks like."""
    values: list[dict[str, Any]] = [{"id": "a", "x": [1, 2], "y": 1}, {"id": "b", "x": [3, 4]}]
    framed = [record(b"\0\0\0\0\7" + orjson.dumps(value)) for value in values]
    others = [record(None), record(b""), event(x=[1, 2]), record(b"\0\0\0\0"), record(b"\0\0\0\0\7")]

    found = EventDecoder(EventConfig(d=2, format="json_schema")).decode([framed[0], *others, framed[1]])

    assert [found.errors[row].reason for row in range(1, 6)] == [
        *("tombstone", "empty", "not_wire_format", "not_wire_format", "empty")
    ]
    plain = EventDecoder(EventConfig(d=2)).decode([event(**values[0]), event(**values[1])])
    assert (found.ids[0], found.ids[6]) == ("a", "b")
    assert found.x[[0, 6]].tobytes() == plain.x.tobytes()
    assert found.y[[0, 6]].tolist() == plain.y.tolist()


def test_documents_of_schemas_are_read_as_json_is() -> None:
    """A value that comes with its document gives the row of the same document in JSON; a bad one its own reason."""
    values = [{"id": "a", "x": [1, 2], "y": 1}, {"id": "b", "x": [1]}, {"id": "c", "y": -1}, [1]]
    plain = EventDecoder(EventConfig(d=2)).decode([event_of(value) for value in values])
    bad = BadEvent("not_of_schema", "it does not fit schema 7")

    found = EventDecoder(EventConfig(d=2, format="avro", max_bytes=9)).decode(
        [*(record(document(b"any", value)) for value in values), record(document(b"any", bad)), record(bytes(10))]
    )

    assert (found.kinds[:4], found.ids[:4]) == (plain.kinds, plain.ids)
    assert found.x[:4].tobytes() == plain.x.tobytes()
    assert [found.errors[row].reason for row in (1, 3, 4, 5)] == [
        *("wrong_length", "not_object", "not_of_schema", "oversize")
    ]


def event_of(document: object) -> Record:
    return record(json.dumps(document).encode())


def test_bad_details_are_short_ascii() -> None:
    """Details fit a header and are the same on every machine, whatever was sent."""
    decoded = EventDecoder(EventConfig(d=2)).decode(
        [event(id="ü" * 500, x=[1, 2]), event(x=["\N{SNOWMAN}" * 500, 1]), event(x=[1, 2], y={"deep": ["ß"] * 300})]
    )

    assert decoded.kinds == [-1, -1, -1]
    assert all(error.detail.isascii() and len(error.detail) < 200 for error in decoded.errors.values())


def test_a_bad_label_is_awaited_by_nobody() -> None:
    """Only bad events that would have been decided keep their id for a decision."""
    decoded = EventDecoder(EventConfig(d=2)).decode(
        [
            event(id="decide", x=[1, None], y=1),
            event(id="echo", x=[1, None], y=1, kind="label"),
            event(id="label", y=7),
            event(id="bare"),
            event(id=True, x=[1, 2]),
        ]
    )

    assert decoded.kinds == [Kind.BAD] * 5
    assert decoded.bad_ids == {0: "decide", 3: "bare"}
    assert decoded.ids == [None] * 5
    assert not decoded.x.any()
    assert not decoded.y.any()


@given(st.lists(payments.events, min_size=4, max_size=8))
def test_documents_give_the_rows_of_the_mapping(documents: list[dict[str, Any]]) -> None:
    """Read by compiled code as JSON or one by one: the same rows; NaN and infinity are never taken for null."""
    odd = [{**payments.EVENT, "amount": number, "fraud": None} for number in (float("nan"), float("inf"))]
    contents = [*documents, *odd]
    records = [record(document(b"any", content)) for content in contents]

    found = EventDecoder(replace(payments.PAYMENTS, format="avro")).decode(records)

    assert repr(rows(found)) == repr(rows(DocumentDecoder(payments.PAYMENTS).decode(contents)))  # NaN is no NaN
    assert [found.errors[len(documents) + at].reason for at in range(2)] == ["not_finite", "not_finite"]


@pytest.mark.parametrize("nest", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["lists", "objects"])
def test_a_picture_of_a_value_is_short_however_deep_it_is(nest: Callable[[Any], Any]) -> None:
    """What lies beyond its end is not looked at, or a hostile event would exhaust the stack."""
    shallow: Any = 1
    for _ in range(100):
        shallow = nest(shallow)
    deep = shallow
    for _ in range(100_000):
        deep = nest(deep)

    assert shown(deep) == shown(shallow)
    assert shown(deep).endswith("...")
