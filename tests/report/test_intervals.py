"""Confidence intervals against published values and against the exact binomial distribution."""

import math
from collections import Counter
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.report.intervals import binomial_tail, clopper_pearson, incomplete_beta, mcnemar, sampled, wilson


def exact_tail(k: int, n: int, p: Fraction) -> Fraction:
    return sum((comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(max(k, 0), n + 1)), Fraction(0))


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Newcombe (1998), table I: method 3 (score, without continuity correction).
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_agrees_with_published_values(k: int, n: int, low: float, high: float) -> None:
    """Four textbook cases to four decimals."""
    assert wilson(k, n) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Newcombe (1998), table I: method 5 (exact).
    [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)],
)
def test_clopper_pearson_agrees_with_published_values(k: int, n: int, low: float, high: float) -> None:
    """The same four cases, exact method."""
    assert clopper_pearson(k, n) == pytest.approx((low, high), abs=6e-5)


@settings(deadline=None)
@given(st.integers(1, 60), st.data())
def test_clopper_pearson_ends_leave_exactly_the_tails(n: int, data: st.DataObject) -> None:
    """At either end the observed count has probability 2.5% in the far tail, by exact arithmetic."""
    k = data.draw(st.integers(0, n))
    low, high = clopper_pearson(k, n)

    if k > 0:
        assert float(exact_tail(k, n, Fraction(low))) == pytest.approx(0.025, rel=1e-9)
    if k < n:
        assert float(1 - exact_tail(k + 1, n, Fraction(high))) == pytest.approx(0.025, rel=1e-9)


@settings(deadline=None)
@given(st.integers(0, 80), st.integers(-2, 82), st.fractions(0, 1, max_denominator=1000))
def test_binomial_tail_is_exact(n: int, k: int, p: Fraction) -> None:
    """P(X >= k) agrees with the sum in exact fractions."""
    assert binomial_tail(k, n, float(p)) == pytest.approx(float(exact_tail(k, n, p)), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("a", "b", "x"), [(3, 3000, 0.001), (500.5, 0.5, 0.999), (2000, 3000, 0.41), (1, 1, 0.25)])
def test_incomplete_beta_agrees_with_high_precision(a: float, b: float, x: float) -> None:
    """Large, small and lopsided arguments agree with a reference at 30 digits."""
    with mpmath.workdps(30):
        expected = float(mpmath.betainc(a, b, 0, x, regularized=True))
    assert incomplete_beta(a, b, x) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(st.integers(0, 500), st.data())
def test_intervals_hold_the_rate_and_stay_in_the_unit_range(n: int, data: st.DataObject) -> None:
    """Both intervals contain k/n, the exact one is never the shorter by more than rounding at the same end."""
    k = data.draw(st.integers(0, n))
    for low, high in (wilson(k, n), clopper_pearson(k, n)):
        assert 0 <= low <= high <= 1
        assert n == 0 or low <= k / n + 1e-12
        assert n == 0 or k / n - 1e-12 <= high


@pytest.mark.parametrize(("k", "n", "confidence"), [(-1, 5, 0.9), (6, 5, 0.9), (1, 5, 0.0), (1, 5, 1.0)])
def test_impossible_arguments_are_refused(k: int, n: int, confidence: float) -> None:
    """Counts outside of 0..n and confidences outside of (0, 1) raise, naming the value."""
    for interval in (wilson, clopper_pearson):
        with pytest.raises(ValueError, match="must lie in"):
            interval(k, n, confidence)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 40), (40, 40), (7, 1000)])
def test_with_everything_looked_at_the_sample_is_a_count(k: int, n: int) -> None:
    """Where each miss is found for sure the interval is Wilson's."""
    value, ends = sampled(k, [(n - k, 1.0)])

    assert value == k / n
    assert ends == pytest.approx(wilson(k, n))


def test_the_interval_of_a_sample_holds_what_it_promises() -> None:
    """Over many draws of hits and found misses the interval covers the truth in 95% of them, give or take."""
    rng = np.random.default_rng(4)
    hits, found = rng.poisson(30, 4000), rng.poisson(0.01 * 3000, 4000)
    covered = Counter(
        low <= 30 / 3030 <= high
        for _, (low, high) in (sampled(int(h), [(int(f), 0.01)]) for h, f in zip(hits, found, strict=True))
    )

    assert 0.93 < covered[True] / 4000 < 0.975


def test_the_interval_without_a_sample_is_open_where_nothing_is_known() -> None:
    """No label at all: anything may be; hits alone: the lower end knows how few misses would have been seen."""
    value, ends = sampled(0, [])
    assert math.isnan(value)
    assert ends == (0.0, 1.0)
    value, (low, high) = sampled(20, [(0, 0.01)])
    assert (value, high) == (1.0, 1.0)
    assert low < 0.1


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 5), (3, 3), (9, 2), (2, 9), (40, 25)])
def test_mcnemar_is_a_coin_thrown_for_every_pair_that_differs(first: int, second: int) -> None:
    """Added up over every outcome that is at least as far from the middle."""
    n = first + second
    ways = sum(math.comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(first - second))

    assert mcnemar(first, second) == pytest.approx(ways / 2**n, rel=1e-12)
