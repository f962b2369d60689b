"""How far scores were from their threshold when labels were learned: what a ROC of a replay is drawn from."""

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Floats, Signs
from npstream.model import Op, Operations, Outcome

KEPT_MAX = 200_000
"""Labels kept of a partition. When there are more, every second goes, and of later ones as many are left out."""


class Margins:
    """Score less threshold of labelled observations, and their labels: all of them, or every n-th."""

    def __init__(self) -> None:
        self._margin, self._y = np.empty(0), np.empty(0, np.int8)
        self._stride, self._seen = 1, 0

    def note(self, operations: Operations, outcome: Outcome) -> None:
        """Take what a batch learned; corrections of labels are left out."""
        rows = np.flatnonzero((operations.code == Op.LEARN) | (operations.code == Op.SCORE_LEARN))
        first = -self._seen % self._stride
        self._seen += rows.size
        taken = rows[first :: self._stride]
        self._margin = np.concatenate([self._margin, outcome.score[taken] - outcome.threshold[taken]])
        self._y = np.concatenate([self._y, operations.y[taken]])
        while self._y.size > KEPT_MAX:
            self._stride *= 2
            self._margin, self._y = self._margin[::2], self._y[::2]

    @property
    def kept(self) -> tuple[Floats, Signs]:
        """Margins and labels, in the order in which they were learned."""
        return self._margin, self._y


def roc(margin: Floats, y: Signs, fprs: Floats) -> tuple[Floats, Floats]:
    """FPR and TPR if the threshold had been another by a constant: one that lets about these shares of negatives pass.

    Empty without labels of both classes.
    """
    negatives, positives = np.sort(margin[y < 0]), np.sort(margin[y > 0])
    if not negatives.size or not positives.size:
        return np.empty(0), np.empty(0)
    at: NDArray[np.int64] = np.unique(np.round(fprs * negatives.size).astype(np.int64).clip(0, negatives.size))
    # With so many negatives above it; the lowest threshold that does it.
    edges = np.concatenate([negatives[::-1], [-np.inf]])[at]
    fpr = 1.0 - np.searchsorted(negatives, edges, side="right") / negatives.size
    tpr = 1.0 - np.searchsorted(positives, edges, side="right") / positives.size
    return fpr, tpr
