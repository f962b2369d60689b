"""A payments topic as an upstream team writes it, and events of it in every state of repair."""

from typing import Any

from hypothesis import strategies as st

from npstream.codec.decoder import EventConfig
from npstream.codec.features import Feature, LabelRule, column_names

FEATURES = (
    Feature(name="amount", kind="number", path="amount", scale="log"),
    Feature(name="velocity", kind="number", path="velocity_1h"),
    Feature(name="device_score", kind="number", path="device.scores[1]", missing="allow"),
    Feature(name="country", kind="category", path="card.country", buckets=64),
    Feature(name="mcc", kind="category", path="merchant_mcc", buckets=256),
    Feature(name="three_ds", kind="flag", path="auth.three_ds"),
    Feature(name="hour", kind="time", path="created_at", cycle="day"),
    Feature(name="season", kind="time", path="created_at", cycle="year"),
)
PAYMENTS = EventConfig(
    d=len(column_names(FEATURES)),
    mapping=FEATURES,
    id="payment_id",
    label=LabelRule("fraud", (True, "Y"), (False, "N")),
    key=7,
    max_bytes=2_000,
)
NUMBERS = EventConfig(
    d=3,
    mapping=tuple(Feature(name=name, kind="number", path=f"x.{name}") for name in ("c", "a", "b")),
    max_bytes=400,
)
"""The short form of named features, written out."""

EVENT: dict[str, Any] = {
    "payment_id": "p-1",
    "amount": 12.5,
    "velocity_1h": 3,
    "device": {"id": "d", "scores": [0.1, 0.25]},
    "card": {"country": "DE", "bin": 424242},
    "merchant_mcc": 5411,
    "merchant": {"name": "Caf\u00e9 \u2615", "tags": ["food", None, {"a": [1, 2.5e3]}]},
    "auth": {"three_ds": True},
    "created_at": "2026-05-01T06:00:00Z",
    "fraud": "N",
}

texts = st.text(max_size=6) | st.sampled_from(["DE", "5411", "true", "", "é", '"', "\\", "\x00", "😀"])
numbers = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1e6, 1e6)
    | st.integers(-(10**6), 10**6)
    | st.sampled_from(
        [0, -0.0, 1, 1e15, -1e15, 1.0000001e15, 1e16, 2**53 + 1, 2**64 - 1, 10**19, -(2**63), 5e-324, 0.1]
    )
)
times = st.one_of(
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    st.datetimes().map(lambda moment: moment.isoformat(" ", "seconds") + "+05:30"),
    st.sampled_from(
        ["2024-02-29", "2023-02-29", "2024-01-01T00:00", "2024-13-01T00:00:00Z", "2024-01-01T24:00:00Z", "0000-01-01"]
    ),
    st.integers(-(10**21), 10**21),
    st.sampled_from([1.7e9, 1.7e12, 1.7e15, 1.7e18, 1e11, 99999999999.5, 1e20]),
)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def nearly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what a field holds, sometimes what it does not."""
    return st.one_of(usual, usual, usual, usual, st.none(), anything)


events: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "payment_id": nearly(st.text(min_size=1, max_size=8) | st.integers(-(2**63), 2**64 - 1)),
        "amount": nearly(numbers),
        "velocity_1h": nearly(numbers),
        "device": nearly(st.fixed_dictionaries({"scores": nearly(st.lists(nearly(numbers), max_size=3))})),
        "card": nearly(st.fixed_dictionaries({}, optional={"country": nearly(texts), "other": anything})),
        "merchant_mcc": nearly(st.integers(0, 9999) | texts | st.booleans()),
        "merchant": anything,
        "auth": nearly(st.fixed_dictionaries({"three_ds": nearly(st.booleans() | st.sampled_from([0, 1, 1.0, -0.0]))})),
        "created_at": nearly(times),
        "fraud": nearly(st.sampled_from([True, False, "Y", "N", 1, 0, 1.0, None])),
        "kind": anything,
    },
)
