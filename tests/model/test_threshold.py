"""The tracked threshold."""

import numpy as np
import numpy.typing as npt
import pytest

from npstream.model import Model, Op, Operations, Params
from npstream.model.sampling import FIRST_REVIEWED, reviewed
from tests.model.streams import sampling_of


def alarms(scores: npt.NDArray[np.float64], tau: float) -> float:
    """The rate of alarms on negatives with these scores, after the first fifth."""
    outcome = Model.create(Params(preset="external", tau=tau)).stream(scores, np.full(len(scores), -1))
    return float((outcome.decision[len(scores) // 5 :] > 0).mean())


@pytest.mark.parametrize("tau", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("shape", ["normal", "cauchy", "ties"])
def test_the_rate_is_held_for_any_distribution(tau: float, shape: str) -> None:
    """Light tails, heavy tails and tied scores all alarm at tau, a little below rather than above."""
    rng = np.random.default_rng(1)
    n = 60_000
    scores: dict[str, npt.NDArray[np.float64]] = {
        "normal": rng.standard_normal(n),
        "cauchy": rng.standard_cauchy(n),
        "ties": rng.integers(0, 4, n).astype(np.float64),
    }
    rate = alarms(scores[shape], tau)

    assert rate <= 1.03 * tau
    if shape != "ties":
        assert rate >= 0.85 * tau


def test_the_rate_is_held_while_scores_drift() -> None:
    """A level that wanders over a hundred deviations is followed."""
    rng = np.random.default_rng(2)
    scores = rng.standard_normal(60_000) + 100 * np.sin(np.linspace(0, 6, 60_000))

    assert alarms(scores, 0.05) == pytest.approx(0.05, rel=0.15)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e-6), (1e6, 1.0), (-40.0, 1e9)])
def test_scores_may_live_anywhere(shift: float, scale: float) -> None:
    """Shifting and scaling all scores changes no decision."""
    rng = np.random.default_rng(3)
    scores, labels = rng.standard_normal(5000), np.where(rng.random(5000) < 0.2, 1, -1)
    # Numbers with few bits, so that shift and scale are nearly exact.
    scores = np.round(scores * 1024) / 1024
    one = Model.create(Params(preset="external", tau=0.05)).stream(scores[1:], labels[1:])
    other = Model.create(Params(preset="external", tau=0.05)).stream(shift + scale * scores[1:], labels[1:])

    assert (one.decision[200:] != other.decision[200:]).mean() < 0.002


def test_constant_scores_never_alarm() -> None:
    """Ties with the threshold are no alarms: strictly above counts."""
    outcome = Model.create(Params(preset="external", tau=0.3)).stream(np.full(1000, 7.0), np.full(1000, -1))

    assert (outcome.decision == -1).all()


def test_the_recent_rates_are_those_of_published_decisions() -> None:
    """The FPR estimate follows what was published, and the counters add up."""
    rng = np.random.default_rng(5)
    labels = np.where(rng.random(30_000) < 0.3, 1, -1)
    scores = rng.standard_normal(30_000) + 2 * (labels > 0)
    model = Model.create(Params(preset="external", tau=0.1))
    outcome = model.stream(scores, labels)
    alarm, negative = outcome.decision > 0, labels < 0

    assert model.false_alarms == int((alarm & negative).sum())
    assert model.detections == int((alarm & ~negative).sum())
    assert (model.negatives, model.positives) == (int(negative.sum()), int((~negative).sum()))
    assert model.fpr == pytest.approx(0.1, abs=0.03)
    assert model.tpr == pytest.approx(float(alarm[~negative][-2000:].mean()), abs=0.06)


def test_the_threshold_follows_rising_scores_though_only_alarms_and_a_sample_are_labelled() -> None:
    """
    What the budget withholds nobody looks at: it must not hide that more and more scores are above the threshold.
    """
    tau, share, n, block = 0.02, 0.005, 80_000, 50
    rng = np.random.default_rng(6)
    scores = rng.standard_normal(n) + np.linspace(0, 20, n)
    codes = np.where(rng.random(n) < share, -FIRST_REVIEWED, 0)
    model, sampling = Model.create(Params(preset="external", tau=tau)), sampling_of(share, tau)
    decided, due, withheld, found = np.zeros(n, np.int8), np.empty(0, np.int64), [], []
    for start in range(0, n, block):
        new = np.arange(start, start + block)
        who = np.concatenate([due, new])
        code = np.repeat(np.array([Op.LEARN, Op.SCORE], np.int8), [due.size, block])
        y = np.concatenate([np.full(due.size, -1), codes[new]]).astype(np.int8)
        rows = np.empty((who.size, 0), np.float32)
        outcome = model.run(Operations(code, rows, scores[who], y, who.astype(np.int32)), decided, sampling)
        alarm = outcome.decision[due.size :] > 0
        due = new[alarm | reviewed(decided[new])]
        withheld.append(model.withheld)
        found.append(alarm)
    alarms = np.concatenate(found)[n // 2 :]

    assert withheld[-1] - withheld[len(withheld) // 2] < 0.05 * alarms.sum()
    assert alarms.mean() == pytest.approx(tau, rel=0.3)
