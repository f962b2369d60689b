"""Which features moved a score."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from npstream.model import Model, Params


def trained(**changes: Any) -> Model:
    """A model that has seen targets with a large first feature."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(1500) < 0.4, 1, -1)
    x = rng.normal(size=(1500, 4)) * [1.0, 5.0, 0.1, 1.0] + [0.0, 100.0, 0.0, 0.0]
    x[:, 0] += 2.0 * (y > 0)
    for i in np.flatnonzero(changes.get("buckets", ())):
        x[:, i] = np.abs(np.round(x[:, i]))
    return Model.create(Params(**{"d": 4, "D": 20, "tau": 0.1, **changes})).learn_many(x, y)


def by_tables(model: Model, x: npt.NDArray[np.float32]) -> float:
    """The cells that x selects."""
    return float(model.arrays()["cell"][model.selected_cells(x), 0].sum()) if "cell" in model.arrays() else 0.0


def by_network(model: Model, x: npt.NDArray[np.float32]) -> float:
    """What is left of the score without them."""
    return model.score_one(x) - by_tables(model, x)


@pytest.mark.parametrize(
    "changes",
    [{}, {"preset": "paper", "input": "raw", "g": 1e-3}, {"preset": "paper", "input": "zscore"}],
    ids=["plus", "raw", "zscore"],
)
def test_the_gradient_is_the_slope_of_the_network(changes: dict[str, Any]) -> None:
    """A small step along each feature changes the network's part of the score by gradient times step."""
    model = trained(**changes)
    x = np.array([1.1, 101.0, 0.05, -0.3], np.float32)
    found = model.contributions(x)
    scale = 1.0 if model.params.input == "raw" else np.asarray(model.arrays()["inv_sd"], np.float64)
    for feature in range(4):
        step = np.zeros(4, np.float32)
        step[feature] = np.float32(2.0**-9 * max(1.0, abs(x[feature]) / 4))
        slope = (by_network(model, x + step) - by_network(model, x - step)) / (2 * float(step[feature]))
        wanted = float((found.gradient * scale)[feature])
        assert slope == pytest.approx(wanted, rel=0.05, abs=1e-3)


def test_the_feature_that_tells_targets_apart_moves_the_score_most() -> None:
    """An event with a large first feature is an alarm because of it."""
    found = trained().contributions(np.array([3.0, 100.0, 0.0, 0.0], np.float32))

    assert np.argmax(found.contribution) == 0
    assert found.contribution[0] > 0


@pytest.mark.parametrize("buckets", [(), (0, 64, 0, 8)], ids=["numbers", "categories"])
def test_what_the_tables_add_is_shared_out_exactly(buckets: tuple[int, ...]) -> None:
    """Beyond gradient times z, the contributions add up to the cells that the observation selects."""
    model = trained(buckets=buckets)
    for x in ([1.1, 101.0, 0.05, 3.0], [-2.0, 95.0, np.nan, 1.0], [0.0, np.nan, 0.0, 0.0]):
        row = np.array(x, np.float32)
        found = model.contributions(row)

        assert abs(by_tables(model, row)) > 0.1
        assert (found.contribution - found.gradient * found.z).sum() == pytest.approx(by_tables(model, row), rel=1e-5)


def test_the_network_does_not_see_categories_and_what_is_missing() -> None:
    """Both are zero to it, with no slope along a category; they move the score through their cells."""
    found = trained(buckets=(0, 64, 0, 8)).contributions(np.array([np.nan, 101.0, 0.05, 3.0], np.float32))

    assert found.z[[0, 1, 3]].tolist() == [0.0, 0.0, 0.0]
    assert found.gradient[[1, 3]].tolist() == [0.0, 0.0]
    assert (found.contribution != 0.0).all()


def test_a_unit_vector_is_seen_as_such() -> None:
    """With input `unit` the features are shares of their length."""
    found = trained(preset="paper", input="unit").contributions(np.array([3.0, 4.0, 0.0, 0.0], np.float32))

    assert found.z == pytest.approx([0.6, 0.8, 0.0, 0.0])


def test_an_external_score_has_no_features() -> None:
    """Nothing is said about a model that is not ours."""
    model = Model.create(Params(preset="external", tau=0.1))

    assert model.contributions(np.empty(0, np.float32)).contribution.size == 0
