"""A label that is corrected: counts are those of the last labels, and the false-alarm budget keeps its bound."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npstream.model import Model, Op, Operations, Params
from tests.model.test_budget import CAPACITIES, ROUNDING, TAUS, worst_window


class Story(NamedTuple):
    """An observation's score, and its labels in turn, each other than the one before, with the wait for each."""

    score: float
    first: int
    waits: tuple[int, ...]


class Entry(NamedTuple):
    """One operation on observation k, and its decision."""

    op: Op
    k: int
    y: int
    alarm: bool


def operations(stories: list[Story]) -> list[tuple[Op, int, int]]:
    """What is asked, in order: each observation, then the labels that are due; all labels come in the end."""
    due: list[tuple[int, int, Op, int, int]] = []
    for k, story in enumerate(stories):
        at, y = k, story.first
        op = Op.SCORE_LEARN if story.waits and story.waits[0] == 0 else Op.SCORE
        due.append((at, k, op, k, y))
        for turn, wait in enumerate(story.waits):
            at += wait
            if turn:
                y = -y
            if turn or op == Op.SCORE:
                due.append((at, len(stories) + turn, Op.CORRECT if turn else Op.LEARN, k, y))
    return [(op, k, y) for _, _, op, k, y in sorted(due, key=lambda each: each[:2])]


def play(stories: list[Story], params: Params) -> tuple[Model, list[Entry]]:
    """One operation after another."""
    model, decided = Model.create(params), np.zeros(len(stories), np.int8)
    entries = []
    for op, k, y in operations(stories):
        columns = np.array([op], np.int8), np.empty((1, 0), np.float32), np.array([stories[k].score])
        asked = Operations(*columns, np.array([y if op != Op.SCORE else 0], np.int8), np.array([k], np.int32))
        outcome = model.run(asked, decided)
        entries.append(Entry(op, k, y, bool(outcome.decision[0] > 0)))
    return model, entries


def charges(entries: list[Entry]) -> tuple[list[int], list[int]]:
    """For each operation the false alarms it adds (or takes back), and whether it labels a non-target."""
    alarms = []
    for op, _, y, alarm in entries:
        back = op == Op.CORRECT and y > 0
        alarms.append(0 if op == Op.SCORE or not alarm else -1 if back else int(y < 0))
    return alarms, [int(op != Op.SCORE and y < 0) for op, _, y, _ in entries]


def unforeseen(entries: list[Entry], charge: str) -> int:
    """Most alarms at any one time that are to be charged and are not counted yet, as far as the budget can know."""
    found = np.zeros(len(entries) + 1, int)
    since: dict[int, int] = {}
    for at, (op, k, y, alarm) in enumerate(entries):
        if not alarm:
            continue
        if op != Op.SCORE and y < 0:
            if k in since:
                found[since.pop(k) : at] += 1
        elif charge == "label" or op != Op.SCORE:
            # With charge: issue an alarm that waits for its first label is counted.
            since.setdefault(k, at)
    return int(found.max())


@st.composite
def stories(draw: st.DrawFn) -> list[Story]:
    """Scores that mostly climb, so that any threshold learned from the past is too low; labels that change."""
    waits = st.lists(st.integers(0, 40), max_size=4).map(tuple)
    jumps = draw(
        st.lists(st.tuples(st.integers(-3, 9), st.sampled_from([1, -1, -1, -1]), waits), min_size=40, max_size=200)
    )
    level, out = 0.0, []
    for jump, first, several in jumps:
        level += jump
        out.append(Story(level, first, several))
    return out


def adversary() -> list[Story]:
    """Quiet, then scores that double, each called a target until all are corrected at once."""
    return [Story(0.0, -1, (0,))] * 200 + [Story(2.0**k, 1, (0, 400 - k)) for k in range(100)]


