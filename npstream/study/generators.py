"""Synthetic stationary problems, each with its recipe, so that the study runs with nothing at hand.

Every generator takes a numpy Generator and a row count and returns features
(float32, rows x dims) and labels (int8 in {-1, +1}; +1 is the target). Rows are
independent draws: their order means nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Xy = tuple[NDArray[np.float32], NDArray[np.int8]]
Generate = Callable[[np.random.Generator, int], Xy]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A generator and the row count it is used with by default."""

    generate: Generate
    rows: int
    ordered: bool = False


def labels(rng: np.random.Generator, n: int, share: float) -> NDArray[np.int8]:
    """n independent labels, +1 with probability `share`."""
    return np.where(rng.random(n) < share, 1, -1).astype(np.int8)


def moons(rng: np.random.Generator, n: int) -> Xy:
    """Two interleaved half circles of radius 1 with Gaussian noise of sd 0.25, 40% targets; 2 features."""
    y = labels(rng, n, 0.4)
    angle = rng.uniform(0, np.pi, n)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)])
    return _finish(np.where((y == 1)[:, None], lower, upper) + rng.normal(0, 0.25, (n, 2)), y)


def circles(rng: np.random.Generator, n: int) -> Xy:
    """Targets on a circle of radius 0.5 inside non-targets on radius 1, noise of sd 0.17, 40% targets; 2 features."""
    y = labels(rng, n, 0.4)
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(y == 1, 0.5, 1.0)
    on_circle = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _finish(on_circle + rng.normal(0, 0.17, (n, 2)), y)


def spirals(rng: np.random.Generator, n: int) -> Xy:
    """Two interlocked spiral arms of 1.75 turns with noise of sd 0.25, arms 1.57 apart, 45% targets; 2 features."""
    y = labels(rng, n, 0.45)
    angle = 3.5 * np.pi * np.sqrt(rng.random(n)) + 0.5
    turned = angle + np.where(y == 1, np.pi, 0.0)
    arm = 0.5 * angle[:, None] * np.column_stack([np.cos(turned), np.sin(turned)])
    return _finish(arm + rng.normal(0, 0.25, (n, 2)), y)


