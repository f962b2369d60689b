"""A learned model as the start of a new partition: knowledge stays, bookkeeping starts over."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from npstream.errors import SettingsError
from npstream.model import Model, Op, Operations, Params, seeded
from npstream.model.seed import CREDIT

PARAMS = Params(d=2, D=16, tau=0.1, budget=5.0)


def rows(n: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    """Two overlapping clouds."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1, -1).astype(np.int8)
    return (rng.normal(size=(n, 2)) + 1.5 * (y > 0)[:, None]).astype(np.float32), y


def trained(params: Params = PARAMS) -> Model:
    """A model past its warm-up, with an alarm whose label never came."""
    model = Model.create(params)
    model.stream(*rows(2000, seed=1))
    # Non-targets far from any alarm: a full bucket has room again.
    model.stream(np.full((20, 2), -2.0), [-1] * 20)
    hot = model.score_many(rows(500, seed=2)[0]).argmax()
    x = rows(500, seed=2)[0][hot : hot + 1]
    zero, slot = np.zeros(1, np.int8), np.zeros(1, np.int32)
    model.run(Operations(np.array([Op.SCORE], np.int8), x, np.zeros(1), zero, slot), np.zeros(1, np.int8))
    assert model.outstanding == 1
    return model


def test_a_seeded_model_scores_as_the_one_it_comes_from() -> None:
    """Scores and threshold are those of the trained model, to the bit, and there is no second warm-up."""
    model = trained()
    x, _ = rows(300, seed=3)

    seed = seeded(model, PARAMS, stream=4)

    assert seed.score_many(x).tolist() == model.score_many(x).tolist()
    assert (seed.threshold, seed.gamma, seed.t, seed.warming_up) == (model.threshold, model.gamma, model.t, False)


def test_bookkeeping_starts_over() -> None:
    """A partition that has decided nothing has no rates, no waiting alarms, and little credit."""
    seed = seeded(trained(), PARAMS, stream=4)

    counted = (seed.negatives, seed.positives, seed.false_alarms, seed.detections, seed.outstanding, seed.held)
    assert counted == (0, 0, 0, 0, 0, 0)
    assert (seed.withheld, seed.fpr, seed.tpr, seed.budget_left) == (0, 0.0, 0.0, CREDIT)


def test_a_misled_seed_is_held_to_its_rate_from_the_first_event() -> None:
    """Frozen, on a stream where every negative looks like a target, its false alarms stay within rate and credit."""
    seed = seeded(trained(), replace(PARAMS, learning=False), stream=0)
    x, _ = rows(400, seed=8)

    seed.stream(x + 3.0, np.full(400, -1))

    assert 0 < seed.false_alarms <= PARAMS.tau * 400 + CREDIT + 1
    assert seed.withheld > 0


def test_a_small_budget_is_not_exceeded() -> None:
    """The credit is never more than the budget itself."""
    params = replace(PARAMS, budget=1.0)

    assert seeded(trained(params), params, stream=0).budget_left == 1.0


def test_the_trained_model_stays_as_it_is() -> None:
    """Several partitions start from one model, and none of them changes it."""
    model = trained()
    before = model.to_bytes()

    for stream in (0, 1):
        seeded(model, PARAMS, stream).stream(*rows(200, seed=stream))

    assert model.to_bytes() == before


def test_a_seed_goes_on_learning_as_the_trained_model_would() -> None:
    """Bookkeeping has no say in learning: both models have the same scores after the same further events."""
    model = trained()
    seed = seeded(model, PARAMS, stream=0)
    for learner in (model, seed):
        learner.stream(*rows(1000, seed=5))
    x, _ = rows(300, seed=6)

    assert seed.score_many(x).tolist() == model.score_many(x).tolist()


def test_one_class_targets_are_drawn_for_the_new_stream() -> None:
    """Partitions that start from one model draw targets of their own."""
    params = replace(PARAMS, one_class=True)
    model = trained(params)
    x, y = rows(200, seed=7)
    negatives = x[y < 0], y[y < 0]

    digests = {seeded(model, params, stream).learn_many(*negatives).score_many(x).tobytes() for stream in (0, 1)}

    assert len(digests) == 2


@pytest.mark.parametrize("change", [{"tau": 0.05}, {"eta": 0.2}, {"charge": "issue"}, {"learning": False}])
def test_what_may_change_on_a_live_model_may_change_here(change: dict[str, Any]) -> None:
    """A seed may start under another rate, budget or learning rate."""
    params = replace(PARAMS, **change)

    assert seeded(trained(), params, stream=0).params == params


def test_a_model_of_another_shape_is_refused_with_every_difference() -> None:
    """The message names each parameter with both values, and what to do."""
    with pytest.raises(SettingsError) as caught:
        seeded(trained(), Params(d=3, D=8, tau=0.1), stream=0)

    assert [problem.split(":")[0] for problem in caught.value.problems] == ["model.d", "model.D", "model.g"]
    assert "trained with 2; use that value, or train a model" in caught.value.problems[0]
