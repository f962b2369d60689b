"""Numbers stay finite forever."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from npstream.model import Model, Outcome, Params
from npstream.model.params import Preset
from tests.model.streams import shells

Rows = npt.NDArray[np.float32]


def constant_columns(x: Rows, rng: np.random.Generator) -> Rows:
    """All constant at first, one forever, one nearly so at a large value."""
    x = x.copy()
    x[:, 0] = 3.0
    x[: len(x) // 2, 1] = 0.1
    x[:, 2] = 1e8 + 0.1 * rng.standard_normal(len(x))
    return x


def exploding(x: Rows, rng: np.random.Generator) -> Rows:
    """Magnitudes from 1e-15 to 1e15, changing all the time, with both signs."""
    return (x * 10.0 ** rng.uniform(-15, 15, x.shape)).astype(np.float32)


def sudden_giant(x: Rows, rng: np.random.Generator) -> Rows:
    """One row of 1e15 among tame ones, first and later."""
    x = x.copy()
    x[0] = 1e15
    x[len(x) // 2] = -1e15
    return x


def all_zero(x: Rows, rng: np.random.Generator) -> Rows:
    """Nothing at all."""
    return np.zeros_like(x)


def check(model: Model, outcome: Outcome) -> None:
    """Every number of the rows and of the state is finite."""
    for name in ("score", "threshold", "gamma", "fpr"):
        assert np.isfinite(getattr(outcome, name)).all(), name
    for name, array in model.arrays().items():
        assert np.isfinite(array).all(), name


@pytest.mark.parametrize("make", [constant_columns, exploding, sudden_giant, all_zero])
@pytest.mark.parametrize("preset", ["plus", "paper"])
@pytest.mark.parametrize("share", [0.3, 0.001])
@pytest.mark.filterwarnings("error")
def test_hostile_features(make: Callable[[Rows, np.random.Generator], Rows], preset: Preset, share: float) -> None:
    """Constant columns, magnitudes up to 1e15 and 0.1% targets leave every number finite."""
    x, y = shells(20_000, 4, seed=6, share=share)
    for extra in ({}, {"one_class": True}, {"kernel": "laplacian"}):
        model = Model.create(Params.from_dict({"preset": preset, "d": 4, "D": 20, "tau": 0.01} | extra))
        check(model, model.stream(make(x, np.random.default_rng(1)), y))


@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize("preset", ["plus", "paper"])
def test_one_label_only(preset: Preset, label: int) -> None:
    """A stream of a single class drives mu and gamma to their bounds and no further."""
    x, _ = shells(30_000, 2, seed=7)
    model = Model.create(Params(preset=preset, d=2, D=16, tau=0.01))
    check(model, model.stream(x, np.full(len(x), label)))


def test_gamma_stays_between_its_bounds() -> None:
    """With an extreme gain the multiplier ends at its clamp, not beyond."""
    x, y = shells(5_000, 2, seed=8)
    plus = Model.create(Params(d=2, D=16, tau=0.9, beta=1.0)).stream(x, y)
    paper = Model.create(Params(preset="paper", d=2, D=16, tau=0.9, beta=1.0)).stream(x, y)

    assert 0.05 <= plus.gamma.min() < 0.1
    assert paper.gamma.min() == 1e-6


@pytest.mark.parametrize("largest", [1e15, 1e300])
def test_external_scores_of_any_size(largest: float) -> None:
    """Scores up to the range of the format leave threshold and state finite."""
    rng = np.random.default_rng(9)
    scores = rng.uniform(-1, 1, 5_000) * largest
    model = Model.create(Params(preset="external", tau=0.05))
    check(model, model.stream(scores, np.where(rng.random(5_000) < 0.2, 1, -1)))


def test_rare_targets_are_found() -> None:
    """With one target in a thousand the rate is held and targets far outside are still detected."""
    rng = np.random.default_rng(10)
    y = np.where(rng.random(60_000) < 0.001, 1, -1)
    x = rng.standard_normal((60_000, 4)) + 3.0 * (y > 0)[:, None]
    outcome = Model.create(Params(d=4, tau=0.01)).stream(x, y)
    late = np.arange(len(y)) > 20_000

    assert (outcome.decision[late & (y < 0)] > 0).mean() == pytest.approx(0.01, rel=0.15)
    assert (outcome.decision[late & (y > 0)] > 0).mean() > 0.5