@settings(max_examples=150, deadline=None)
@given(stories(), TAUS, CAPACITIES, st.sampled_from(["label", "issue"]))
@example(adversary(), 0.1, 3.0, "issue")
@example([Story(0.0, -1, (0, 300))] * 200 + [Story(2.0**k, -1, (0,)) for k in range(60)], 0.1, 3.0, "label")
def test_the_bound_counts_alarms_that_were_mistaken_for_true_ones(
    stories: list[Story], tau: float, capacity: float, charge: str
) -> None:
    """
    On every window of n labels of non-targets, false alarms less those taken back are at most
    tau n + 2C + 1 and the alarms whose charge was still to come.
    """
    params = Params.from_dict({"preset": "external", "tau": tau, "budget": capacity, "charge": charge})
    _, entries = play(stories, params)
    alarms, negatives = charges(entries)

    bound = 2 * capacity + 1 + unforeseen(entries, charge) + ROUNDING
    assert worst_window(alarms, negatives, tau) <= bound


@settings(max_examples=60, deadline=None)
@given(stories(), st.sampled_from(["fpr", "alarm_rate"]))
def test_counts_are_those_of_the_last_labels(stories: list[Story], control: str) -> None:
    """Labelled events and errors over the partition's life, however often a label was overruled."""
    model, entries = play(
        stories, Params.from_dict({"preset": "external", "tau": 0.1, "budget": 5, "control": control})
    )
    last = {entry.k: entry for entry in entries if entry.op != Op.SCORE}
    alarms = {y: sum(entry.alarm for entry in last.values() if entry.y == y) for y in (1, -1)}
    labelled = {y: sum(entry.y == y for entry in last.values()) for y in (1, -1)}

    assert (model.negatives, model.positives) == (labelled[-1], labelled[1])
    assert (model.false_alarms, model.detections) == (alarms[-1], alarms[1])
    assert model.t == sum(entry.op != Op.SCORE for entry in entries)
    assert model.outstanding == sum(entry.alarm for entry in entries if entry.op == Op.SCORE) - sum(
        entry.alarm for entry in entries if entry.op == Op.LEARN
    )


@pytest.mark.parametrize(("first", "alarm", "change"), [(-1, True, -0.9), (-1, False, 0.1), (1, True, 0.9)])
def test_a_correction_moves_the_budget_by_what_the_label_had(first: int, alarm: bool, change: float) -> None:
    """A false alarm that was none is taken back with its allowance; one that comes to light is charged."""
    model, decided = Model.create(Params(preset="external", tau=0.1, budget=5.0)), np.zeros(1, np.int8)
    model.stream(np.zeros(40), np.full(40, -1))
    # In the middle of the bucket, where no end of it is met.
    model.stream(np.full(5, 9.0), np.full(5, -1))
    score = 99.0 if alarm else -9.0
    left = []
    for op, y in ((Op.SCORE_LEARN, first), (Op.CORRECT, -first)):
        columns = np.array([op], np.int8), np.empty((1, 0), np.float32), np.array([score])
        outcome = model.run(Operations(*columns, np.array([y], np.int8), np.zeros(1, np.int32)), decided)
        assert (outcome.decision[0] > 0) is np.bool_(alarm)
        left.append(model.budget_left)

    assert left[0] - left[1] == pytest.approx(change)


def test_what_the_bucket_has_forgotten_is_not_given_back() -> None:
    """A false alarm of long ago, since made up for: taken back, it lets no more alarms through than a full budget."""
    params = Params(preset="external", tau=0.5, budget=2.0)
    model, decided = Model.create(params), np.zeros(1, np.int8)

    def run(op: Op, score: float, y: int) -> None:
        columns = np.array([op], np.int8), np.empty((1, 0), np.float32), np.array([score])
        model.run(Operations(*columns, np.array([y], np.int8), np.zeros(1, np.int32)), decided)

    model.stream(np.zeros(20), np.full(20, -1))
    run(Op.SCORE_LEARN, 9.0, -1)
    assert decided[0] == 1
    model.stream(np.full(100, -1.0), np.full(100, -1))
    before = model.false_alarms
    assert model.budget_left == 4.0
    run(Op.CORRECT, 9.0, 1)

    assert (model.budget_left, model.false_alarms, model.detections) == (4.0, before - 1, 1)
