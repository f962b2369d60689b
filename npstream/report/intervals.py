"""Confidence intervals of a rate k/n, written out so that no statistics package is needed."""

import math
from collections.abc import Sequence
from statistics import NormalDist

_TINY = 1e-300  # keeps the continued fraction's divisions away from zero


def wilson(k: int, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of k hits in n trials: short, and right on average. (0, 1) when n is 0."""
    _check(k, n, confidence)
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    # At the ends the formula gives exactly 0 or 1, up to rounding.
    return (0.0 if k == 0 else centre - half), (1.0 if k == n else centre + half)


def sampled(
    hits: int, misses: Sequence[tuple[int, float]], confidence: float = 0.95
) -> tuple[float, tuple[float, float]]:
    """The share of hits, and its interval, where all hits are known and each miss only with some probability.

    `misses` are counts and the probability with which one of them was found. Counts of rare events are nearly
    Poisson, and of two such counts the first has, given their sum, a binomial share: Wilson's interval of that
    share, taken back to the share of all. Misses found with different probabilities count as so many, found with
    one, as have the same variance (Kish). Where every probability is 1 this is Wilson's interval.
    """
    weight = sum(count / p for count, p in misses)
    squares = sum(count / p**2 for count, p in misses)
    value = hits / (hits + weight) if hits + weight else math.nan
    if weight:
        found, probability = weight**2 / squares, weight / squares
    else:
        found, probability = 0.0, min((p for _, p in misses), default=1.0)
    low, high = (_of_all(end, probability) for end in wilson(hits, hits + found, confidence))
    return value, (low, high)


def _of_all(share: float, probability: float) -> float:
    """The share of hits among all, where it is `share` among hits and found misses."""
    return share * probability / (share * probability + (1.0 - share)) if share else 0.0


def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of k hits in n trials: never covers less than `confidence`. (0, 1) when n is 0."""
    _check(k, n, confidence)
    alpha = (1 - confidence) / 2
    low = 0.0 if k == 0 else _beta_quantile(alpha, k, n - k + 1)
    high = 1.0 if k == n else _beta_quantile(1 - alpha, k + 1, n - k)
    return low, high


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(X >= k) for X binomial (n, p), by the incomplete beta function: no sum, no overflow."""
    if k <= 0:
        return 1.0
    return 0.0 if k > n else incomplete_beta(k, n - k + 1, p)


def mcnemar(first: int, second: int) -> float:
    """The two-sided p-value of McNemar's exact test: of pairs that differ `first` went one way, `second` the other.

    Where neither is better, each that differs goes either way like a coin.
    """
    return min(1.0, 2.0 * binomial_tail(max(first, second), first + second, 0.5))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1]."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    # The fraction converges fast below the mean only; above it the mirrored form is used.
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's evaluation of the continued fraction of I_x(a, b)."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            step = c * d
            value *= step
        if abs(step - 1) < 1e-15:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _beta_quantile(p: float, a: float, b: float) -> float:
    """x with I_x(a, b) = p, by bisection down to neighbouring floats."""
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if incomplete_beta(a, b, middle) < p:
            low = middle
        else:
            high = middle


def _check(k: int, n: float, confidence: float) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"k must lie in 0..n, got k={k}, n={n}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence}")
