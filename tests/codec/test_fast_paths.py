"""Every short way through the codec against the long one, event by event, for batches that take the short way."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npstream.codec.cells import cells, id_words, words
from npstream.codec.decision_columns import DecisionColumns
from npstream.codec.decisions import REASON_NAMES, Decision, encode_decision, encode_decisions
from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.codec.envelope import OFFSET_HEADER, TRACE_HEADERS, decision_headers, many_decision_headers
from npstream.records import Headers, Record
from tests.codec.builders import record, rows
from tests.codec.naive_events import naive_f32_row, naive_row

D = 3
JSON = EventConfig(d=D, max_bytes=400)
NAMED = EventConfig(d=D, features=("c", "a", "b"), max_bytes=400)
EXTERNAL = EventConfig(d=0, external=True, max_bytes=400)
F32 = EventConfig(d=D, format="f32")
F32_EXTERNAL = EventConfig(d=0, external=True, format="f32")
LONG = 40
"""Events enough for the compiled reader."""

texts = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'), min_size=1, max_size=12)
ids = texts | st.text(min_size=1, max_size=8).filter(lambda text: text.isprintable())
numbers = st.floats(-1e9, 1e9, width=32)
vectors = st.lists(numbers, min_size=D, max_size=D)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile once, so that no example has to."""
    EventDecoder(JSON).warm_up()


# Raw float32

plain_headers = st.tuples(ids.map(str.encode), st.sampled_from([b"1", b"-1", b"0"])).map(
    lambda pair: [("id", pair[0]), ("y", pair[1])]
)
plain_f32 = st.builds(lambda x, headers: record(np.array(x, "<f4").tobytes(), 0, headers), vectors, plain_headers)
odd_headers: st.SearchStrategy[Headers] = st.lists(
    st.one_of(
        st.tuples(st.just("id"), st.sampled_from([b"", b"a", b"\xff", b"i" * 256, b"i" * 257, None])),
        st.tuples(st.just("y"), st.sampled_from([b"1", b"-1", b"0", b"2", b"", None])),
        st.tuples(st.just("kind"), st.sampled_from([b"label", b"labels", None])),
        st.tuples(st.just("traceparent"), st.just(b"t")),
    ),
    max_size=4,
)
odd_values = st.one_of(
    st.lists(
        numbers | st.sampled_from([float("nan"), float("inf"), 1.1e15, -1e30]), min_size=D - 1, max_size=D + 1
    ).map(lambda x: np.array(x, "<f4").tobytes()),
    st.sampled_from([None, b"", b"1234", b"12345"]),
)
odd_f32 = st.builds(lambda value, headers: record(value, 0, headers), odd_values, odd_headers | plain_headers)


absurd = st.sampled_from([float("nan"), float("inf"), float("-inf"), 1.1e15, -1.1e15])
nearly_vectors = st.builds(lambda x, odd, at: [*x[:at], odd, *x[at + 1 :]], vectors, absurd, st.integers(0, D - 1))
nearly_headers = st.tuples(
    st.sampled_from(["id", "id", "y", "kind", "traceparent"]),
    st.sampled_from([b"a", b"", b"\xff", b"i" * 256, b"i" * 257]),
    st.sampled_from(["y", "y", "id", "kind", "traceparent"]),
    st.sampled_from([b"1", b"0", b"2", b"label"]),
).map(lambda pair: [(pair[0], pair[1]), (pair[2], pair[3])])
nearly_plain = st.builds(
    lambda x, headers: record(np.array(x, "<f4").tobytes(), 0, headers),
    vectors | nearly_vectors,
    plain_headers | nearly_headers,
)


@given(st.lists(plain_f32, max_size=2), nearly_plain, st.lists(plain_f32, max_size=2))
@example([], record(bytes(4 * D), 0, [("id", b"i" * 257), ("y", b"1")]), [])
@settings(max_examples=300, deadline=None)
def test_one_odd_event_among_plain_float32_events_is_noticed(
    before: list[Record], odd: Record, after: list[Record]
) -> None:
    """The right number of headers and bytes does not make an event plain."""
    batch = [*before, odd, *after]
    expected = [naive_f32_row(each.value, each.headers, F32) for each in batch]

    assert rows(EventDecoder(F32).decode(batch)) == expected


@given(st.lists(plain_f32, min_size=1, max_size=6))
@settings(deadline=None)
def test_plain_float32_batches_follow_the_rules_event_by_event(batch: list[Record]) -> None:
    """Read by columns, each row is what the plain rules say about its event alone."""
    assert rows(EventDecoder(F32).decode(batch)) == [naive_f32_row(each.value, each.headers, F32) for each in batch]


