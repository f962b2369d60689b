"""The linear baseline against a plain restatement, alone and behind the threshold."""

import math
from collections import deque

import numpy as np
import pytest
from numpy.typing import NDArray

from npstream.errors import SettingsError
from npstream.model import Model, Params
from npstream.study.olnp import Olnp, TrackedOlnp

Floats = NDArray[np.float64]


def problem(
    n: int = 3000, d: int = 3, share: float = 0.3, seed: int = 5
) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1).astype(np.int8)
    x = rng.normal(0, [1, 10, 0.1], (n, d)) + np.outer(y == 1, [1.5, 5, 0.05])
    return x.astype(np.float32), y


def plain_olnp(x: Floats, y: NDArray[np.int8], tau: float, eta: float, beta: float, window: int) -> list[float]:
    """Gasso et al. (2011) on features as they are, one event at a time, library functions throughout."""
    w, b, gamma = np.zeros(x.shape[1]), 0.0, 1.0
    seen = {1: 0, -1: 0}
    hits: deque[float] = deque(maxlen=window)
    scores = []
    for t, (row, label) in enumerate(zip(x, y.tolist(), strict=True), 1):
        f = float(w @ row + b)
        scores.append(f)
        seen[label] += 1
        mu = (1 if label == 1 else gamma) * t / seen[label]
        loss = 1 / (1 + math.exp(label * f))
        slope = -mu * loss**2 * math.exp(label * f) * label
        w, b = w - eta * slope * row, b - eta * slope
        if label == -1:
            hits.append(f > 0)
            gamma *= 1 + beta * (sum(hits) / len(hits) - tau)
    return scores


@pytest.mark.parametrize(("tau", "beta", "window"), [(0.05, 0.02, 200), (0.2, 5e-4, 7)])
def test_olnp_follows_the_plain_form(tau: float, beta: float, window: int) -> None:
    """Scores of 3,000 events agree with the restatement to 1e-9, and every decision is f > 0."""
    x, y = problem()
    z = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
    outcome = Olnp(3, tau, beta=beta, window=window, scale=False).stream(z, y)

    expected = np.array(plain_olnp(z.astype(np.float64), y, tau, 0.01, beta, window))
    np.testing.assert_allclose(outcome.score, expected, atol=1e-9)
    np.testing.assert_array_equal(outcome.decision, np.where(expected > 0, 1, -1))


def test_olnp_standardises_by_what_it_has_seen() -> None:
    """With online scaling each score uses the moments of the events before it alone."""
    x, y = problem(400)
    model = Olnp(3, 0.1)
    outcome = model.stream(x[:300], y[:300])
    later = Olnp(3, 0.1).stream(x, y)

    np.testing.assert_array_equal(outcome.score, later.score[:300])
    w, b = model.weights
    z = np.clip((x[300] - x[:300].astype(np.float64).mean(axis=0)) / x[:300].astype(np.float64).std(axis=0), -5, 5)
    assert later.score[300] == pytest.approx(w @ z + b, abs=1e-9)


def test_olnp_scoring_changes_nothing_and_batches_do_not_matter() -> None:
    """One event at a time, with scores and decisions asked in between, ends in the same weights as one batch."""
    x, y = problem(200)
    whole, single = Olnp(3, 0.1), Olnp(3, 0.1)
    scores = whole.stream(x, y).score
    for row, label, score in zip(x, y, scores, strict=True):
        assert single.score_many([row]) == [score]
        assert single.decide_many([row]) == [1 if score > 0 else -1]
        single.learn_many([row], [label])

    np.testing.assert_array_equal(single.weights[0], whole.weights[0])
    assert (single.weights[1], single.gamma) == (whole.weights[1], whole.gamma)
    np.testing.assert_array_equal(single.decide_many(x), whole.decide_many(x))


def test_tracked_olnp_is_olnp_behind_the_external_gate() -> None:
    """Its scores are OLNP's, its decisions those of a model that was given the scores."""
    x, y = problem(6000)
    found = TrackedOlnp(3, 0.05).stream(x, y)

    scores = Olnp(3, 0.05).stream(x, y).score
    expected = Model.create(Params(preset="external", d=0, tau=0.05)).stream(scores, y)
    np.testing.assert_array_equal(found.score, scores)
    np.testing.assert_array_equal(found.decision, expected.decision)


def test_tracking_brings_the_rate_to_its_target() -> None:
    """On the same scores the tracked threshold holds 5% where f > 0 is far off."""
    x, y = problem(20_000)
    negatives = y == -1
    fixed, tracked = Olnp(3, 0.05, beta=5e-4).stream(x, y), TrackedOlnp(3, 0.05, beta=5e-4).stream(x, y)

    assert (fixed.decision[negatives] == 1).mean() > 0.10
    assert 0.045 < (tracked.decision[negatives] == 1).mean() < 0.0525


def test_olnp_stays_finite_on_hostile_data() -> None:
    """A constant column, magnitudes of 1e15 and one target in a thousand leave every number finite."""
    x, y = problem(20_000, share=0.001)
    x[:, 0] = 7
    x[::100, 1] = 1e15
    outcome = Olnp(3, 0.01).stream(x, y)

    assert np.isfinite(outcome.score).all()
    assert np.isfinite(outcome.gamma).all()


def test_olnp_refuses_what_it_cannot_use() -> None:
    """A bad rate, a wrong shape and a label outside of the set are refused by name."""
    with pytest.raises(SettingsError, match=r"tau: 1\.5"):
        Olnp(3, 1.5)
    with pytest.raises(SettingsError, match=r"X: shape \(2, 2\) is not \(rows, 3\)"):
        Olnp(3, 0.1).stream(np.zeros((2, 2)), [1, -1])
    with pytest.raises(SettingsError, match="each 1 or -1"):
        Olnp(3, 0.1).stream(np.zeros((2, 3)), [1, 2])