def gaussian_mixture(d: int, spread: float, share: float = 0.3) -> Generate:
    """Four unit Gaussians a class in d features, their centres drawn from N(0, spread^2 I)."""

    def generate(rng: np.random.Generator, n: int) -> Xy:
        centres = rng.normal(0, spread, (2, 4, d))
        y = labels(rng, n, share)
        return _finish(centres[(y + 1) // 2, rng.integers(0, 4, n)] + rng.normal(0, 1, (n, d)), y)

    return generate


def heavy_tails(rng: np.random.Generator, n: int) -> Xy:
    """Student t features (1.8 degrees of freedom) in units from 0.1 to 1000; targets are 5 times as wide in the
    first half of the features and off centre by 1; 30% targets; 6 features. No linear rule sees the width.
    """
    y = labels(rng, n, 0.3)
    x = rng.standard_t(1.8, (n, 6))
    x[y == 1, :3] = 5 * x[y == 1, :3] + 1
    return _finish(x * np.logspace(-1, 3, 6), y)


def random_rbf(rng: np.random.Generator, n: int) -> Xy:
    """Fifty Gaussian blobs in the unit cube of 10 features, each with its own class, weight and width; 40% of the
    blobs are targets.
    """
    centres, widths = rng.random((50, 10)), rng.uniform(0.08, 0.2, 50)
    weights, side = rng.random(50), np.where(np.arange(50) < 20, 1, -1)
    pick = rng.choice(50, n, p=weights / weights.sum())
    direction = rng.normal(size=(n, 10))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = np.abs(rng.normal(0, 1, n)) * widths[pick] * np.sqrt(10)
    return _finish(centres[pick] + direction * length[:, None], side[pick].astype(np.int8))


def agrawal(rng: np.random.Generator, n: int) -> Xy:
    """Loan applicants after Agrawal et al.: nine features from salary to loan, the target decided by salary bands that
    depend on age (their function 2), numeric features then disturbed by 5% of their range.
    """
    salary, age = rng.uniform(20e3, 150e3, n), rng.uniform(20, 80, n)
    commission = np.where(salary >= 75e3, 0.0, rng.uniform(10e3, 75e3, n))
    level, car, zipcode = rng.integers(0, 5, n), rng.integers(1, 21, n), rng.integers(0, 9, n)
    value = (9 - zipcode) * 100e3 * rng.uniform(0.5, 1.5, n)
    years, loan = rng.uniform(1, 30, n), rng.uniform(0, 500e3, n)
    low = np.where(age < 40, 50e3, np.where(age < 60, 75e3, 25e3))
    y = np.where((salary >= low) & (salary <= low + 50e3), 1, -1).astype(np.int8)
    numeric = np.column_stack([salary, commission, age, value, years, loan])
    disturbed = numeric + rng.uniform(-0.05, 0.05, numeric.shape) * np.ptp(numeric, axis=0)
    return _finish(np.column_stack([disturbed, level, car, zipcode]), y)


def waveform(rng: np.random.Generator, n: int) -> Xy:
    """Breiman's waveforms: 21 points of a random mix of two of three triangles plus unit noise; the target is the class
    that mixes the first two (one third of the rows).
    """
    points = np.arange(1, 22)
    triangles = np.stack([np.maximum(6 - np.abs(points - peak), 0) for peak in (11, 15, 7)])
    kind, u = rng.integers(0, 3, n), rng.random(n)[:, None]
    first, second = np.array([0, 0, 1])[kind], np.array([1, 2, 2])[kind]
    x = u * triangles[first] + (1 - u) * triangles[second] + rng.normal(0, 1, (n, 21))
    return _finish(x, np.where(kind == 0, 1, -1).astype(np.int8))


def mixed(rng: np.random.Generator, n: int) -> Xy:
    """Four unit Gaussians as numbers and three categories of 4, 12 and 40 values as one-hot columns. Every value adds
    its own amount (sd 1) to the log-odds, and whether the first two numbers agree in sign counts with the sign of the
    first category's value; about 30% targets; 60 features.
    """
    numbers, drawn = rng.normal(0, 1, (n, 4)), [rng.integers(0, size, n) for size in (4, 12, 40)]
    worth = [rng.normal(0, 1, size) for size in (4, 12, 40)]
    agree = np.sign(numbers[:, 0] * numbers[:, 1]) * np.sign(worth[0][drawn[0]])
    odds = numbers[:, 2] + 1.5 * agree + sum(each[value] for each, value in zip(worth, drawn, strict=True))
    odds += rng.logistic(0, 1, n)
    flags = [np.eye(each.size)[value] for each, value in zip(worth, drawn, strict=True)]
    y = np.where(odds > np.quantile(odds, 0.7), 1, -1).astype(np.int8)
    return _finish(np.column_stack([numbers, *flags]), y)


def _finish(x: NDArray[np.float64], y: NDArray[np.int8]) -> Xy:
    return np.ascontiguousarray(x, np.float32), y


STATIONARY: dict[str, Recipe] = {
    "moons": Recipe(moons, 30_000),
    "circles": Recipe(circles, 30_000),
    "spirals": Recipe(spirals, 30_000),
    "gmm2": Recipe(gaussian_mixture(2, 1.8), 30_000),
    "gmm8": Recipe(gaussian_mixture(8, 0.9), 30_000),
    "gmm54": Recipe(gaussian_mixture(54, 0.75), 15_000),
    "heavy": Recipe(heavy_tails, 30_000),
    "rbf": Recipe(random_rbf, 40_000),
    "agrawal": Recipe(agrawal, 40_000),
    "waveform": Recipe(waveform, 40_000),
    "mixed": Recipe(mixed, 30_000),
}
