"""Decisions: canonical bytes, round trips, and what surrounds them."""

from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.codec.decision_columns import DecisionColumns
from npstream.codec.decisions import (
    DECISION_SCHEMA,
    FIELDS,
    REASON_NAMES,
    Contribution,
    Decision,
    decode_decision,
    default_id,
    encode_decision,
    encode_decisions,
    model_name,
)
from npstream.codec.envelope import TRACE_HEADERS, decision_headers, published_timestamp
from npstream.errors import UsageError

PARSED = fastavro.parse_schema(orjson.loads(DECISION_SCHEMA))
GOLDEN = Path(__file__).parent / "golden" / "decisions-v1.jsonl"

# The floats are those whose shortest form serialisers disagree about most: exponents, subnormals, whole numbers.
EXAMPLES = [
    Decision("a1", 1, "score", 0.1, -2.5, 0.01, 1.0, 0.009765625, 1200, "1:5f0a9c3e"),
    Decision(7, -1, "warmup", 1e-7, 1e16, 0.05, 123456789.125, 0.0, 0, "1:5f0a9c3e"),
    Decision("orders/3/42", -1, "budget", 5e-324, -0.0, 1e-05, 2.0 / 3.0, 1e22, 2**53, "1:00000000"),
    Decision('quote " and \\ and é', 1, "invalid", None, None, 0.01, None, None, 3, "2:ffffffff"),
]

numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
decisions = st.builds(
    Decision,
    st.text(min_size=1, max_size=20) | st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([1, -1]),
    st.sampled_from(REASON_NAMES),
    numbers,
    numbers,
    st.floats(0, 1),
    numbers,
    numbers,
    st.integers(0, 2**53),
    st.text(max_size=20),
)


REVIEWED = replace(EXAMPLES[1], review=True, review_probability=0.002)


@pytest.mark.parametrize("schema", [None, 7])
def test_a_decision_that_asks_for_a_review_says_with_which_probability(schema: int | None) -> None:
    """Two fields more at its end in JSON, one in Avro; both read back."""
    value = encode_decision(REVIEWED, schema)

    assert decode_decision(value) == REVIEWED
    if schema is None:
        assert value == encode_decision(EXAMPLES[1])[:-1] + b',"review":true,"review_probability":0.002}'
    else:
        by_library: Any = fastavro.schemaless_reader(BytesIO(value[5:]), PARSED, None)
        assert by_library["review_probability"] == 0.002


TIERED = replace(EXAMPLES[0], decision=1, tier="block")


@pytest.mark.parametrize("schema", [None, 7])
def test_an_alarm_names_its_tier_where_there_are_tiers(schema: int | None) -> None:
    """One field more at its end, in JSON and in Avro; both read back, and one without an alarm is none."""
    value = encode_decision(TIERED, schema)

    assert decode_decision(value) == TIERED
    if schema is None:
        assert value == encode_decision(replace(TIERED, tier=None))[:-1] + b',"tier":"block"}'
    else:
        by_library: Any = fastavro.schemaless_reader(BytesIO(value[5:]), PARSED, None)
        assert by_library["tier"] == "block"
    with pytest.raises(UsageError, match="without an alarm"):
        decode_decision(value.replace(b'"decision":1', b'"decision":-1') if schema is None else value[:5] + NO_ALARM)


REASONED = replace(EXAMPLES[0], reasons=(Contribution("amount", 1.75), Contribution('a "b"', -0.1)))


@pytest.mark.parametrize("tier", [None, "block"])
@pytest.mark.parametrize("schema", [None, 7])
def test_an_alarm_ends_with_its_reasons(schema: int | None, tier: str | None) -> None:
    """Behind the tier, in order, with names as they are and numbers to the bit; only an alarm has reasons."""
    alarm = replace(REASONED, tier=tier)
    value = encode_decision(alarm, schema)

    assert decode_decision(value) == alarm
    listed = [{"feature": "amount", "contribution": 1.75}, {"feature": 'a "b"', "contribution": -0.1}]
    if schema is None:
        bare = encode_decision(replace(alarm, reasons=()))
        assert value == bare[:-1] + b',"reasons":' + orjson.dumps(listed) + b"}"
    else:
        by_library: Any = fastavro.schemaless_reader(BytesIO(value[5:]), PARSED, None)
        assert by_library["reasons"] == listed
    with pytest.raises(UsageError, match="without an alarm"):
        decode_decision(encode_decision(replace(alarm, decision=-1, tier=None), schema))


@pytest.mark.parametrize(
    "broken",
    [
        b'"reasons":[{"feature":"amount"}]',
        b'"reasons":[{"feature":1,"contribution":1.5}]',
        b'"reasons":[{"feature":"amount","contribution":null}]',
        b'"reasons":["amount"]',
        b'"reasons":{}',
        b'"reasons":[],"tier":"block"',
    ],
)
def test_reasons_in_another_form_are_refused(broken: bytes) -> None:
    """They are objects of a name and a number, behind the tier."""
    with pytest.raises(UsageError, match="not a decision"):
        decode_decision(encode_decision(EXAMPLES[0])[:-1] + b"," + broken + b"}")


def test_reasons_in_blocks_with_sizes_are_refused() -> None:
    """Avro allows them, npstream writes none: a reader that skipped them would lose its place."""
    value = encode_decision(REASONED, 7)
    at = value.index(b"\x04\x0camount")
    with pytest.raises(UsageError, match="blocks with sizes"):
        decode_decision(value[:at] + b"\x03" + value[at + 1 :])


