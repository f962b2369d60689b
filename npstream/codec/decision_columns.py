"""A batch of decisions as columns: what every format of decisions is written from."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Floats, Ints, Signs
from npstream.codec.event import EventId


class DecisionColumns(NamedTuple):
    """Decisions under the same parameters; all columns are [n].

    `reason` is the model's number for it. NaN and infinity are published as null.
    The rows in `reviewed` ask for a review, which they do with probability `review`.
    An alarm of depth n has reached the first n of `tiers`, the last of which it names.
    Its reasons are the features `column` int32[n, k] (of those in `features`; -1: no more)
    and how far each moved the score, `contribution` float64[n, k].
    """

    ids: Sequence[EventId]
    decision: Signs
    reason: NDArray[np.int8]
    score: Floats
    threshold: Floats
    gamma: Floats
    fpr: Floats
    t: Ints
    depth: NDArray[np.int8]
    column: NDArray[np.int32]
    contribution: Floats
    tau: float
    model: str
    reviewed: Collection[int] = ()
    review: float = 0.0
    tiers: Sequence[str] = ()
    features: Sequence[str] = ()

    def reasons(self) -> Iterator[tuple[int, list[tuple[str, float]]]]:
        """The rows that have reasons: the features that moved the score most, the farthest first, and how far."""
        if self.column.shape[1] == 0:
            return
        rows = np.flatnonzero(self.column[:, 0] >= 0)
        found = zip(rows.tolist(), self.column[rows].tolist(), self.contribution[rows].tolist(), strict=True)
        for row, columns, moved in found:
            pairs = zip(columns, moved, strict=True)
            yield row, [(self.features[column], contribution) for column, contribution in pairs if column >= 0]
