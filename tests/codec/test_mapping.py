"""Mapped events: paths, kinds, missing values, labels; what is wrong is named by feature and path."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings

from npstream.codec.decoder import EventConfig, EventDecoder, Kind
from npstream.codec.draft import DocumentDecoder
from npstream.codec.features import Feature, LabelRule, contract, difference, steps_of
from npstream.codec.mapping import Mapping
from npstream.codec.times import seconds_of_text
from npstream.errors import BadEvent
from tests.codec.builders import f32, record, rows
from tests.codec.naive_events import Row, naive_row
from tests.codec.payments import EVENT, FEATURES, PAYMENTS, events


def changed(**fields: Any) -> dict[str, Any]:
    """The usual payment with other fields."""
    return {**EVENT, **fields}


def close(found: Row, expected: Row) -> bool:
    """Equal rows; sines and logarithms to the last bits of a float32, numbers and codes exactly."""
    return found[:2] + found[3:] == expected[:2] + expected[3:] and np.allclose(
        found[2], expected[2], rtol=3e-7, atol=2e-7, equal_nan=True
    )


def test_a_payment_is_read_by_its_paths() -> None:
    """Every kind of feature, an id and a label, in an event that npstream has no say in."""
    found = Mapping(PAYMENTS).read(EVENT)
    decoded = DocumentDecoder(PAYMENTS).decode([EVENT])

    assert (found.kind, found.event_id, found.label) == (Kind.LABELLED, "p-1", -1)
    assert found.values[:3] == [12.5, 3.0, 0.25]
    assert decoded.x[0, :3].tolist() == [float(np.float32(math.log1p(12.5))), 3.0, 0.25]
    assert decoded.x[0, 5:8].tolist() == [1.0, 1.0, pytest.approx(0.0, abs=1e-15)]


@given(events)
@example(EVENT)
@example({**EVENT, "velocity_1h": 1e15, "device": {"scores": [0, -1e15]}})
@example({**EVENT, "velocity_1h": 10**15 + 1})
@example({"fraud": "Y", "payment_id": 3})
@example({"fraud": "Y"})
@example({})
@settings(max_examples=400, deadline=None)
def test_any_payment_follows_the_rules(document: dict[str, Any]) -> None:
    """Whatever an event holds: the row, or the reason, that the rules give when they are written out plainly."""
    value = json.dumps(document).encode()
    (found,) = rows(EventDecoder(PAYMENTS).decode([record(value)]))

    assert close(found, naive_row(value, PAYMENTS))


@pytest.mark.parametrize(
    ("fields", "reason", "words"),
    [
        ({"amount": None}, "missing_feature", "amount: amount is absent or null"),
        ({"amount": "12"}, "not_number", "amount: amount is '12'"),
        ({"amount": True}, "not_number", "amount: amount is True"),
        ({"amount": 1e16}, "magnitude", "amount: amount is beyond 1e15"),
        ({"device": {"scores": [0, "high"]}}, "not_number", "device_score: device.scores[1] is 'high'"),
        ({"card": {"country": 1.5}}, "bad_category", "country: card.country is 1.5"),
        ({"auth": {"three_ds": "yes"}}, "bad_flag", "three_ds: auth.three_ds is 'yes'"),
        ({"created_at": "noon"}, "bad_time", "hour: created_at is 'noon'"),
        ({"created_at": None}, "missing_feature", "hour: created_at is absent or null"),
        ({"fraud": "maybe"}, "bad_label", "fraud is 'maybe'; a target is True or 'Y', a non-target False or 'N'"),
        ({"payment_id": 1.5}, "bad_id", "payment_id is 1.5"),
    ],
)
def test_what_is_wrong_is_named_by_feature_and_path(fields: dict[str, Any], reason: str, words: str) -> None:
    """A dead letter says which feature it is about and where in the event it looked."""
    with pytest.raises(BadEvent) as caught:
        Mapping(PAYMENTS).read(changed(**fields))

    assert caught.value.reason == reason
    assert caught.value.detail.startswith(words)


@pytest.mark.parametrize(
    "fields",
    [
        {"device": None},
        {"device": {}},
        {"device": {"scores": [1]}},
        {"device": {"scores": {"1": 2}}},
        {"device": "none"},
    ],
)
def test_a_path_that_leads_nowhere_is_a_missing_value(fields: dict[str, Any]) -> None:
    """Absent, null, too short, or something else on the way."""
    assert math.isnan(Mapping(PAYMENTS).read(changed(**fields)).values[2])


def test_an_absent_category_or_flag_is_a_value_of_its_own() -> None:
    """Nobody has to allow it."""
    values = Mapping(PAYMENTS).read(changed(card=None, merchant_mcc=None, auth={})).values

    assert [math.isnan(value) for value in values] == [False, False, False, True, True, True, False, False]


def test_a_category_is_its_canonical_text() -> None:
    """The number 5411 and the text "5411" are one category, true and "true" another; the key changes all codes."""

    def code(value: object, key: int = 7) -> float:
        config = EventConfig(d=1, mapping=(Feature(name="c", kind="category", path="c", buckets=64),), key=key)
        return Mapping(config).read({"c": value}).values[0]

    assert code(5411) == code("5411") != code("5412")
    assert code(True) == code("true") != code(1)
    assert code("") == code("")
    assert code("DE") != code("DE", key=8)
    assert all(0 <= code(f"v{i}") < 2**24 for i in range(100))
    assert len({code(f"v{i}") for i in range(1000)}) > 990


def test_a_label_comes_alone_when_no_feature_is_there() -> None:
    """Then the id says whose it is; the word `kind` means nothing in somebody else's event."""
    mapping = Mapping(PAYMENTS)

    assert mapping.read({"payment_id": 7, "fraud": True, "kind": "purchase"})[:2] == (Kind.LABEL, 7)
    assert mapping.read(changed(fraud=None)).kind == Kind.OBSERVATION
    assert mapping.awaited(changed(amount=None)) == "p-1"
    assert mapping.awaited({"payment_id": 7, "fraud": "maybe"}) is None
    with pytest.raises(BadEvent, match="no_features"):
        mapping.read({"payment_id": 7})


