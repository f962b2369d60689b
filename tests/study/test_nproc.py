"""The umbrella algorithm's threshold against the exact binomial, and the classifier built on it."""

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.study import nproc


def violations(n: int, tau: Fraction) -> dict[int, Fraction]:
    """P(FPR > tau) with the k-th smallest of n left-out scores as threshold, by k (Tong et al., proposition 1)."""
    total, tails = Fraction(0), {}
    for k in range(n, 0, -1):
        total += comb(n, k) * (1 - tau) ** k * tau ** (n - k)
        tails[k] = total
    return tails


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.integers(0, 120),
    st.fractions(Fraction(1, 100), Fraction(1, 2), max_denominator=100),
    st.fractions(Fraction(1, 50), Fraction(1, 2), max_denominator=50),
)
def test_order_statistic_is_the_smallest_that_keeps_the_promise(n: int, tau: Fraction, delta: Fraction) -> None:
    """By exact arithmetic: the chosen rank holds delta, the one below does not, none exists where none is given."""
    rank = nproc.order_statistic(n, float(tau), float(delta))

    # On the very edge (equality) rounding may fall either way; those are left out.
    tails = violations(n, tau)
    allowed = [k for k, tail in tails.items() if tail < delta]
    if delta not in tails.values():
        assert rank == (min(allowed) if allowed else None)


def test_sample_size_needed_is_the_published_one() -> None:
    """598 left-out negatives are just enough for tau 0.005 and delta 0.05, 59 for tau 0.05."""
    assert nproc.order_statistic(598, 0.005, 0.05) == 598
    assert nproc.order_statistic(597, 0.005, 0.05) is None
    assert nproc.order_statistic(59, 0.05, 0.05) == 59
    assert nproc.order_statistic(58, 0.05, 0.05) is None


def test_too_few_negatives_mean_no_alarm() -> None:
    """Without enough left-out scores the threshold is infinite."""
    assert nproc.threshold(np.arange(10.0), 0.05, 0.05) == math.inf
    assert nproc.threshold(np.arange(100.0), 0.05, 0.05) == nproc.order_statistic(100, 0.05, 0.05) - 1  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("base", ["log", "svm"])
def test_fitted_classifier_keeps_the_rate_and_finds_targets(base: nproc.Base) -> None:
    """On two overlapping Gaussians the true FPR stays at or below tau in nearly all of 20 fits, with power left."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)
    broken, powers = 0, []
    negatives, targets = rng.normal(0, 1, (20_000, 2)), rng.normal(2, 1, (5_000, 2))
    for _ in range(20):
        y = np.where(rng.random(600) < 0.4, 1, -1).astype(np.int8)
        x = rng.normal(0, 1, (600, 2)) + 2 * (y == 1)[:, None]
        fitted = nproc.fit(base, x, y, 0.1, rng, g=0.5)
        broken += bool((fitted.decide(negatives) == 1).mean() > 0.1)
        powers.append((fitted.decide(targets) == 1).mean())

    # delta is 0.05: four violations in twenty have probability below 2%.
    assert broken <= 3
    assert np.median(powers) > 0.7
