"""JSON events: every shape that is taken and every reason for a refusal, by example."""

from typing import Any

import pytest

from npstream.codec.decoder import EventConfig, EventDecoder, Kind
from npstream.records import Record
from tests.codec.builders import event, reasons, record, rows

DECODER = EventDecoder(EventConfig(d=2))
NAMED = EventDecoder(EventConfig(d=2, features=("amount", "age")))
EXTERNAL = EventDecoder(EventConfig(d=0, external=True))


def test_fields_say_what_the_event_is_for() -> None:
    """Observation, labelled event, label alone and echoed label are distinguished by the fields they bring."""
    batch = [
        event(x=[1, 2.5]),
        event(id="a", x=[1, 2], y=0),
        event(id=7, y=True),
        event(id="a", x=[3, 4], y=-1, kind="label"),
        event(id="a", y=1, kind="label"),
    ]

    expected = [
        (Kind.OBSERVATION, None, (1.0, 2.5), 0.0, 0, None, None),
        (Kind.LABELLED, "a", (1.0, 2.0), 0.0, -1, None, None),
        (Kind.LABEL, 7, (0.0, 0.0), 0.0, 1, None, None),
        (Kind.ECHO, "a", (3.0, 4.0), 0.0, -1, None, None),
        (Kind.LABEL, "a", (0.0, 0.0), 0.0, 1, None, None),
    ]
    assert expected == rows(DECODER.decode(batch))


def test_null_means_absent_and_unknown_fields_are_ignored() -> None:
    """A producer may write all its fields every time, and others of its own."""
    decoded = DECODER.decode(
        [event(id=None, x=[1, 2], y=None, kind=None, score="?", ts=3), event(id="a", x=None, y=1, kind=None)]
    )

    assert decoded.kinds == [Kind.OBSERVATION, Kind.LABEL]


@pytest.mark.parametrize(
    ("y", "label"), [(1, 1), (True, 1), (1.0, 1), (-1, -1), (0, -1), (False, -1), (-1.0, -1), (0.0, -1)]
)
def test_labels_have_many_spellings(y: Any, label: int) -> None:
    """Whatever JSON type a producer uses for its labels, two classes come out."""
    decoded = DECODER.decode([event(x=[1, 2], y=y)])

    assert (decoded.kinds, decoded.y.tolist()) == ([Kind.LABELLED], [label])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record(None), "tombstone"),
        (record(b""), "empty"),
        (record(b" " * 262_145), "oversize"),
        (record(b"{"), "not_json"),
        (record(b'{"x":[1,2]}{"x":[3,4]}'), "not_json"),
        (record(b'{"x":[1,2]},{"x":[3,4]}'), "not_json"),
        (record(b'{"x":[1,NaN]}'), "not_json"),
        (record(b'{"x":[1,1e999]}'), "not_json"),
        (record(b'{"id":"\xff","x":[1,2]}'), "not_json"),
        (record(b"[" * 100_000), "not_json"),
        (record(b"null"), "not_object"),
        (record(b"[1,2]"), "not_object"),
        (event(), "no_features"),
        (event(id="a"), "no_features"),
        (event(x="1,2"), "bad_features"),
        (event(x={"amount": 1, "age": 2}), "bad_features"),
        (event(x=[]), "wrong_length"),
        (event(x=[1]), "wrong_length"),
        (event(x=[1, 2, 3]), "wrong_length"),
        (event(x=[1, True]), "not_number"),
        (event(x=[1, "2"]), "not_number"),
        (event(x=[1, None]), "not_number"),
        (event(x=[1, [2]]), "not_number"),
        (event(x=[1, 1.0000001e15]), "magnitude"),
        (event(x=[-1e300, 1]), "magnitude"),
        (event(x=[1, 2], y=2), "bad_label"),
        (event(x=[1, 2], y="1"), "bad_label"),
        (event(x=[1, 2], y=0.5), "bad_label"),
        (event(x=[1, 2], y=[1]), "bad_label"),
        (event(x=[1, 2], kind="label"), "no_label"),
        (event(y=1), "no_id"),
        (event(x=[1, 2], id=""), "bad_id"),
        (event(x=[1, 2], id=1.5), "bad_id"),
        (event(x=[1, 2], id=True), "bad_id"),
        (event(x=[1, 2], id="é" * 129), "bad_id"),
        (event(x=[1, 2], y=1, kind="labels"), "bad_kind"),
    ],
)
def test_each_bad_event_is_named_and_leaves_its_neighbours_alone(bad: Record, reason: str) -> None:
    """A bad event gets its reason; the good ones around it keep their rows."""
    decoded = DECODER.decode([event(id="before", x=[1, 2]), bad, event(id="after", x=[3, 4], y=1)])

    assert [None, reason, None] == reasons(decoded)
    assert decoded.ids == ["before", None, "after"]
    assert decoded.x.tolist() == [[1, 2], [0, 0], [3, 4]]


def test_named_features_are_taken_in_the_configured_order() -> None:
    """Names decide, not positions; extras are ignored, a missing one is named; arrays are still taken."""
    decoded = NAMED.decode(
        [
            event(x={"age": 40, "extra": "?", "amount": 12.5}),
            event(x={"amount": 1}),
            event(x=[1, 2]),
            event(x={"age": 1}),
        ]
    )

    assert decoded.x.tolist() == [[12.5, 40], [0, 0], [1, 2], [0, 0]]
    assert reasons(decoded) == [None, "missing_feature", None, "missing_feature"]
    assert "'age'" in decoded.errors[1].detail


def test_scores_of_another_model_take_the_place_of_features() -> None:
    """With preset external `score` decides the kind and `x` is just another unknown field."""
    decoded = EXTERNAL.decode(
        [
            event(score=0.1),
            event(id="a", score=-3, y=1, x=[1, 2]),
            event(id="a", y=1, x=[1, 2]),
            event(x=[1, 2]),
            event(score="high"),
            event(score=[1]),
            event(score=True),
            event(score=2e15),
        ]
    )

    assert decoded.score.tolist() == [0.1, -3.0, 0, 0, 0, 0, 0, 0]
    assert decoded.kinds[:3] == [Kind.OBSERVATION, Kind.LABELLED, Kind.LABEL]
    assert reasons(decoded)[3:] == ["no_features", "not_number", "not_number", "not_number", "magnitude"]
