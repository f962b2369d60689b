"""The slow weights: their share in the score follows what they are worth."""

import numpy as np
import numpy.typing as npt
import pytest

from npstream.model import Model, Params
from npstream.model.network import SHARE

ROWS = 4000
PARAMS = Params(d=4, tau=0.1)


def independent(rng: np.random.Generator) -> npt.NDArray[np.int8]:
    """Labels that say nothing of the next one."""
    return np.where(rng.random(ROWS) < 0.3, 1, -1).astype(np.int8)


def in_runs(rng: np.random.Generator) -> npt.NDArray[np.int8]:
    """Labels that stay as they are for about 200 events."""
    return np.where(np.cumsum(rng.random(ROWS) < 0.005) % 2 == 0, 1, -1).astype(np.int8)


def share_after(y: npt.NDArray[np.int8], x: npt.NDArray[np.float64]) -> float:
    return float(Model.create(PARAMS).learn_many(x, y).arrays()["head"][SHARE])


@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_by_slow_weights_where_labels_are_independent(seed: int) -> None:
    """There what the last steps moved is noise."""
    rng = np.random.default_rng(seed)
    y = independent(rng)
    assert share_after(y, rng.normal(size=(ROWS, 4)) + (y[:, None] > 0)) > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_by_the_last_steps_where_the_last_labels_foretell_the_next(seed: int) -> None:
    """There a mean over a thousand events comes too late."""
    rng = np.random.default_rng(seed)
    assert share_after(in_runs(rng), rng.normal(size=(ROWS, 4))) < 0.4


def test_slow_weights_are_the_mean_of_weights_at_first() -> None:
    """Over the first events, and without a trace of the cold start."""
    rng = np.random.default_rng(5)
    model, y = Model.create(PARAMS), independent(rng)[:200]
    weights = []
    for x, label in zip(rng.normal(size=(y.size, 4)), y, strict=True):
        model.learn_one(x, int(label))
        weights.append(model.arrays()["wc"].copy())

    np.testing.assert_allclose(model.arrays()["slow_c"], np.mean(weights, axis=0), rtol=1e-9, atol=1e-12)
