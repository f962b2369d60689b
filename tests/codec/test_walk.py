"""Compiled code that reads JSON: what it reads is what the slow reader reads, to the bit; what is odd is left alone."""

import json
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npstream.codec.categories import code_of, start_of_key
from npstream.codec.decoder import Decoded, EventConfig, EventDecoder
from npstream.codec.features import Feature
from npstream.codec.json_events import WALK_MIN
from npstream.codec.times import seconds_of_text
from npstream.codec.tokens import code_of_token, past_number, past_string, seconds_of_token
from npstream.codec.walk import ODD, Walker
from npstream.records import Record
from tests.codec import payments
from tests.codec.payments import EVENT, PAYMENTS, anything, texts

ARRAY = EventConfig(d=3, max_bytes=400)
NAMED = EventConfig(d=3, features=("c", "a", "b"), max_bytes=400)
EXTERNAL = EventConfig(d=0, external=True, max_bytes=400)
CONFIGS = {"array": ARRAY, "named": NAMED, "mapped": PAYMENTS, "external": EXTERNAL, "written out": payments.NUMBERS}
PLAIN = b'{"id":"a-1","x":[0.5,-12,3e-3],"y":1}'

spellings: st.SearchStrategy[Callable[[Any], bytes]] = st.sampled_from(
    [
        lambda document: json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode(),
        lambda document: json.dumps(document).encode(),
        lambda document: json.dumps(document, ensure_ascii=False, indent=1).encode(),
        lambda document: b"\r\n\t " + json.dumps(document, sort_keys=True, separators=(" ,", "\t: ")).encode() + b" ",
        lambda document: json.dumps(dict(reversed(document.items()))).encode(),
    ]
)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile once, so that no example has to."""
    EventDecoder(ARRAY).warm_up()
    text = np.frombuffer(b"1970-01-01\0", np.uint8)
    past_number(text, 0), past_string(text, 0)
    code_of_token(text, 0, 1, np.uint64(0)), seconds_of_token(text, 0, 10)


def read(decoded: Decoded, event: int) -> tuple[object, ...]:
    """Everything that was found out about one event, to the bit."""
    error = decoded.errors.get(event)
    numbers = decoded.x[event].tobytes(), decoded.score[event].tobytes(), int(decoded.y[event])
    identity = decoded.ids[event], type(decoded.ids[event]), decoded.bad_ids.get(event)
    return decoded.kinds[event], identity, numbers, error and (error.reason, error.detail)


def check(values: list[bytes], config: EventConfig) -> None:
    """Each event of a batch is read as it is alone, by the slow reader."""
    decoder = EventDecoder(config)
    while len(values) < WALK_MIN:
        values = [*values, *values]
    together = decoder.decode([Record(i, 1, None, value) for i, value in enumerate(values)])
    for event, value in enumerate(values):
        assert read(together, event) == read(decoder.decode([Record(0, 1, None, value)]), 0), value


def odd(value: bytes, config: EventConfig) -> bool:
    """Whether compiled code leaves an event to the slow reader."""
    return bool(Walker(config).walk([value])[0].kinds[0] == ODD)


@given(st.lists(st.builds(lambda write, event: write(event), spellings, payments.events), min_size=1, max_size=8))
@example([orjson.dumps(EVENT)])
@settings(max_examples=500, deadline=None)
def test_payments_are_read_as_the_slow_reader_reads_them(values: list[bytes]) -> None:
    """Any spelling, key order, nesting and rubbish."""
    check(values, PAYMENTS)


numbers = payments.numbers
short_x = (
    st.lists(payments.nearly(numbers), min_size=2, max_size=4)
    | st.lists(numbers, min_size=3, max_size=3)
    | st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), payments.nearly(numbers))
)
short_events = st.fixed_dictionaries(
    {},
    optional={
        "id": payments.nearly(st.text(min_size=1, max_size=8) | st.integers(-(2**63), 2**64 - 1)),
        "x": payments.nearly(short_x),
        "score": payments.nearly(numbers),
        "y": payments.nearly(st.sampled_from([1, 0, -1, True, False, 1.0, 2, None])),
        "kind": st.sampled_from(["label", "label", None, "other", 1]),
        "more": anything,
    },
)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_short_events_are_read_as_the_slow_reader_reads_them(config: EventConfig, data: st.DataObject) -> None:
    """Arrays, names and scores go the same way."""
    written = st.builds(lambda write, event: write(event), spellings, short_events)
    check(data.draw(st.lists(written, min_size=1, max_size=8)), config)


damage = st.one_of(
    st.binary(max_size=2),
    st.sampled_from([b",", b"]}", b"e1", b'"', b"{", b"[", b"\\", b"\\u00e9", b"\xc3", b"0", b"-", b"\0"]),
)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_events_are_read_as_the_slow_reader_reads_them(config: EventConfig, data: st.DataObject) -> None:
    """No damage to one event shows elsewhere, and none is read as something that a parser would refuse."""
    spaced = json.dumps(EVENT).encode()
    whole = data.draw(st.sampled_from([PLAIN, orjson.dumps(EVENT), spaced]))
    at, gone, put = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 3)), data.draw(damage)
    check([whole, whole[:at] + put + whole[at + gone :], whole], config)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"[]",
        b'{"id":"a","x":[1,2,3]}',
        b'{"id":"a","x":[1,2,3],"y":null}',
        b'{"id":"a","x":[1,2,3],"y":1.0}',
        b'{"id":"a","x":[1,2,3],"y":true}',
        b'{"id":"a","x":[1,2,3],"y":2}',
        b'{"id":"a","x":[1,2,3],"y":1}}',
        b'{"id":"a","x":[1,2,3],"y":1} ',
        b'{"id":"a","x":[1,2,3],"y":1,"kind":"label"}',
        b'{"id":"a","x":[1,2,3,4],"y":1}',
        b'{"id":"a","x":[1,2],"y":1}',
        b'{"id":"a","x":[1,2,],"y":1}',
        b'{"id":"a","x":[1,,2],"y":1}',
        b'{"id":"a","x":[01,2,3],"y":1}',
        b'{"id":"a","x":[1.,2,3],"y":1}',
        b'{"id":"a","x":[.5,2,3],"y":1}',
        b'{"id":"a","x":[+1,2,3],"y":1}',
        b'{"id":"a","x":[-,2,3],"y":1}',
        b'{"id":"a","x":[1e,2,3],"y":1}',
        b'{"id":"a","x":[1e+,2,3],"y":1}',
        b'{"id":"a","x":[-0,-0.0,0],"y":1}',
        b'{"id":"a","x":[1e400,2,3],"y":1}',
        b'{"id":"a","x":[1e-400,4e-320,3],"y":1}',
        b'{"id":"a","x":[1e99999999999999999999,2,3],"y":1}',
        b'{"id":"a","x":[1e15,2,3],"y":1}',
        b'{"id":"a","x":[1e16,2,3],"y":1}',
        b'{"id":"a","x":[0.10000000000000000000001,2,3],"y":1}',
        b'{"id":"a","x":[000000000000000000000.1,2,3],"y":1}',
        b'{"id":"a","x":[0.00000000000000000000000000000000000012345678901234567,2,3],"y":1}',
        b'{"id":"a","x":[1.8446744073709551616,-0.18446744073709551616,18446744073709551616e-9],"y":1}',
        b'{"id":"a","x":[36893488147419103232e-9,3.6893488147419103232,0.0036893488147419103232],"y":1}',
        b'{"id":"a","x":[1e18446744073709551616,2,3],"y":1}',
        b'{"id":"a","x":[1e-18446744073709551616,2,3],"y":1}',
        b'{"id":"a","x":[1e0000000000000000000000000000000002,2E-03,3e+1],"y":1}',
        b'{"id":"a","x":[true,2,3],"y":1}',
        b'{"id":"a","x":["1",2,3],"y":1}',
        b'{"id":"a","x":[1 ,2,3],"y":1}',
        b'{"id":"","x":[1,2,3],"y":1}',
        b'{"id":"' + b"a" * 65 + b'","x":[1,2,3],"y":1}',
        b'{"id":"' + b"a" * 300 + b'","x":[1,2,3],"y":1}',
        b'{"id":"' + "é".encode() + b'","x":[1,2,3],"y":1}',
        b'{"id":"\\u0041","x":[1,2,3],"y":1}',
        b'{"id":"a\x00","x":[1,2,3],"y":1}',
        b'{"id":7,"x":[1,2,3],"y":1}',
        b'{"x":[1,2,3],"id":"a","y":1}',
        b'{"id":"a","x":[1,2,3]',
        b'{"id":"a","x":[1,2,3',
        b'{"id":"a","x":[',
        b'{"id":"a',
        PLAIN + PLAIN,
    ],
)
def test_odd_events_among_others_are_read_as_alone(value: bytes) -> None:
    """What is odd goes to the slow reader, alone."""
    check([PLAIN, PLAIN, value, PLAIN], ARRAY)


@pytest.mark.parametrize(
    "write", [orjson.dumps, json.dumps, lambda event: json.dumps(event, indent=2, ensure_ascii=False)]
)
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"payment_id": 17},
        {"payment_id": None},
        {"merchant": {"deep": [[[{"a": "\n\t\\/\u00e9"}]]], "n": [-0.0, 1e-7, 12345678]}},
        {"amount": -0.0, "velocity_1h": 0},
        {"card": None, "auth": {"three_ds": 0}, "device": []},
        {"created_at": 1_700_000_000_000, "fraud": True},
        {"fraud": None},
        {"fraud": "Y"},
        {"card": ["DE"]},
        {"kind": "purchase"},
    ],
)
def test_usual_events_are_not_odd(write: Callable[[Any], Any], change: dict[str, Any]) -> None:
    """Spaces, nesting, integers for ids, nulls, escapes in what nobody asks for: none of it is slow."""
    text = write({**EVENT, **change})
    value = text if isinstance(text, bytes) else text.encode()

    assert not odd(value, PAYMENTS)
    check([value], PAYMENTS)


@pytest.mark.parametrize(
    ("value", "config"),
    [
        (b'{"id":"a","x":[1,2,3]}', ARRAY),
        (b'{"y":-1,"x":[1, 2, 3],"id":7}', ARRAY),
        (b'{"id":"a","y":1}', ARRAY),
        (b'{"id":"a","y":1,"kind":"label"}', ARRAY),
        (b'{"id":"a","x":[1,2,3],"y":1,"kind":"label"}', ARRAY),
        (b'{"id":"a","x":{"a":1,"b":2,"c":3,"d":4},"y":1}', NAMED),
        (b'{"id":"a","x":[1,2,3],"y":1}', NAMED),
        (b'{"id":"a","score":0.5,"y":1}', EXTERNAL),
    ],
)
def test_every_short_form_is_read_by_compiled_code(value: bytes, config: EventConfig) -> None:
    """Observations, labels that come alone or with features, names, scores."""
    assert not odd(value, config)


@pytest.mark.parametrize(
    "value",
    [
        b'{"amount":1,"amount":2}',
        b'{"card":{"country":"A"},"card":{}}',
        b'{"am\\u006funt":1}',
        b'{"payment_id":"\\u0041"}',
        b'{"merchant":"\xff"}',
        b'{"merchant":"\xed\xa0\x80"}',
        b'{"merchant":"\\ud800"}',
        b'{"merchant":' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"merchant":' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"merchant":1e400}',
        b'{"merchant":01}',
        b'{"merchant":tru}',
        b'{"merchant":[1,]}',
        b'{"merchant":{"a":1,}}',
        b'{"merchant":{"a" 1}}',
        b'{"merchant":{,}}',
        b'{"merchant":[}',
        b'{"merchant":1}}',
        b'{"merchant":1} x',
        b'{"merchant":"a\nb"}',
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_wrong_anywhere_is_found(value: bytes) -> None:
    """Also in parts that nobody asks for: two of a key, bad UTF-8, bad numbers, bad brackets."""
    whole = orjson.dumps(EVENT)[:-1] + b"," + value[1:] if value.startswith(b"{") else value

    assert odd(whole, PAYMENTS)
    check([whole], PAYMENTS)


def test_a_key_is_known_in_its_own_object_alone() -> None:
    """Wherever another object has one of the same name, and in whatever order they come."""
    mapping = tuple(Feature(name=path[-1], kind="number", path=path) for path in ("a.b", "c"))
    config = EventConfig(d=2, mapping=mapping, max_bytes=400)
    values = [
        orjson.dumps(dict([*order[:at], ("b", 9), *order[at:]]))
        for order in permutations({"a": {"b": 1}, "c": 2, "id": "i", "y": 1}.items())
        for at in range(5)
    ]

    assert not any(odd(value, config) for value in values)
    check(values, config)


def test_one_event_cannot_pass_for_two() -> None:
    """A value that ends in the middle and one that begins there are two bad events, not one good one."""
    values = [PLAIN, PLAIN[:20], PLAIN[20:], PLAIN]
    decoded = EventDecoder(ARRAY).decode([Record(i, 1, None, value) for i, value in enumerate(values)])

    assert sorted(decoded.errors) == [1, 2]


def test_very_many_names_in_a_hostile_order_cost_themselves() -> None:
    """Names are looked for in the order they came in last time; a thousand in reverse go to the slow reader."""
    names = tuple(f"n{i}" for i in range(1000))
    config = EventConfig(d=1000, features=names)
    values = [
        orjson.dumps({"id": i, "x": dict.fromkeys(order, 1.5)}) for i, order in enumerate([names, names[::-1]] * 2)
    ]

    assert not odd(values[0], config)
    check(values, config)


@given(texts, st.integers(0, 2**64 - 1))
def test_categories_have_one_code(text: str, key: int) -> None:
    """In compiled code as in plain Python."""
    data, start = text.encode(), start_of_key(key)

    assert code_of_token(np.frombuffer(data + b"\0", np.uint8), 0, len(data), np.uint64(start)) == code_of(data, start)


@given(
    st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9]([Tt ][0-2][0-9]:[0-6][0-9](:[0-6][0-9]([.,][0-9]{1,10})?)?)?", fullmatch=True
    ),
    st.sampled_from(["", "Z", "z", "+01:00", "-0530", "+23", "+24:00", "x", "+1", "+01:60", "-", ":00"]),
)
@example("2024-02-29", "")
@example("2024-02-30", "")
@example("2023-02-29", "")
@example("1900-02-29", "")
@example("2000-02-29", "")
@example("2024-01-32", "")
@example("2024-01-00", "")
@example("2024-00-01", "")
@example("2024-12-31", "")
@example("2024-13-01", "")
@example("0001-01-01T00:00:00.000000001", "-23:59")
@example("0000-01-01", "")
@example("9999-12-31T23:59:59,999999999", "+23:59")
@example("2024-01-01T24:00", "")
@example("2024-01-01T00:60", "")
@example("2024-01-01T00:00:60", "")
@settings(max_examples=500)
def test_times_are_one_number(text: str, zone: str) -> None:
    """Whatever looks like a time, in compiled code as in plain Python."""
    data = (text + zone).encode()
    found = seconds_of_token(np.frombuffer(data + b'"\0', np.uint8), 0, len(data))

    assert np.float64(found).tobytes() == np.float64(seconds_of_text(data.decode())).tobytes() or np.isnan(found)
    assert np.isnan(found) == np.isnan(seconds_of_text(data.decode()))
