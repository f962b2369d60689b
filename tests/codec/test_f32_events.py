"""Raw float32 events: the value, its headers, and what is refused."""

import numpy as np
import pytest

from npstream.codec.decoder import EventConfig, EventDecoder, Kind
from npstream.codec.features import Feature
from npstream.records import Headers, Record
from tests.codec.builders import f32, reasons, record, rows

DECODER = EventDecoder(EventConfig(d=2, format="f32"))


def test_headers_say_what_the_numbers_are_for() -> None:
    """Observation, labelled event, label alone and echoed label are distinguished by headers."""
    batch = [f32(1, 2), f32(1, 2, id=b"a", y=b"0"), f32(id=b"a", y=b"1"), f32(3, 4, y=b"-1", kind=b"label")]

    expected = [
        (Kind.OBSERVATION, None, (1.0, 2.0), 0.0, 0, None, None),
        (Kind.LABELLED, "a", (1.0, 2.0), 0.0, -1, None, None),
        (Kind.LABEL, "a", (0.0, 0.0), 0.0, 1, None, None),
        (Kind.ECHO, None, (3.0, 4.0), 0.0, -1, None, None),
    ]
    assert expected == rows(DECODER.decode(batch))


def test_unknown_headers_are_ignored_and_the_last_of_a_name_counts() -> None:
    """A repeated header is read as Kafka's clients read it; a header without value is absent."""
    headers: Headers = [("id", b"first"), ("traceparent", b"x"), ("id", b"last"), ("y", b"1"), ("y", None)]
    value = np.array([1, 2], "<f4").tobytes()

    decoded = DECODER.decode([record(value, headers=headers)])

    assert (decoded.ids, decoded.kinds) == (["last"], [Kind.OBSERVATION])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record(None), "tombstone"),
        (record(None, headers=[("id", b"a"), ("y", b"1")]), "tombstone"),
        (record(b""), "no_features"),
        (f32(id=b"a"), "no_features"),
        (f32(y=b"1"), "no_id"),
        (f32(1), "wrong_length"),
        (record(b"1234567"), "wrong_length"),
        (record(b" " * 262_145), "oversize"),
        (f32(1, float("nan")), "not_finite"),
        (f32(1, float("-inf")), "not_finite"),
        (f32(1, 1.1e15), "magnitude"),
        (f32(1, 2, y=b"2"), "bad_label"),
        (f32(1, 2, y=b""), "bad_label"),
        (f32(1, 2, y=b"true"), "bad_label"),
        (f32(1, 2, id=b""), "bad_id"),
        (f32(1, 2, id=b"\xff"), "bad_id"),
        (f32(1, 2, id=b"i" * 257), "bad_id"),
        (f32(1, 2, kind=b"labels"), "bad_kind"),
        (f32(1, 2, kind=b"label"), "no_label"),
    ],
)
def test_each_bad_event_is_named_and_leaves_its_neighbours_alone(bad: Record, reason: str) -> None:
    """A bad event gets its reason; the good ones around it keep their rows."""
    decoded = DECODER.decode([f32(1, 2, id=b"before"), bad, f32(3, 4, id=b"after", y=b"1")])

    assert [None, reason, None] == reasons(decoded)
    assert decoded.ids == ["before", None, "after"]
    assert decoded.x.tolist() == [[1, 2], [0, 0], [3, 4]]


def test_scores_of_another_model_come_as_one_float() -> None:
    """With preset external the value is one float32 score."""
    decoded = EventDecoder(EventConfig(d=0, external=True, format="f32")).decode([f32(0.25, y=b"1"), f32(1, 2)])

    assert reasons(decoded) == [None, "wrong_length"]
    assert decoded.score.tolist() == [0.25, 0.0]
    assert decoded.x.shape == (2, 0)


@pytest.mark.parametrize("names", [(), ("kind",)])
def test_a_missing_number_has_one_form(names: tuple[str, ...]) -> None:
    """Whatever NaN a producer's processor makes, the model is given, and the buffer keeps, the same bytes."""
    optional = tuple(Feature(name=name, kind="number", path=name, missing="allow") for name in "ab")
    decoder = EventDecoder(EventConfig(d=2, format="f32", mapping=optional))
    values = np.array([0xFFC00000, 0x7FC00001, 0xFF800001, 0x7FC00000], "<u4").reshape(2, 2)
    headers: Headers = [("id", b"a"), ("y", b"1"), *((name, None) for name in names)]

    decoded = decoder.decode([record(row.tobytes(), headers=headers) for row in values])

    assert decoded.x.view(np.uint32).ravel().tolist() == [0x7FC00000] * 4


def test_only_decidable_bad_events_are_awaited() -> None:
    """The id of a bad label is not kept for a decision."""
    decoded = DECODER.decode([f32(1, id=b"a", y=b"1"), f32(1, id=b"b", kind=b"label"), f32(id=b"c", y=b"9")])

    assert decoded.bad_ids == {0: "a"}