@pytest.mark.parametrize("config", [F32, F32_EXTERNAL], ids=["vector", "external"])
@given(batch=st.lists(plain_f32 | odd_f32, max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_float32_batch_follows_the_rules_event_by_event(config: EventConfig, batch: list[Record]) -> None:
    """Whatever a batch holds, and whichever way it takes."""
    expected = [naive_f32_row(each.value, each.headers, config) for each in batch]

    assert rows(EventDecoder(config).decode(batch)) == expected


@given(st.lists(plain_f32, min_size=1, max_size=6))
@settings(deadline=None)
def test_a_bad_neighbour_does_not_change_float32_events(batch: list[Record]) -> None:
    """With it the batch goes the long way, and gives the same rows to the bit."""
    short, long = EventDecoder(F32).decode(batch), EventDecoder(F32).decode([*batch, record(None)])

    assert rows(short) == rows(long)[:-1]
    assert short.x.tobytes() == long.x[:-1].tobytes()


# JSON

labels: st.SearchStrategy[Any] = st.sampled_from([1, -1, 0, None])


def written(event: dict[str, Any], spaced: bool) -> bytes:
    """One event as text: as most serialisers write it, or with a space."""
    return orjson.dumps(event).replace(b'{"', b'{ "', 1) if spaced else orjson.dumps(event)


def event_of(name: Any, x: Any, y: Any, source: str = "x") -> dict[str, Any]:
    """The fields in their usual order."""
    return {"id": name, source: x, "y": y}


def batches(events: st.SearchStrategy[dict[str, Any]], size: int, *, spaced: bool) -> st.SearchStrategy[list[bytes]]:
    """`size` values, drawn from a handful of events so that long batches are quick to make."""
    few = st.lists(events, min_size=1, max_size=5)
    return st.builds(
        lambda found, turn: [written(found[(i * turn) % len(found)], spaced) for i in range(size)],
        few,
        st.integers(1, 7),
    )


def expected(values: list[bytes], config: EventConfig) -> list[tuple[Any, ...]]:
    """Row by row, by the plain rules."""
    return [naive_row(value, config) for value in values]


def decoded(values: list[bytes], config: EventConfig) -> list[tuple[Any, ...]]:
    """Row by row, by the decoder."""
    return rows(EventDecoder(config).decode([record(value) for value in values]))


@given(batches(st.builds(event_of, texts, vectors.map(lambda x: [v or 0.0 for v in x]), labels), LONG, spaced=False))
@settings(deadline=None)
def test_json_batches_for_the_compiled_reader_follow_the_rules(values: list[bytes]) -> None:
    """Long batches of the commonest shape: ids, features, labels of each event alone."""
    assert decoded(values, JSON) == expected(values, JSON)


json_ids = ids | st.integers(-(2**63), 2**64 - 1) | st.none()


@given(batches(st.builds(event_of, json_ids, vectors, labels), LONG, spaced=True))
@settings(deadline=None)
def test_json_batches_in_another_spelling_follow_the_rules(values: list[bytes]) -> None:
    """Long batches of plain events in another spelling."""
    assert decoded(values, JSON) == expected(values, JSON)


anything: st.SearchStrategy[Any] = st.one_of(
    vectors,
    st.lists(numbers, min_size=D - 1, max_size=D + 1),
    st.lists(st.sampled_from([1, 0, True, False, None, "1", 2e15, -1e15]), min_size=D, max_size=D),
)


@pytest.mark.parametrize("size", [5, LONG])
@given(data=st.data())
@settings(deadline=None)
def test_json_batches_that_need_a_closer_look_follow_the_rules(size: int, data: st.DataObject) -> None:
    """True, text, null and numbers out of range among the features; ids and labels of other types."""
    odd_id = json_ids | st.sampled_from(["", True, 1.5, "é" * 40, "é" * 129, "i" * 64, "i" * 65])
    odd_label = st.sampled_from([1, -1, 0, None, True, False, 1.0, 2, "1"])
    values = data.draw(batches(st.builds(event_of, odd_id, anything, odd_label), size, spaced=data.draw(st.booleans())))

    assert decoded(values, JSON) == expected(values, JSON)


@pytest.mark.parametrize("size", [5, LONG])
@pytest.mark.parametrize("config", [NAMED, EXTERNAL], ids=["named", "external"])
@given(data=st.data())
@settings(deadline=None)
def test_json_batches_of_other_kinds_follow_the_rules(config: EventConfig, size: int, data: st.DataObject) -> None:
    """Named features and scores."""
    named = st.permutations(["a", "b", "c", "d"]).flatmap(
        lambda order: st.lists(numbers, min_size=4, max_size=4).map(lambda x: dict(zip(order, x, strict=True)))
    )
    source = "score" if config.external else "x"
    events = st.builds(event_of, json_ids, numbers if config.external else named, labels, st.just(source))
    values = data.draw(batches(events, size, spaced=False))

    assert decoded(values, config) == expected(values, config)


@pytest.mark.parametrize("spaced", [False, True], ids=["compact", "spaced"])
@given(data=st.data())
@settings(deadline=None)
def test_a_bad_neighbour_does_not_change_json_events(spaced: bool, data: st.DataObject) -> None:
    """One odd event costs itself; the others have the same rows to the bit."""
    values = data.draw(batches(st.builds(event_of, texts, vectors, labels), LONG, spaced=spaced))
    records = [record(value) for value in values]
    short, long = EventDecoder(JSON).decode(records), EventDecoder(JSON).decode([*records, record(b"{")])

    assert rows(short) == rows(long)[:-1]
    assert short.x.tobytes() == long.x[:-1].tobytes()


# Decisions

floats = st.floats() | st.sampled_from([0.0, -0.0, 1e22, 5e-324])
decision_ids = st.text(min_size=1, max_size=8) | st.integers(-(2**63), 2**64 - 1) | st.just("a,b")
decision_rows = st.tuples(
    decision_ids, st.sampled_from([1, -1]), st.integers(0, 2), floats, floats, floats, floats, st.integers(0, 2**53)
)


def number(value: float) -> float | None:
    """As a decision holds it."""
    return value if np.isfinite(value) else None


@given(st.lists(decision_rows, min_size=1, max_size=6), st.floats(0, 1))
def test_many_decisions_have_the_bytes_of_each(found: list[tuple[Any, ...]], tau: float) -> None:
    """Columns become text at once; every row keeps its own id, side, reason and numbers."""
    names, *columns = zip(*found, strict=True)
    kinds: list[Any] = [np.int8, np.int8, *[np.float64] * 4, np.int64]
    given: list[Any] = [np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    reviewed = frozenset(row for row, (_, side, *_) in enumerate(found) if side < 0 and row % 2)
    review = {True: (True, 0.25), False: (False, None)}
    each = [
        Decision(
            i, s, REASON_NAMES[r], number(a), number(b), tau, number(c), number(d), n, "1:a", *review[row in reviewed]
        )
        for row, (i, s, r, a, b, c, d, n) in enumerate(found)
    ]
    depth = (given[0] > 0).astype(np.int8)
    none = np.zeros((len(found), 0))  # no reasons: tests/codec/test_decisions.py has those
    made = DecisionColumns._make(
        [names, *given, depth, none.astype(np.int32), none, tau, "1:a", reviewed, 0.25, (), ()]
    )

    for schema in (None, 7):
        assert encode_decisions(made, schema) == [encode_decision(one, schema) for one in each]


@given(st.lists(floats, max_size=6), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6))
def test_cells_are_what_json_writes_for_each(column: list[float], counts: list[int]) -> None:
    """Floats and integers, as bytes and as text."""
    made = cells(np.array(column, np.float64))

    assert made == [orjson.dumps(value) for value in column]
    assert words(np.array(column, np.float64)) == [text.decode() for text in made]
    assert cells(counts) == cells(np.array(counts, np.int64)) == [b"%d" % value for value in counts]


@given(st.lists(decision_ids, min_size=1, max_size=6))
def test_ids_are_what_json_writes_for_each(names: list[str | int]) -> None:
    """A comma in one of them, which columns are cut at, changes nothing."""
    assert id_words(names) == [orjson.dumps(name).decode() for name in names]


header_names = st.sampled_from([TRACE_HEADERS[0], "X-B3-TraceId", "id", OFFSET_HEADER, "ü"])
headers_of_events = st.lists(st.tuples(header_names, st.none() | st.binary(max_size=4)), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 2**62), headers_of_events), max_size=5))
def test_many_headers_are_those_of_each(found: list[tuple[int, list[tuple[str, bytes | None]]]]) -> None:
    """Traced events among others keep their own trace."""
    offsets, headers = [offset for offset, _ in found], [own for _, own in found]

    assert many_decision_headers(offsets, headers) == [decision_headers(*each) for each in found]