def test_nan_in_raw_float32_is_missing_where_that_is_allowed() -> None:
    """Elsewhere it is a bad event, as it is without a mapping; the feature is named."""
    features = (
        Feature(name="a", kind="number", path="a"),
        Feature(name="b", kind="number", path="b", missing="allow", scale="log"),
        Feature(name="c", kind="flag", path="c"),
    )
    decoder = EventDecoder(EventConfig(d=3, format="f32", mapping=features))
    decoded = decoder.decode([f32(1, math.nan, math.nan, y=b"1"), f32(math.nan, 1, 1), f32(1, math.inf, 0)])

    assert np.isnan(decoded.x[0]).tolist() == [False, True, True]
    assert [(index, error.reason) for index, error in decoded.errors.items()] == [(1, "not_finite"), (2, "not_finite")]
    assert "number 1, b" in decoded.errors[2].detail


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("payload.after.amount", ("payload", "after", "amount")),
        ("items[0].price", ("items", 0, "price")),
        ("m[0][12]", ("m", 0, 12)),
        ('["a.b"].c', ("a.b", "c")),
        ('a["b"]', ("a", "b")),
        ("a-b $c", ("a-b $c",)),
    ],
)
def test_a_path_is_taken_apart(path: str, steps: tuple[object, ...]) -> None:
    """Dots go down, [0] into an array, quotes around what holds a dot."""
    assert steps_of(path) == steps


@pytest.mark.parametrize("path", ["", ".a", "a.", "a..b", "a[", "a[-1]", "a[01]", "[0]", "a]b", "a[0]b", '[""]', 'a"b'])
def test_what_is_no_path_is_refused(path: str) -> None:
    """With examples of what one looks like."""
    with pytest.raises(ValueError, match=r"path|array"):
        steps_of(path)


def test_the_contract_changes_with_anything_the_model_sees() -> None:
    """Names, kinds, paths, scales, cells, missing rules, order: each gives another hash, and the change is named."""
    first, second, *rest = FEATURES
    changes = {
        "gone": (first, *rest),
        "is another order": (second, first, *rest),
        "amount: is now number amount; it was number amount scale log": (
            Feature(name="amount", kind="number", path="amount"),
            second,
            *rest,
        ),
        "velocity: is now number velocity_1h missing allow": (
            first,
            Feature(name="velocity", kind="number", path="velocity_1h", missing="allow"),
            *rest,
        ),
    }

    hashes = {contract(features) for features in changes.values()} | {contract(FEATURES)}
    assert len(hashes) == len(changes) + 1
    for words, features in changes.items():
        assert any(words in line for line in difference(FEATURES, features)), words


def test_iso_text_without_a_zone_is_utc() -> None:
    """Commas and short zones count as well."""
    assert seconds_of_text("1970-01-02") == seconds_of_text("1970-01-02 00:00") == 86_400.0
    assert seconds_of_text("1970-01-01T00:00:01,5Z") == 1.5
    assert seconds_of_text("1970-01-01T02:00:00+02") == seconds_of_text("1969-12-31t23:00:00-0100") == 0.0
    assert math.isnan(seconds_of_text("1970-01-01T00:00:60Z"))


def test_default_label_rule_is_that_of_plain_events() -> None:
    """1 and true, -1, 0 and false."""
    assert LabelRule().signs == {1: 1, -1: -1, 0: -1}
