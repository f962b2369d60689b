"""NPROC: any batch scorer made a Neyman-Pearson classifier by the umbrella algorithm of Tong, Feng and Li (2018).

Half of the negatives train the scorer together with all positives; the other
half only set the threshold: the smallest of their order statistics that keeps
P(FPR > tau) at or below delta. Needs exchangeable data, and enough of it.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Floats, Signs
from npstream.errors import UsageError
from npstream.report.intervals import binomial_tail

Base = Literal["log", "svm"]


class Scorer(Protocol):
    """A fitted scikit-learn classifier, as far as it is used here."""

    def decision_function(self, x: NDArray[Any]) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Nproc:
    """A fitted classifier: alarms where the base scorer is strictly above the threshold."""

    scorer: Scorer
    threshold: float

    def decide(self, x: NDArray[Any]) -> Signs:
        """Decisions in {-1, +1}, one a row."""
        return np.where(self.scorer.decision_function(x) > self.threshold, 1, -1).astype(np.int8)


def fit(
    base: Base,
    x: NDArray[np.float64],
    y: Signs,
    tau: float,
    rng: np.random.Generator,
    *,
    delta: float = 0.05,
    c: float = 1.0,
    g: float = 1.0,
) -> Nproc:
    """Split, train, set the threshold.

    `c` is the error cost of the SVM (and the inverse regularisation of the
    logistic model), `g` the rbf bandwidth. With too few negatives for (tau,
    delta) the threshold is infinite: no alarm is the only decision that keeps
    the promise. Raises UsageError when scikit-learn is not installed.
    """
    negatives = rng.permutation(np.flatnonzero(y == -1))
    held_out, kept = np.split(negatives, [negatives.size - negatives.size // 2])
    train = np.concatenate([kept, np.flatnonzero(y == 1)])
    scorer = _train(base, x[train], y[train], c, g)
    return Nproc(scorer, threshold(scorer.decision_function(x[held_out]), tau, delta))


def threshold(negative_scores: Floats, tau: float, delta: float) -> float:
    """The order statistic of the left-out negatives' scores to compare with; infinite when there are too few."""
    rank = order_statistic(negative_scores.size, tau, delta)
    return float(np.sort(negative_scores)[rank - 1]) if rank is not None else math.inf


def order_statistic(n: int, tau: float, delta: float) -> int | None:
    """The smallest rank k (1-based, ascending) with P(FPR of the k-th smallest of n as threshold > tau) <= delta.

    That probability is P(Binomial(n, 1 - tau) >= k). None when even k = n
    does not reach delta: n must be at least log(delta) / log(1 - tau).
    """
    if n == 0 or binomial_tail(n, n, 1 - tau) > delta:
        return None
    low, high = 1, n  # the tail falls with k, and holds at n
    while low < high:
        middle = (low + high) // 2
        if binomial_tail(middle, n, 1 - tau) <= delta:
            high = middle
        else:
            low = middle + 1
    return low


def _train(base: Base, x: NDArray[np.float64], y: Signs, c: float, g: float) -> Scorer:
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import SVC
    except ImportError:
        raise UsageError("NPROC needs scikit-learn; install it: pip install 'npstream[sklearn]'") from None
    model = LogisticRegression(C=c, max_iter=1000) if base == "log" else SVC(C=c, gamma=g, cache_size=200)
    fitted: Scorer = model.fit(x, y)
    return fitted