NO_ALARM = encode_decision(replace(TIERED, decision=-1), 7)[5:]


def test_bytes_are_those_of_the_golden_file() -> None:
    """The published form of a decision never changes by accident, not by a new serialiser either."""
    expected = GOLDEN.read_bytes()

    assert b"".join(encode_decision(decision) + b"\n" for decision in EXAMPLES) == expected


@given(decisions)
def test_a_decision_in_avro_is_what_the_schema_says(decision: Decision) -> None:
    """A library's reader and our own get back what was written; an id beyond 64 bits is text."""
    value = encode_decision(decision, 258)

    identity = decision.id
    if isinstance(identity, int) and identity >= 2**63:
        identity = str(identity)
    by_library: Any = fastavro.schemaless_reader(BytesIO(value[5:]), PARSED, None)
    assert value[:5] == b"\x00\x00\x00\x01\x02"
    assert Decision(**{**by_library, "reasons": ()}) == decode_decision(value) == replace(decision, id=identity)
    assert by_library["reasons"] == []


DEPTH = {-1: 0, 1: 2}
NAMED = {-1: [-1, -1], 1: [1, -1]}


@given(st.lists(decisions, min_size=1, max_size=5))
def test_many_decisions_are_those_one_by_one(many: list[Decision]) -> None:
    """Columns and single decisions give the same bytes; NaN is null."""
    score, threshold, gamma, fpr = (
        np.array([getattr(each, name) for each in many], np.float64) for name in ("score", "threshold", "gamma", "fpr")
    )

    columns = DecisionColumns(
        [each.id for each in many],
        np.array([each.decision for each in many], np.int8),
        np.array([REASON_NAMES.index(each.reason) for each in many], np.int8),
        score,
        threshold,
        gamma,
        fpr,
        np.array([each.t for each in many]),
        np.array([DEPTH[each.decision] for each in many], np.int8),
        np.array([NAMED[each.decision] for each in many], np.int32),
        np.array([[each.t / 3, 0.0] for each in many]),
        tau=0.01,
        model="1:2",
        tiers=("review", "block"),
        features=("hour", "amount"),
    )

    published = [replace(each, tau=0.01, model="1:2") for each in many]
    published = [
        replace(each, tier="block", reasons=(Contribution("amount", each.t / 3),)) if each.decision == 1 else each
        for each in published
    ]
    for schema in (7, None):
        assert encode_decisions(columns, schema) == [encode_decision(each, schema) for each in published]


@given(st.binary(max_size=60))
def test_any_bytes_are_a_decision_in_avro_or_a_usage_error(content: bytes) -> None:
    """Nothing else is raised for a record of another topic."""
    with suppress(UsageError):
        assert decode_decision(b"\x00" + content).decision in (1, -1)


@given(decisions)
def test_a_decision_reads_back_as_it_was(decision: Decision) -> None:
    """Every field survives the trip, floats to the bit."""
    assert decode_decision(encode_decision(decision)) == decision


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"[]",
        b"{}",
        b'{"id":1}',
        encode_decision(EXAMPLES[0]).replace(b'"decision":1', b'"decision":2'),
        encode_decision(EXAMPLES[0]).replace(b'"decision":1', b'"decision":true'),
        encode_decision(EXAMPLES[0]).replace(b'"reason":"score"', b'"reason":"luck"'),
        encode_decision(EXAMPLES[0]).replace(b'"id":"a1"', b'"id":null'),
        encode_decision(EXAMPLES[0]).replace(b'"t":1200', b'"t":1.5'),
    ],
)
def test_other_bytes_are_refused(value: bytes | None) -> None:
    """What is not a decision is refused and the topic's name is called into question."""
    with pytest.raises(UsageError, match="check the name of the decisions topic"):
        decode_decision(value)


def test_fields_are_published_in_the_documented_order() -> None:
    """Readers may rely on the order of fields."""
    assert FIELDS == ("id", "decision", "reason", "score", "threshold", "tau", "gamma", "fpr", "t", "model")
    assert REASON_NAMES == ("score", "warmup", "budget", "invalid")


def test_names_are_readable() -> None:
    """Default ids and model names have their documented form."""
    assert default_id("orders", 3, 42) == "orders/3/42"
    assert model_name(1, "abcdef12", None) == "1:abcdef12"
    assert model_name(1, "abcdef12", "01234567") == "1:abcdef12:01234567"


@pytest.mark.parametrize(("event_time", "published"), [(5, 5), (1, 1), (0, 1), (-1, 1)])
def test_timestamps_below_one_become_one(event_time: int, published: int) -> None:
    """A timestamp that a client would read as "now" is not passed on."""
    assert published_timestamp(event_time) == published


def test_decisions_carry_the_offset_and_the_trace_and_nothing_else() -> None:
    """Trace headers pass as they came, in any case and even repeated; all others stay behind."""
    headers = [("id", b"a"), ("X-B3-TraceId", b"1"), ("traceparent", b"2"), ("npstream-offset", b"9"), ("b3", None)]

    assert decision_headers(42, ()) == [("npstream-offset", b"42")]
    assert decision_headers(42, headers) == [
        ("npstream-offset", b"42"),
        ("X-B3-TraceId", b"1"),
        ("traceparent", b"2"),
        ("b3", None),
    ]
    assert all(len(decision_headers(0, [(name, b"")])) == 2 for name in TRACE_HEADERS)
