"""A batch of decisions as columns: what every format of decisions is written from."""

from collections.abc import Collection, Sequence
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
    tau: float
    model: str
    reviewed: Collection[int] = ()
    review: float = 0.0
    tiers: Sequence[str] = ()
