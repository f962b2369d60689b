"""The compiled reader of common JSON events: what it reads is what a full parser reads, and nothing else is read."""

from decimal import Decimal

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from npstream.codec.decimal import to_double
from npstream.codec.decoder import Decoded, EventConfig, EventDecoder
from npstream.codec.scan import ID_BEGIN, read_events
from npstream.records import Record

D = 3
DECODER = EventDecoder(EventConfig(d=D, max_bytes=400))
PLAIN = b'{"id":"a-1","x":[0.5,-12,3e-3],"y":1}'

finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(
    finite.filter(lambda number: number == 0.0 or 1e-300 < abs(number) < 1e15).map(lambda number: number or 0.0),
    st.integers(-(10**15), 10**15),
    st.decimals(-1000, 1000, places=4).map(float).map(lambda number: number or 0.0),
)
ids = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'), min_size=1, max_size=40)
labels = st.sampled_from([1, 0, -1, None])


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile once, so that no example has to."""
    assert read_events([PLAIN], [len(PLAIN)], D, 64) is not None
    to_double(np.uint64(1), 1)


def batch(value: bytes) -> list[Record]:
    """The value among so many plain ones that the compiled reader is used."""
    return [Record(i, 1, None, value if i == 20 else PLAIN) for i in range(40)]


def row(decoded: Decoded, event: int) -> tuple[object, ...]:
    """Everything that was found out about one event."""
    error = decoded.errors.get(event)
    label, features = int(decoded.y[event]), decoded.x[event].tobytes()
    return decoded.kinds[event], decoded.ids[event], label, features, error and (error.reason, str(error))


def same_as_alone(value: bytes) -> bool:
    """Whether an event among others is decoded as it is alone, by the full parser."""
    return row(DECODER.decode(batch(value)), 20) == row(DECODER.decode([Record(0, 1, None, value)]), 0)


@given(ids, st.lists(numbers, min_size=D, max_size=D), labels)
def test_events_of_the_common_shape_are_read_as_a_parser_reads_them(name: str, x: list[float], y: int | None) -> None:
    """Features to the last bit, however they are written; the id; the label."""
    value = orjson.dumps({"id": name, "x": x, "y": y})
    found = read_events([PLAIN, value], [len(PLAIN), len(value)], D, 64)

    assert found is not None
    document = orjson.loads(value)
    assert found.x[1].tolist() == [float(number) for number in document["x"]]
    assert value[ID_BEGIN : found.id_ends[1]].decode() == name
    assert found.y.tolist() == [1, {1: 1, 0: -1, -1: -1, None: 0}[y]]


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
def test_odd_events_among_others_are_decoded_as_alone(value: bytes) -> None:
    """What has another shape goes to the full parser, with all its neighbours."""
    assert same_as_alone(value)


@given(
    st.integers(0, len(PLAIN)), st.integers(0, 3), st.binary(max_size=2) | st.sampled_from([b",", b"]}", b"e1", b'"'])
)
def test_damaged_events_among_others_are_decoded_as_alone(at: int, gone: int, put: bytes) -> None:
    """No damage to one event shows elsewhere, and none is read as something that a parser would refuse."""
    assert same_as_alone(PLAIN[:at] + put + PLAIN[at + gone :])


def test_one_event_cannot_pass_for_two() -> None:
    """A value that ends in the middle and one that begins there are two bad events, not one good one."""
    records = batch(PLAIN[:20])
    records[21] = records[21]._replace(value=PLAIN[20:])
    decoded = DECODER.decode(records)

    assert sorted(decoded.errors) == [20, 21]


@given(st.integers(1, 2**64 - 1), st.integers(-400, 400))
@example(2**53 + 1, 0)
@example(9007199254740993, 0)
@example((2**53 + 1) * 5, -1)
@example((2**53 + 3) * 25, -2)
@example(2**64 - 1, 308)
@example(2**64 - 1, -342)
@example(1, -308)
@example(22250738585072011, -324)
def test_a_decimal_becomes_the_nearest_double(digits: int, q: int) -> None:
    """To the last bit, ties to even; what cannot be told here is said to be so."""
    found = to_double(np.uint64(digits), q)
    right = float(f"{digits}e{q}")

    assert found == right or (np.isnan(found) and not 1e-290 < right < 1e290)


@given(finite.filter(lambda number: 1e-290 < abs(number) < 1e290))
def test_the_shortest_text_of_a_double_becomes_that_double(number: float) -> None:
    """What serialisers write comes back."""
    _, digits, exponent = Decimal(repr(abs(number))).as_tuple()

    assert to_double(np.uint64(int("".join(map(str, digits)))), int(exponent)) == abs(number)
