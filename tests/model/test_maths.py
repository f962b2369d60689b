"""The elementary functions against a high-precision reference."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from npstream.model.lanes import lane_sum
from npstream.model.maths import LARGEST_ANGLE, exp, log, sincos

RNG = np.random.default_rng(20)
ANGLES = np.concatenate(
    [
        RNG.normal(0, 3, 4000),
        RNG.uniform(-LARGEST_ANGLE, LARGEST_ANGLE, 4000),
        np.arange(-2000, 2000) * (math.pi / 4),
        RNG.integers(-660_000, 660_000, 2000) * (math.pi / 2),
        RNG.normal(0, 1e-9, 500),
    ]
)


def ulps(got: float, exact: mpmath.mpf) -> float:
    """Distance in units of the last place of the exact value."""
    return float(abs(mpmath.mpf(got) - exact) / mpmath.mpf(float(np.spacing(abs(float(exact))))))


@pytest.mark.parametrize(("place", "reference"), [(0, mpmath.sin), (1, mpmath.cos)])
def test_sine_and_cosine_are_within_one_ulp(place: int, reference: Callable[[mpmath.mpf], mpmath.mpf]) -> None:
    """Up to 2**20, also close to multiples of pi/4, the error is below one unit in the last place."""
    with mpmath.workprec(200):
        worst = max(ulps(sincos(float(a))[place], reference(mpmath.mpf(float(a)))) for a in ANGLES)

    assert worst < 1.0


def test_sine_and_cosine_stay_finite_beyond_the_clamp() -> None:
    """An angle of any size gives the values at the clamp."""
    for huge in (2.0**20, 1e7, 1e300):
        assert sincos(huge) == sincos(LARGEST_ANGLE)
        assert sincos(-huge) == sincos(-LARGEST_ANGLE)


def test_zero_angle_is_exact() -> None:
    """sin 0 = 0 and cos 0 = 1."""
    assert sincos(0.0) == (0.0, 1.0)


def test_exponential_is_within_one_ulp_and_never_overflows() -> None:
    """Over +-708 the error is below one unit in the last place; beyond it the clamp holds."""
    with mpmath.workprec(200):
        worst = max(ulps(exp(float(v)), mpmath.exp(mpmath.mpf(float(v)))) for v in RNG.uniform(-708, 708, 5000))

    assert worst < 1.0
    assert exp(1e9) == exp(708.0) < math.inf
    assert exp(-1e9) == exp(-708.0) > 0.0
    assert exp(0.0) == 1.0


def test_logarithm_is_within_one_ulp() -> None:
    """Over the normal range, and close to 1, the error is below one unit in the last place."""
    values = np.concatenate(
        [RNG.uniform(0, 1, 3000), np.exp(RNG.uniform(-600, 600, 3000)), 1 + RNG.normal(0, 1e-6, 500)]
    )
    with mpmath.workprec(200):
        worst = max(ulps(log(float(v)), mpmath.log(mpmath.mpf(float(v)))) for v in values)

    assert worst < 1.0
    assert log(1.0) == 0.0


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 100, 1003])
def test_lane_sum_is_a_sum(n: int) -> None:
    """Only the first n values count, and the order costs no accuracy."""
    values = RNG.normal(0, 1, n + 3)

    assert lane_sum(values, n) == pytest.approx(math.fsum(values[:n]), abs=1e-12)
