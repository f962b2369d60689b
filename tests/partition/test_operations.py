"""The plan of a batch against a plain list of operations."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.model import Op
from npstream.partition import LabelConfig
from npstream.partition.operations import Plan, all_labelled
from npstream.partition.pending import Pending
from tests.partition.builders import config, processor, record

N = 6
X = np.arange(2 * N, dtype=np.float32).reshape(N, 2)
SCORE = np.arange(N) / 10.0
PARKED_X, PARKED_SCORE = [70.0, 71.0], 7.5
Row = tuple[int, list[float], float, int, int]

kinds = st.sampled_from(["decide", "unwatched", "decide_and_learn", "learn_echo", "learn_parked", "release", "bad"])


def planned(asked: list[tuple[str, int]]) -> tuple[Plan, list[Row], list[int]]:
    """A plan for these events, its rows in plain words, and the row that decides each published event."""
    pending = Pending(LabelConfig(buffer_max=1), 2)
    plan, rows, deciding = Plan(), list[Row](), list[int]()
    for event, (what, y) in enumerate(asked):
        own, slot = (X[event].tolist(), float(SCORE[event])), event + 10
        if what in ("learn_parked", "release"):
            place = pending.park(b"k" * 16, np.array(PARKED_X, np.float32), PARKED_SCORE, 0, 0)
            entry = pending.take(b"k" * 16)
            pending.park(b"l" * 16, np.zeros(2, np.float32), 0.0, 0, 0)  # the next one there changes nothing
            pending.evict()
            if what == "release":
                plan.release(entry)
                rows.append((Op.RELEASE, PARKED_X, PARKED_SCORE, 0, place))
            else:
                plan.learn_parked(entry, y)
                rows.append((Op.LEARN, PARKED_X, PARKED_SCORE, y, place))
        elif what == "learn_echo":
            plan.learn_echo(event, y, slot)
            rows.append((Op.LEARN, *own, y, slot))
        elif what != "bad":
            deciding.append(len(rows))
            if what == "decide_and_learn":
                plan.decide_and_learn(event, y)
                rows.append((Op.SCORE_LEARN, *own, y, -1))
            else:
                plan.decide(event, slot if what == "decide" else -1)
                rows.append((Op.SCORE, *own, 0, slot if what == "decide" else -1))
    return plan, rows, deciding


@given(st.lists(st.tuples(kinds, st.sampled_from([1, -1])), max_size=N))
def test_operations_are_in_the_order_they_were_asked_for(asked: list[tuple[str, int]]) -> None:
    """Whatever the mix: code, features, score, label and slot of each row, and which row decides which event."""
    plan, rows, deciding = planned(asked)

    found = plan.operations(X, SCORE)

    columns = (found.code, found.x, found.score, found.y, found.slot)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows
    assert plan.deciding == deciding
    assert plan.events == [i for i, (what, _) in enumerate(asked) if what.startswith(("decide", "unwatched"))]


def test_a_batch_with_all_its_labels_has_the_same_plan_either_way() -> None:
    """The short way to the commonest plan gives what event by event gives."""
    y = np.array([1, -1, -1, 1, -1, 1], np.int8)
    plan = Plan()
    for event in range(N):
        plan.decide_and_learn(event, int(y[event]))

    short, long = all_labelled(X, SCORE, y), plan.operations(X, SCORE)

    for name in ("code", "x", "score", "y", "slot"):
        np.testing.assert_array_equal(getattr(short, name), getattr(long, name), strict=True)


@pytest.mark.parametrize(("on_expiry", "learned"), [("negative", [0, 0, 1, 2, 3]), ("drop", [0, 0, 0, 0, 0])])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_what_expires_goes_before_the_event_that_finds_it(on_expiry: str, learned: list[int], size: int) -> None:
    """An observation that expires as a negative has been learned when the event that pushes it out is decided."""
    rules = LabelConfig(buffer_max=10, expire_events=1, on_expiry=on_expiry)  # type: ignore[arg-type]
    made = processor(config(labels=rules))
    records = [record(at, {"id": at, "x": [0.1, 0.2, 0.3]}) for at in range(5)]

    outputs = [output for at in range(0, 5, size) for output in made.process(records[at : at + size]).outputs]

    assert [orjson.loads(output.value or b"")["t"] for output in outputs] == learned


def test_a_label_counts_from_the_next_event_on() -> None:
    """Events are decided in their order: the label between two observations is learned between them."""
    made = processor()
    x = [0.1, 0.2, 0.3]
    batch = [{"id": 1, "x": x}, {"id": 2, "x": x}, {"id": 1, "y": 1}, {"id": 3, "x": x, "y": -1}, {"id": 4, "x": x}]

    outputs = made.process([record(at, value) for at, value in enumerate(batch)]).outputs

    found = [orjson.loads(output.value or b"") for output in outputs]
    assert [(decision["id"], decision["t"]) for decision in found] == [(1, 0), (2, 0), (3, 1), (4, 2)]
