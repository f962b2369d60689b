"""Events found by their ids: exactly those that decoding every event would find."""

import json
import struct
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.codec.document import document
from npstream.codec.event import Kind
from npstream.codec.features import Transform
from npstream.codec.finder import EventFinder, Found
from npstream.codec.learn_header import LEARN_HEADER
from npstream.codec.walk import Walker
from npstream.records import Headers, Record
from tests.codec import payments
from tests.codec.payments import EVENT, PAYMENTS
from tests.codec.test_walk import ARRAY, CONFIGS, short_events, spellings

RAW = EventConfig(d=1, format="f32")
NAMES = ["a-1", "p-1", "1", "0", "-3", "007", "é", '"', "😀", "\\", str(2**64 - 1)]
ids = st.sampled_from([*NAMES, 1, 0, -3, 2**64 - 1, 1.0, True, None, "other", "1 "])
headers: st.SearchStrategy[Headers] = st.sampled_from([(), (), (), [(LEARN_HEADER, b"1")], [(LEARN_HEADER, b"yes")]])
names = st.sets(st.sampled_from(NAMES))


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile once, so that no example has to."""
    EventDecoder(ARRAY).warm_up()


def slowly(config: EventConfig, wanted: set[str], records: Sequence[Record]) -> list[Found]:
    """Each event decoded by itself and looked at."""
    found = []
    for record in records:
        decoded = EventDecoder(config).decode([record])
        own = decoded.bad_ids.get(0, decoded.ids[0])
        if own is not None and str(own) in wanted:
            found.append(Found(record, str(own), Kind(decoded.kinds[0]), int(decoded.y[0])))
    return found


def check(config: EventConfig, wanted: set[str], values: Sequence[bytes | None], own: Sequence[Headers]) -> None:
    records = [Record(i, 1, None, value, own[i % len(own)]) for i, value in enumerate(values)]
    assert EventFinder(config, wanted).find(records) == slowly(config, wanted, records)


@given(
    st.lists(
        st.builds(
            lambda write, event, own: write({**event, "payment_id": own}),
            spellings,
            payments.events,
            ids,
        ),
        min_size=1,
        max_size=8,
    ),
    names,
    st.lists(headers, min_size=1, max_size=3),
)
@example([orjson.dumps(EVENT)] * 5, {"p-1"}, [()])
@example([json.dumps({**EVENT, "payment_id": "é"}).encode()] * 5, {"é"}, [()])
@settings(max_examples=300, deadline=None)
def test_payments_are_found_as_decoding_all_finds_them(
    values: list[bytes], wanted: set[str], own: list[Headers]
) -> None:
    """In any spelling, good or bad, escaped or nested; with the header of a label or without."""
    check(PAYMENTS, wanted, values, own)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_short_events_are_found_as_decoding_all_finds_them(config: EventConfig, data: st.DataObject) -> None:
    """Arrays, names, scores, labels that come alone."""
    identity = config.id
    written = st.builds(
        lambda write, event, own: write({**event, identity: own}), spellings, short_events, ids
    ) | st.sampled_from([b"", b"{", b'{"id":"a-1","id":"p-1","x":[1,2,3]}', b'{"\\u0069d":"a-1","x":[1,2,3]}', None])
    check(config, data.draw(names), data.draw(st.lists(written, min_size=1, max_size=8)), [data.draw(headers)])


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(["id", "y", "kind"]), st.sampled_from([b"a-1", b"1", None])))),
    names,
)
@settings(max_examples=200, deadline=None)
def test_raw_vectors_are_found_by_their_header(own: list[list[tuple[str, bytes | None]]], wanted: set[str]) -> None:
    """Also where a header is there twice, and in events that are bad."""
    check(RAW, wanted, [struct.pack("<f", 1.5)] * len(own), own)


@given(st.lists(st.tuples(payments.events, ids), min_size=1, max_size=6), names)
@settings(max_examples=100, deadline=None)
def test_documents_of_a_registry_are_found_by_what_they_say(
    events: list[tuple[dict[str, Any], Any]], wanted: set[str]
) -> None:
    """Avro and Protobuf come with their documents."""
    config = EventConfig(**{**_fields(PAYMENTS), "format": "avro"})
    check(config, wanted, [document(b"\0" * 6, {**event, "payment_id": own}) for event, own in events], [()])


def test_json_schema_frames_and_functions_are_followed() -> None:
    """The five bytes in front of a document, and an id that only a function of the user's knows."""
    framed = EventConfig(**{**_fields(ARRAY), "format": "json_schema"})
    check(framed, {"a-1"}, [b"\0\0\0\0\1" + b'{"id":"a-1","x":[1,2,3]}', b'{"id":"a-1","x":[1,2,3]}'] * 3, [()])
    moved = EventConfig(**{**_fields(ARRAY), "transform": Transform("tests.codec.test_finder:renamed", _source())})
    values = [b'{"name":"a-1","x":[1,2,3]}', b'{"id":"a-1","x":[1,2,3]}'] * 3
    check(moved, {"a-1"}, values, [()])
    assert len(EventFinder(moved, {"a-1"}).find([Record(i, 1, None, value) for i, value in enumerate(values)])) == 3


def test_most_events_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those with a wanted id are: the others cost the walk for their id."""
    asked: list[int] = []
    honest = EventDecoder.decode

    def decode(self: EventDecoder, records: Sequence[Record]) -> Any:
        asked.append(len(records))
        return honest(self, records)

    finder = EventFinder(ARRAY, {"7", "nobody"})
    monkeypatch.setattr(EventDecoder, "decode", decode)
    records = [Record(i, 1, None, orjson.dumps({"id": i, "x": [1, 2, 3]})) for i in range(100)]
    assert [each.record.offset for each in finder.find(records)] == [7]
    assert asked == ([1] if _is_compiled() else [100])


def renamed(event: dict[str, Any]) -> dict[str, Any]:
    """The id under its usual name."""
    return {"id": event.get("name"), "x": event["x"]}


def _source() -> str:
    from npstream.codec.transform import transform_of

    return transform_of("tests.codec.test_finder:renamed").source


def _fields(config: EventConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__dataclass_fields__}


def _is_compiled() -> bool:
    from npstream.jit import DISABLED

    return not DISABLED and Walker is not None
