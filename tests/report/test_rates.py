"""Rates, scores and areas against plain restatements."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from npstream.report.rates import (
    Rates,
    auc,
    cumulative,
    last_quarter,
    np_score,
    oracle_threshold,
    oracle_tpr,
    rates,
    windowed,
    worst_overdraft,
)

signs = st.sampled_from([-1, 1])
runs = st.lists(st.tuples(signs, signs), min_size=1, max_size=60)


def columns(run: list[tuple[int, int]]) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    both = np.array(run, np.int8)
    return both[:, 0], both[:, 1]


def test_rates_count_alarms_by_class() -> None:
    """Six decisions counted by hand."""
    decision, y = columns([(1, 1), (-1, 1), (1, -1), (-1, -1), (-1, -1), (-1, -1)])
    found = rates(decision, y)

    assert found == Rates(negatives=4, positives=2, false_positives=1, true_positives=1)
    assert (found.fpr, found.tpr) == (0.25, 0.5)
    assert found.np_score(0.1) == pytest.approx((0.25 - 0.1) / 0.1 + 0.5)
    assert found.fpr_interval()[0] < 0.25 < found.fpr_interval(exact=True)[1]
    assert found.tpr_interval(0.5)[0] < 0.5 < found.tpr_interval(0.5, exact=True)[1]


def test_np_score_of_silence_is_one_and_ignores_undershoot() -> None:
    """No alarm at all scores exactly 1; a rate below tau costs nothing by itself; a missing class is faultless."""
    assert np_score(0.0, 0.0, 0.05) == 1.0
    assert np_score(0.01, 0.9, 0.05) == pytest.approx(0.1)
    assert np_score(0.10, 0.9, 0.05) == pytest.approx(1.1)
    assert np_score(math.nan, math.nan, 0.05) == 0.0


@settings(deadline=None)
@given(runs)
def test_cumulative_rates_equal_the_rates_of_every_prefix(run: list[tuple[int, int]]) -> None:
    """Entry i is what `rates` says of the first i + 1 events."""
    decision, y = columns(run)
    fpr, tpr = cumulative(decision, y)

    prefixes = [rates(decision[: i + 1], y[: i + 1]) for i in range(len(run))]
    np.testing.assert_array_equal(fpr, [r.fpr for r in prefixes])
    np.testing.assert_array_equal(tpr, [r.tpr for r in prefixes])


@settings(deadline=None)
@given(runs, signs, st.integers(1, 70))
def test_windowed_share_equals_a_count_of_each_window(run: list[tuple[int, int]], label: int, window: int) -> None:
    """Each entry is the share of alarms among that many consecutive events of the class."""
    alarms = [d == 1 for d, y in run if y == label]
    expected = [sum(alarms[i : i + window]) / window for i in range(len(alarms) - window + 1)]

    assert windowed(*columns(run), label, window).tolist() == expected


@settings(deadline=None)
@given(runs, st.sampled_from([0.01, 0.1, 0.5]))
def test_worst_overdraft_is_the_largest_over_all_windows(run: list[tuple[int, int]], tau: float) -> None:
    """A search over every window of negatives finds the same largest excess."""
    alarms = [d == 1 for d, y in run if y == -1]
    windows = [alarms[i:j] for i in range(len(alarms)) for j in range(i + 1, len(alarms) + 1)]

    expected = max((sum(w) - tau * len(w) for w in windows), default=0.0)
    assert worst_overdraft(*columns(run), tau) == pytest.approx(max(expected, 0.0), abs=1e-12)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), signs), min_size=1, max_size=60),
    st.floats(0.001, 0.999),
)
def test_oracle_threshold_is_the_lowest_that_keeps_the_rate(pairs: list[tuple[int, int]], tau: float) -> None:
    """Among all thresholds on the scores (ties included) none lower keeps FPR <= tau, and TPR is counted with it."""
    score, y = np.array([s for s, _ in pairs], np.float64), np.array([label for _, label in pairs], np.int8)
    negatives = score[y == -1]
    allowed = math.floor(tau * negatives.size + 1e-9)
    lowest = min(q for q in [-math.inf, *negatives] if (negatives > q).sum() <= allowed)

    assert oracle_threshold(score, y, tau) == lowest
    if (y == 1).any():
        assert oracle_tpr(score, y, tau) == (score[y == 1] > lowest).mean()


def test_auc_is_the_mean_height_by_trapezoids() -> None:
    """A straight line has the mean of its ends, order of the rates does not matter, one rate is refused."""
    assert auc(np.array([0.4, 0.1]), np.array([1.0, 0.5])) == pytest.approx(0.75)
    assert auc(np.array([0.1, 0.2, 0.4]), np.array([0.0, 1.0, 1.0])) == pytest.approx((0.05 + 0.2) / 0.3)
    with pytest.raises(ValueError, match="two distinct"):
        auc(np.array([0.1]), np.array([1.0]))


def test_bad_labels_and_lengths_are_refused() -> None:
    """A zero label, a missing event or a window of nothing raise and say what was found."""
    good = np.array([1, -1], np.int8)
    with pytest.raises(ValueError, match="only -1 and 1"):
        rates(good, np.array([0, 1], np.int8))
    with pytest.raises(ValueError, match="differ in length: 2 and 1"):
        rates(good, good[:1])
    with pytest.raises(ValueError, match="window must be at least 1"):
        windowed(good, good, 1, 0)


def test_last_quarter_is_a_quarter() -> None:
    """The tail that learners are compared on, rounded down."""
    assert last_quarter(103) == slice(78, 103)
