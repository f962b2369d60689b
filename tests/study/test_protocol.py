"""The paper's protocol: splits, epochs, grids, and one run of each method."""

import numpy as np
import pytest

from npstream.study import protocol
from npstream.study.datasets import DatasetSource
from npstream.study.protocol import METHODS, NPNN, NPROC_SVM, OLNP, PAPER_GRID, QUICK_GRID, GridPoint


def test_split_is_three_quarters_and_standardised_by_training_alone() -> None:
    """Training features have mean 0 and deviation 1; test features keep their own small offset."""
    parts = protocol.split(DatasetSource().load("gmm8", rows=1000), 3, 800)

    assert (len(parts.y), len(parts.test_y)) == (600, 200)
    np.testing.assert_allclose(parts.x.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(parts.x.std(axis=0), 1, atol=1e-6)
    assert np.abs(parts.test_x.mean(axis=0)).max() > 1e-3


def test_epochs_visit_every_row_once_a_pass_in_a_new_order() -> None:
    """Each full pass is a permutation of the rows; the sequence is cut at the asked length."""
    x = np.arange(10, dtype=np.float32).reshape(10, 1)
    y = np.where(np.arange(10) < 5, 1, -1).astype(np.int8)
    long_x, long_y = protocol.epochs(x, y, 25, np.random.default_rng(0))

    passes = [long_x[i : i + 10, 0].tolist() for i in (0, 10)]
    assert len(long_x) == 25
    assert [sorted(each) for each in passes] == [list(range(10))] * 2
    assert passes[0] != passes[1]
    np.testing.assert_array_equal(long_y, np.where(long_x[:, 0] < 5, 1, -1))
    assert len(protocol.epochs(x, y, 3, np.random.default_rng(0))[0]) == 10


def test_grids_are_the_papers() -> None:
    """70 choices for the network, 40 for the SVM, one for OLNP; hidden units scale with the dimension."""
    assert len(PAPER_GRID.choices(NPNN, 2)) == 70
    assert len(PAPER_GRID.choices(NPROC_SVM, 2)) == 40
    assert PAPER_GRID.choices(OLNP, 2) == [GridPoint()]
    assert {choice.units for choice in PAPER_GRID.choices(NPNN, 3)} == {6, 15, 30, 60, 120, 240, 300}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_an_easy_problem(method: str) -> None:
    """Trained by the protocol on two half moons, each method detects most targets at FPR near tau, repeatably."""
    if method.startswith("NPROC"):
        pytest.importorskip("sklearn")
    parts = protocol.split(DatasetSource().load("moons", rows=1200), 0, 1200)
    found, choice = protocol.evaluate(method, parts, 0.2, 0, QUICK_GRID)

    assert found.tpr > 0.8
    assert found.fpr < 0.35
    assert choice in QUICK_GRID.choices(method, 2)
    assert protocol.evaluate(method, parts, 0.2, 0, QUICK_GRID) == (found, choice)


def test_cross_validation_picks_the_bandwidth_that_works() -> None:
    """On spirals a wide kernel sees nothing; the narrow one is chosen."""
    parts = protocol.split(DatasetSource().load("spirals", rows=1500), 0, 1500)
    grid = protocol.Grid(g=(0.001, 5.0), units_per_dim=(50,), c=(), units_max=100, samples=20_000)

    assert protocol.evaluate(NPNN, parts, 0.2, 0, grid)[1].g == 5.0
