"""How good a run of decisions was: rates with intervals, NP-score, areas and oracles.

Everything here looks at arrays that exist already: decisions and labels in
{-1, +1}, scores as floats. +1 is the target class, an alarm is a decision +1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Floats, Signs
from npstream.report.intervals import clopper_pearson, wilson


@dataclass(frozen=True, slots=True)
class Rates:
    """Counts of one run of labelled decisions. A rate over nothing is NaN."""

    negatives: int
    positives: int
    false_positives: int
    true_positives: int

    @property
    def fpr(self) -> float:
        """False positive rate: alarms among non-targets."""
        return self.false_positives / self.negatives if self.negatives else float("nan")

    @property
    def tpr(self) -> float:
        """True positive rate, the detection power: alarms among targets."""
        return self.true_positives / self.positives if self.positives else float("nan")

    @property
    def measured(self) -> bool:
        """Whether there were labels of both classes: without, an NP-score says nothing."""
        return self.negatives > 0 and self.positives > 0

    def np_score(self, tau: float) -> float:
        """`np_score` of these rates; look at `measured` before showing it."""
        return np_score(self.fpr, self.tpr, tau)

    def fpr_interval(self, confidence: float = 0.95, *, exact: bool = False) -> tuple[float, float]:
        """Interval of the FPR: Wilson's, or Clopper and Pearson's when `exact`."""
        return (clopper_pearson if exact else wilson)(self.false_positives, self.negatives, confidence)

    def tpr_interval(self, confidence: float = 0.95, *, exact: bool = False) -> tuple[float, float]:
        """Interval of the TPR: Wilson's, or Clopper and Pearson's when `exact`."""
        return (clopper_pearson if exact else wilson)(self.true_positives, self.positives, confidence)

    def __add__(self, other: "Rates") -> "Rates":
        return Rates(
            self.negatives + other.negatives,
            self.positives + other.positives,
            self.false_positives + other.false_positives,
            self.true_positives + other.true_positives,
        )


def rates(decision: Signs, y: Signs) -> Rates:
    """Count a run. Raises ValueError when the shapes differ or a value is neither -1 nor 1."""
    decision, y = _signs("decision", decision), _signs("y", y)
    if decision.shape != y.shape:
        raise ValueError(f"decision and y differ in length: {decision.shape[0]} and {y.shape[0]}")
    alarm, target = decision == 1, y == 1
    return Rates(
        negatives=int((~target).sum()),
        positives=int(target.sum()),
        false_positives=int((alarm & ~target).sum()),
        true_positives=int((alarm & target).sum()),
    )


def np_score(fpr: float, tpr: float, tau: float) -> float:
    """The NP-score with kappa = 1/tau: max(fpr - tau, 0)/tau + (1 - tpr). Lower is better.

    A constant "no alarm" scores 1. A side without a single event counts as faultless.
    """
    excess = max(fpr - tau, 0.0) / tau if fpr == fpr else 0.0
    return excess + (1.0 - tpr if tpr == tpr else 0.0)


def cumulative(decision: Signs, y: Signs) -> tuple[Floats, Floats]:
    """FPR and TPR accumulated up to and including each event; NaN before the first of its class."""
    alarm, target = decision == 1, y == 1
    with np.errstate(invalid="ignore"):
        fpr = np.cumsum(alarm & ~target) / np.cumsum(~target)
        tpr = np.cumsum(alarm & target) / np.cumsum(target)
    return fpr, tpr


def windowed(decision: Signs, y: Signs, label: int, window: int) -> Floats:
    """Share of alarms in each run of `window` consecutive events of class `label`; empty when there are fewer.

    `label` -1 gives windowed FPR, +1 windowed TPR. Entry i covers events i .. i + window - 1 of that class.
    """
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    hits = np.concatenate([[0], np.cumsum(decision[y == label] == 1)]).astype(np.float64)
    share: Floats = (hits[window:] - hits[:-window]) / window
    return share


def worst_overdraft(decision: Signs, y: Signs, tau: float) -> float:
    """The largest FP - tau * n over any run of n consecutive labelled negatives (0 for the empty run)."""
    walk = np.concatenate([[0.0], np.cumsum((decision[y == -1] == 1) - tau)])
    return float((walk - np.minimum.accumulate(walk)).max())


def oracle_threshold(score: Floats, y: Signs, tau: float) -> float:
    """The lowest threshold q with at most tau * n of the n negatives strictly above it: known only afterwards."""
    negatives = np.sort(score[y == -1])[::-1]
    allowed = int(tau * negatives.size + 1e-9)
    return float(negatives[allowed]) if allowed < negatives.size else float("-inf")


def oracle_tpr(score: Floats, y: Signs, tau: float) -> float:
    """TPR with the threshold set afterwards to FPR <= tau: score quality apart from threshold quality."""
    targets = score[y == 1]
    return float((targets > oracle_threshold(score, y, tau)).mean()) if targets.size else float("nan")


def auc(taus: Floats, tprs: Floats) -> float:
    """Area under TPR over the target rates, by trapezoids, divided by their span: 1 is perfect.

    The rates asked for, not those achieved, are on the axis, as in the paper: it
    measures detection power alone. Needs at least two distinct target rates.
    """
    order = np.argsort(taus)
    x, y = np.asarray(taus, np.float64)[order], np.asarray(tprs, np.float64)[order]
    if x.size < 2 or x[0] == x[-1]:
        raise ValueError("an area needs at least two distinct target rates")
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum() / (x[-1] - x[0]))


def last_quarter(n: int) -> slice:
    """The part of a stream of n events on which learners are compared once they had time to learn."""
    return slice(n - n // 4, n)


def _signs(name: str, values: NDArray[Any]) -> Signs:
    if not np.isin(values, (-1, 1)).all():
        raise ValueError(f"{name} must hold only -1 and 1, got {np.unique(values)[:5].tolist()}")
    return values
