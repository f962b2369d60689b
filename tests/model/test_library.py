"""The model as a notebook user meets it."""

import doctest
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import npstream.model
from npstream.errors import DataError, SettingsError
from npstream.model import Model, Params
from tests.model.streams import shells

Rows = npt.NDArray[np.float64]


def test_the_example_in_the_docstring_runs() -> None:
    """What the package shows first is true."""
    results = doctest.testmod(npstream.model)

    assert results.attempted == 4
    assert results.failed == 0


def test_one_by_one_is_the_batch() -> None:
    """learn_one over rows ends in the state of stream over all of them, with the same scores on the way."""
    x, y = shells(300, 2, seed=1)
    single, batch = Model.create(Params(d=2, D=16, tau=0.1)), Model.create(Params(d=2, D=16, tau=0.1))
    seen = []
    for row, label in zip(x, y, strict=True):
        seen.append((single.score_one(row), single.decide_one(row)))
        single.learn_one(row, int(label))
    outcome = batch.stream(x, y)

    assert seen == list(zip(outcome.score.tolist(), outcome.decision.tolist(), strict=True))
    assert single.digest() == batch.digest()


def test_dicts_lists_and_arrays_are_one() -> None:
    """A dict is read in the order of the model's features, in whatever order and with whatever else it was written."""
    model = Model.create(Params(d=2, D=8), features=["hour", "amount"])
    model.learn_one({"amount": 2.0, "hour": 1.0}, True)

    row = [0.5, 3.0]
    assert model.score_one({"amount": 3.0, "hour": 0.5, "note": 7.0}) == model.score_one(row)
    assert model.score_one(row) == model.score_one(np.array(row)) != model.score_one([3.0, 0.5])


def test_features_stay_with_the_model() -> None:
    """Other parameters do not make a model forget its features, and a stored one is given them again."""
    model = Model.create(Params(d=2, D=8), features=["hour", "amount"])
    event = {"amount": 2.0, "hour": 1.0}
    stored = Model.from_bytes(model.params, model.to_bytes(), features=["hour", "amount"])

    for other in (model.with_params(Params(d=2, D=8, tau=0.2)), stored):
        assert other.score_one(event) == model.score_one(event)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (None, r"x: a dict needs the order of its features; give it, for instance Model.create\(params, features="),
        (["hour", "velocity"], "x: has no velocity; the model's features are hour, velocity"),
    ],
)
def test_a_dict_whose_order_is_not_known_is_refused(features: list[str] | None, message: str) -> None:
    """Names are never put in an order of their own: another one would give other scores in silence."""
    model = Model.create(Params(d=2, D=8), features=features)
    with pytest.raises(DataError, match=message):
        model.score_one({"amount": 1.0, "hour": 2.0})


@pytest.mark.parametrize(
    ("features", "message"),
    [(["a"], "features: 1 given, d is 2"), (["a", "b", "a"], "3 given"), (["a", "a"], "'a' is named twice")],
)
def test_features_fit_the_model(features: list[str], message: str) -> None:
    """One name for each number, each name once."""
    with pytest.raises(SettingsError, match=message):
        Model.create(Params(d=2, D=8), features=features)


@pytest.mark.parametrize("label", [1, True, 1.0])
def test_target_labels(label: int) -> None:
    """1 and true are targets."""
    model = Model.create(Params(d=1, D=2))
    model.learn_one([0.0], label)

    assert (model.positives, model.negatives) == (1, 0)


@pytest.mark.parametrize("label", [-1, 0, False])
def test_other_labels(label: int) -> None:
    """-1, 0 and false are not."""
    model = Model.create(Params(d=1, D=2))
    model.learn_one([0.0], label)

    assert (model.positives, model.negatives) == (0, 1)


