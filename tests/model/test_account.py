"""The account of decisions: totals and a window of blocks, without the warm-up, as a snapshot keeps them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.model import Model, Op, Operations, Params
from npstream.model.account import (
    OF_ALL,
    OF_NON_TARGETS,
    OF_TARGETS,
    Account,
    dump_account,
    empty_account,
    load_account,
    note,
    set_windows,
    take_back,
    window_for,
)


def account(size: int) -> Account:
    """An empty one with blocks of this size."""
    made = empty_account()
    made.size[:] = size
    return made


@given(st.lists(st.booleans(), max_size=700), st.integers(1, 5))
def test_a_window_counts_the_newest(alarms: list[bool], size: int) -> None:
    """As many of the last events as 64 blocks hold, the newest of which may not be full; totals count all."""
    made = account(size)
    for alarm in alarms:
        note(OF_ALL, False, 1 if alarm else -1, made)
    hits, events = made.block[OF_ALL].sum(axis=0).tolist()

    assert events == len(alarms) if len(alarms) <= 64 * size else 63 * size < events <= 64 * size
    assert hits == sum(alarms[len(alarms) - events :])
    assert made.total[OF_ALL].tolist() == [sum(alarms), len(alarms)]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=300))
def test_what_is_taken_back_never_leaves_less_than_nothing(steps: list[tuple[bool, bool]]) -> None:
    """One like it leaves the window where there is one; counts stay possible."""
    made, counts = account(2), {True: 0, False: 0}
    for alarm, back in steps:
        if not back:
            note(OF_TARGETS, False, int(alarm), made)
        elif counts[alarm]:
            take_back(OF_TARGETS, False, int(alarm), made)
        counts[alarm] += -1 if back and counts[alarm] else int(not back)
        assert (made.block[..., 0] >= 0).all()
        assert (made.block[..., 0] <= made.block[..., 1]).all()

    assert made.total[OF_TARGETS].tolist() == [counts[True], counts[True] + counts[False]]


def test_decisions_of_the_warm_up_are_in_no_rate_however_late_their_labels_come() -> None:
    """Ten non-targets end it; labels of what was decided before count nothing, also when they are corrected."""
    model, kept = Model.create(Params(preset="external", tau=0.1)), empty_account()
    set_windows(kept, 0.1)
    decided = np.zeros(30, np.int8)

    def run(op: Op, places: range, y: int) -> None:
        n = len(places)
        columns = np.full(n, op, np.int8), np.empty((n, 0), np.float32), np.arange(n, dtype=np.float64)
        model.run(Operations(*columns, np.full(n, y, np.int8), np.array(places, np.int32)), decided, account=kept)

    run(Op.SCORE, range(20), 0)
    run(Op.LEARN, range(10), -1)
    assert not model.warming_up
    assert kept.total.sum() == 0
    run(Op.SCORE, range(20, 30), 0)
    run(Op.LEARN, range(10, 30), 1)
    run(Op.CORRECT, range(5), 1)
    run(Op.CORRECT, range(20, 23), -1)

    assert (model.positives, model.negatives) == (22, 8)
    assert kept.total[:, 1].tolist() == [10, 3, 7]
    assert kept.block.sum(axis=1).tolist() == kept.total.tolist()
    assert model.outstanding == 0


def test_it_comes_back_from_its_bytes() -> None:
    """The same counts; bytes that are no account are refused."""
    made = account(3)
    for at in range(1000):
        note(at % 3, False, at % 2, made)
    data = dump_account(made)
    back = load_account(data)

    assert all((a == b).all() for a, b in zip(made[:3], back[:3], strict=True))
    for damaged in (data[:-8], data + data[:8], (-np.frombuffer(data, "<i8")).tobytes()):
        with pytest.raises(ValueError, match=r"account|reshape|broadcast"):
            load_account(damaged)


def test_the_window_follows_tau() -> None:
    """A rarer alarm needs more labels to be judged by, within bounds; targets are judged by some 500."""
    made = empty_account()
    set_windows(made, 0.01)

    assert [window_for(tau) for tau in (0.5, 0.05, 0.01, 1e-6)] == [500, 1000, 5000, 50_000]
    assert made.size[[OF_ALL, OF_NON_TARGETS, OF_TARGETS]].tolist() == [79, 79, 8]
