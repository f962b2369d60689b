"""A label in a header, with the event as it came: learned in every format, published in none."""

import orjson
import pytest

from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.codec.document import document
from npstream.codec.event import Kind
from npstream.codec.learn_header import LEARN_HEADER, labelled_again
from npstream.codec.screen import KEY_MAX_BYTES
from npstream.records import Record
from tests.codec.builders import f32, rows
from tests.codec.payments import EVENT, PAYMENTS

SHORT = {"id": "a", "x": [0.5, 1.0, 2.0]}
UNKNOWN = {**EVENT, "fraud": None}
_AVRO = EventConfig(**{**{name: getattr(PAYMENTS, name) for name in PAYMENTS.__dataclass_fields__}, "format": "avro"})
CASES = {
    "short": (EventConfig(d=3), Record(4, 1, b"k", orjson.dumps(SHORT))),
    "mapped": (PAYMENTS, Record(4, 1, b"k", orjson.dumps(UNKNOWN))),
    "avro": (_AVRO, Record(4, 1, b"k", document(b"\0" * 9, UNKNOWN))),
    "f32": (EventConfig(d=2, format="f32"), f32(1.0, 2.0, id=b"a", traceparent=b"t")),
}


@pytest.mark.parametrize(("config", "event"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("sign", [1, -1])
def test_an_event_given_back_is_its_label(config: EventConfig, event: Record, sign: int) -> None:
    """Id and features are those of the event, to the bit, whatever the format."""
    key, value, headers = labelled_again(event, sign)
    again = Record(9, 1, key, value, headers)
    came, back = EventDecoder(config).decode([event, again]), EventDecoder(config).decode([again])

    assert (key, value) == (event.key, event.value)
    assert [name for name, _ in headers] == (["id"] if config.format == "f32" else []) + [LEARN_HEADER]
    assert came.kinds == [Kind.OBSERVATION, Kind.ECHO]
    first, second = rows(came)
    assert second == (int(Kind.ECHO), *first[1:4], sign, None, None)
    assert rows(back) == [second]


def test_the_header_counts_more_than_the_event() -> None:
    """An event with a label of its own, or one that is a label already, has that of the header; of two the last."""
    decoder = EventDecoder(EventConfig(d=3))
    value = orjson.dumps({**SHORT, "y": 1})
    given = [
        Record(0, 1, None, value, [(LEARN_HEADER, b"-1")]),
        Record(1, 1, None, orjson.dumps({**SHORT, "y": 1, "kind": "label"}), [(LEARN_HEADER, b"-1")]),
        Record(2, 1, None, value, [(LEARN_HEADER, b"-1"), (LEARN_HEADER, b"1")]),
        Record(3, 1, None, orjson.dumps({"id": "a", "y": 1}), [(LEARN_HEADER, b"-1")]),
    ]
    decoded = decoder.decode(given)

    assert decoded.kinds == [Kind.ECHO, Kind.ECHO, Kind.ECHO, Kind.LABEL]
    assert decoded.y.tolist() == [-1, -1, 1, -1]


@pytest.mark.parametrize("content", [b"0", b"", b"true", None, b"\xff"])
def test_any_other_content_is_a_bad_label(content: bytes | None) -> None:
    """Nothing is guessed, and nobody awaits a decision."""
    record = Record(0, 1, None, orjson.dumps(SHORT), [(LEARN_HEADER, content)])
    decoded = EventDecoder(EventConfig(d=3)).decode([record] * 5)

    assert {error.reason for error in decoded.errors.values()} == {"bad_label"}
    assert (decoded.bad_ids, decoded.ids) == ({}, [None] * 5)
    assert not decoded.x.any()
    assert not decoded.y.any()


def test_a_bad_event_with_the_header_stays_bad() -> None:
    """Its reason is that of the event, and no decision is published for it."""
    headers = [(LEARN_HEADER, b"1")]
    given = [
        Record(0, 1, None, orjson.dumps({"id": "a", "x": [1]}), headers),
        Record(1, 1, b"k" * (KEY_MAX_BYTES + 1), orjson.dumps(SHORT), headers),
        Record(2, 1, None, None, headers),
    ]
    decoded = EventDecoder(EventConfig(d=3)).decode(given)

    assert [decoded.errors[row].reason for row in range(3)] == ["wrong_length", "oversize_key", "tombstone"]
    assert decoded.bad_ids == {}