def test_bad_input_is_refused_by_name() -> None:
    """Wrong shapes, numbers that are not finite and unknown labels never reach a weight."""
    model = Model.create(Params(d=2, D=4))
    before = model.to_bytes()
    with pytest.raises(DataError, match=r"X: shape \(1, 3\) is not \(rows, 2\)"):
        model.score_one([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match=r"X: shape \(4,\) is not \(rows, 2\)"):
        model.stream(np.zeros(4), np.zeros(4))
    with pytest.raises(DataError, match="X: not all features are finite"):
        model.learn_one([np.inf, 0.0], 1)
    with pytest.raises(DataError, match="X: not all features are finite"):
        model.learn_one([1e39, 0.0], 1)
    with pytest.raises(DataError, match=r"y: label \[2\] is not one of 1, -1, 0, true, false"):
        model.learn_one([0.0, 0.0], 2)
    with pytest.raises(DataError, match="y: label"):
        model.stream([[0.0, 0.0]], [np.nan])
    with pytest.raises(DataError, match=r"y: shape \(1,\) is not \(2,\)"):
        model.stream(np.zeros((2, 2)), [1])
    with pytest.raises(DataError, match="X: cannot be read as numbers"):
        model.stream([["a", "b"]], [1])
    with pytest.raises(ValueError, match="X: shape"):  # what a notebook expects of data
        model.score_one([1.0])
    with pytest.raises(SettingsError, match="stream: -1"):
        Model.create(Params(d=2), stream=-1)

    assert model.to_bytes() == before


def test_external_scores_come_as_numbers() -> None:
    """Preset external takes a score where the others take features."""
    model = Model.create(Params(preset="external", tau=0.1))
    model.learn_many(np.linspace(0, 1, 200), np.full(200, -1))

    assert model.score_one(3.5) == 3.5
    assert model.decide_one(3.5) == 1
    assert model.decide_one(-3.5) == -1
    with pytest.raises(DataError, match="scores: not all are finite"):
        model.score_one(float("nan"))


def test_repr_says_what_it_knows() -> None:
    """Preset, shape, rate, phase, counts and rates are in one line."""
    model = Model.create(Params(d=2, D=8, tau=0.25, learning=True))

    assert repr(model).startswith("<Model plus, d=2, D=8, tau=0.25: warming up, 0 negatives, 0 targets, FPR 0, TPR 0,")

    model.stream(np.zeros((40, 2)), np.full(40, -1))
    frozen = model.with_params(Params(d=2, D=8, tau=0.25, learning=False))

    assert "tau=0.25: 40 negatives" in repr(frozen)
    assert repr(frozen).endswith(", frozen>")


def test_a_frozen_model_counts_and_learns_nothing() -> None:
    """Weights, scaler, gamma and threshold stay; budget and counters go on."""
    x, y = shells(600, 2, seed=2)
    model = Model.create(Params(d=2, D=8, tau=0.1))
    model.stream(x, y)
    frozen = model.with_params(Params(d=2, D=8, tau=0.1, learning=False))
    frozen.stream(x, y)
    before, after = model.arrays(), frozen.arrays()

    for name in before.keys() - {"level", "tally"}:
        np.testing.assert_array_equal(before[name], after[name])
    assert frozen.threshold == model.threshold
    assert frozen.t == model.t == 600
    assert frozen.negatives == 2 * model.negatives
    assert frozen.budget_left != model.budget_left


def test_learned_kernel_is_the_covariance_of_the_directions() -> None:
    """It starts as 2g I and stretches along the feature that distinguishes the classes."""
    g = 0.25
    model = Model.create(Params(preset="paper", d=2, D=4000, g=g))
    np.testing.assert_allclose(model.learned_kernel(), 2 * g * np.eye(2), atol=0.05)

    learner = Model.create(Params(d=2, D=100, tau=0.1))
    started = learner.learned_kernel()
    rng = np.random.default_rng(3)
    x = rng.standard_normal((10_000, 2))
    learner.stream(x, np.where(np.sin(3 * x[:, 0]) > 0.3, 1, -1))
    learned = learner.learned_kernel()

    np.testing.assert_allclose(learned, np.cov(learner.arrays()["alpha"], bias=True), rtol=1e-9)
    assert learned[0, 0] / learned[1, 1] > 1.1 * started[0, 0] / started[1, 1]


def test_one_class_mode_encloses_the_data() -> None:
    """Trained on negatives only, it alarms outside their region and holds tau inside."""
    rng = np.random.default_rng(4)
    ring = rng.standard_normal((8000, 2))
    ring /= np.linalg.norm(ring, axis=1, keepdims=True)
    ring += 0.05 * rng.standard_normal((8000, 2))
    model = Model.create(Params(d=2, tau=0.05, one_class=True))
    outcome = model.stream(ring, np.full(8000, -1))

    assert (outcome.decision[2000:] > 0).mean() == pytest.approx(0.05, abs=0.01)
    assert model.decide_many(np.zeros((1, 2)))[0] == 1
    assert (model.decide_many([[0.9, 0.9], [-0.9, 0.9], [0.9, -0.9], [-0.9, -0.9]]) == 1).all()
    assert model.positives == 0


@pytest.mark.parametrize("change", [lambda x: 30 * x, lambda x: x + 15, lambda x: 0.1 * x])
def test_a_change_of_units_is_survived_after_a_long_run(change: Callable[[Rows], Rows]) -> None:
    """Even after 100,000 events the scaler follows new units, and with it detection comes back."""
    rng = np.random.default_rng(6)
    n, cut = 160_000, 100_000
    y = np.where(rng.random(n) < 0.3, 1, -1)
    x = rng.standard_normal((n, 4)) + 1.5 * (y > 0)[:, None] * np.array([1, -1, 1, -1])
    x[cut:] = change(x[cut:])
    outcome = Model.create(Params(d=4, D=40, tau=0.05)).stream(x, y)
    alarm, event = outcome.decision > 0, np.arange(n)
    before = alarm[(y > 0) & (event > cut - 20_000) & (event < cut)].mean()
    after = alarm[(y > 0) & (event > n - 20_000)].mean()

    assert after > before - 0.03
    assert alarm[(y < 0) & (event > cut)].mean() == pytest.approx(0.05, rel=0.1)
