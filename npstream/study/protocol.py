"""The paper's protocol for small sets: permute, split 75/25, cross-validate, train, test frozen.

Online methods train on the training part concatenated with itself, each pass in
a new order, up to a number of samples; batch methods see it once. Features are
standardised by the training part alone.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Features, Signs
from npstream.model import Model, Params
from npstream.report.rates import Rates, rates
from npstream.study import nproc
from npstream.study.datasets import Dataset, permuted
from npstream.study.olnp import Olnp

NPNN, OLNP, NPROC_LOG, NPROC_SVM = "NP-NN", "OLNP", "NPROC-LOG", "NPROC-SVM"
METHODS = (NPNN, OLNP, NPROC_LOG, NPROC_SVM)
# "0.1 >= beta/eta >= 0.01" for both online methods, eta 0.01.
ETA, BETA = 0.01, 5e-4
FOLDS = 3

Decide = Callable[[Features], Signs]


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One point of a method's grid; fields that a method does not have stay 0."""

    g: float = 0.0
    units: int = 0
    c: float = 0.0


@dataclass(frozen=True, slots=True)
class Grid:
    """What is cross-validated: bandwidths, hidden units as multiples of d (at most `units_max`), error costs."""

    g: tuple[float, ...]
    units_per_dim: tuple[int, ...]
    c: tuple[float, ...]
    units_max: int
    samples: int

    def choices(self, method: str, d: int) -> list[GridPoint]:
        """The points to try for one method, without repeats."""
        if method == NPNN:
            units = dict.fromkeys(min(m * d, self.units_max) for m in self.units_per_dim)
            return [GridPoint(g=g, units=n) for g, n in itertools.product(self.g, units)]
        if method == NPROC_SVM:
            return [GridPoint(g=g, c=c) for g, c in itertools.product(self.g, self.c)]
        return [GridPoint(c=c) for c in self.c] if method == NPROC_LOG else [GridPoint()]


PAPER_GRID = Grid(
    g=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    units_per_dim=(2, 5, 10, 20, 40, 80, 100),
    c=(0.1, 1.0, 2.0, 4.0),
    units_max=100_000,
    samples=150_000,
)
"""The paper's own grid. Days of computing for sets with many features."""

SMALL_GRID = Grid(
    g=(0.01, 0.05, 0.2, 1.0, 5.0), units_per_dim=(5, 20), c=(0.1, 1.0, 4.0), units_max=200, samples=30_000
)
"""A coarse version of it, a few minutes a set."""

QUICK_GRID = Grid(g=(0.1, 1.0), units_per_dim=(10,), c=(1.0,), units_max=100, samples=5_000)


@dataclass(frozen=True, slots=True)
class Split:
    """Standardised training and test part of one permutation."""

    x: Features
    y: Signs
    test_x: Features
    test_y: Signs


def split(data: Dataset, permutation: int, rows_max: int) -> Split:
    """The first three quarters of a permutation train, the rest tests."""
    mixed = permuted(data, permutation, rows_max)
    cut = mixed.rows * 3 // 4
    return _standardised(mixed.x[:cut], mixed.y[:cut], mixed.x[cut:], mixed.y[cut:])


def evaluate(method: str, parts: Split, tau: float, seed: int, grid: Grid) -> tuple[Rates, GridPoint]:
    """Cross-validate on the training part, train with the best choice, test. Ties go to the first choice."""
    options = grid.choices(method, parts.x.shape[1])
    best = (
        min(options, key=lambda c: _validate(method, parts, tau, seed, c, grid.samples)) if options[1:] else options[0]
    )
    decide = _fit(method, parts.x, parts.y, tau, seed, best, grid.samples)
    return rates(decide(parts.test_x), parts.test_y), best


def epochs(x: Features, y: Signs, samples: int, rng: np.random.Generator) -> tuple[Features, Signs]:
    """The rows again and again, each pass in a new order, cut at `samples`; one pass at least."""
    passes = max(1, -(-samples // len(y)))
    order = np.concatenate([rng.permutation(len(y)) for _ in range(passes)])[: max(samples, len(y))]
    return x[order], y[order]


def _validate(method: str, parts: Split, tau: float, seed: int, choice: GridPoint, samples: int) -> float:
    scores = []
    for train, held_out in _folds(len(parts.y)):
        fold = _standardised(parts.x[train], parts.y[train], parts.x[held_out], parts.y[held_out])
        if not _has_both(fold.y):
            return float("inf")
        decide = _fit(method, fold.x, fold.y, tau, seed, choice, samples)
        scores.append(rates(decide(fold.test_x), fold.test_y).np_score(tau))
    return float(np.mean(scores))


def _fit(method: str, x: Features, y: Signs, tau: float, seed: int, choice: GridPoint, samples: int) -> Decide:
    rng = np.random.default_rng([seed, 0x5EED])
    if method in (NPNN, OLNP):
        learner = _online(method, x.shape[1], tau, seed, choice)
        learner.learn_many(*epochs(x, y, samples, rng))
        return learner.decide_many
    base: nproc.Base = "svm" if method == NPROC_SVM else "log"
    return nproc.fit(base, x.astype(np.float64), y, tau, rng, c=choice.c, g=choice.g).decide


def _online(method: str, d: int, tau: float, seed: int, choice: GridPoint) -> Model | Olnp:
    if method == OLNP:
        return Olnp(d, tau, eta=ETA, beta=BETA, scale=False)
    return Model.create(
        Params(preset="paper", d=d, D=choice.units, tau=tau, seed=seed, g=choice.g, eta=ETA, beta=BETA, input="raw")
    )


def _standardised(x: Features, y: Signs, test_x: Features, test_y: Signs) -> Split:
    mean, sd = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    sd = np.where(sd > 0, sd, 1.0)

    def scale(part: Features) -> Features:
        return np.asarray((part - mean) / sd, np.float32)

    return Split(scale(x), y, scale(test_x), test_y)


def _folds(n: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Row numbers in three contiguous folds: the rows are permuted already."""
    parts: Sequence[NDArray[Any]] = np.array_split(np.arange(n), FOLDS)
    for i, held_out in enumerate(parts):
        yield np.concatenate([part for j, part in enumerate(parts) if j != i]), held_out


def _has_both(y: Signs) -> bool:
    return bool((y == 1).any() and (y == -1).any())
