"""Numbers deleted from a stream, and what can be put in their place.

A value of a non-target is deleted with probability `share`, one of a target with
probability `share` times `target_factor`: with factor 1 completely at random, with
factor 2 a gap by itself speaks for a target. Each value has its own draw, the same
for every share and factor, so that what is gone at 5% is also gone at 30%.
"""

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Features, Floats, Ints, Signs


def delete(x: Features, y: Signs, numbers: int, share: float, target_factor: float, seed: int) -> Features:
    """A copy with NaN in some of the first `numbers` columns."""
    draw = np.random.default_rng([seed, 0xD317]).random((len(x), numbers))
    gone = draw < (share * np.where(y == 1, target_factor, 1.0))[:, None]
    with_gaps = x.copy()
    with_gaps[:, :numbers][gone] = np.nan
    return with_gaps


def fill(x: Features, numbers: int) -> Features:
    """Gaps in the first `numbers` columns replaced by the mean of the values in the rows above, 0 where there are none.

    What a user does who must send a number and cannot know the future.
    """
    filled = x.copy()
    front = filled[:, :numbers]
    gap = np.isnan(front)
    front[gap] = _means_above(np.where(gap, 0.0, front), ~gap)[gap]
    return filled


def fill_and_flag(x: Features, numbers: int) -> Features:
    """`fill`, and before it `numbers` columns that are 1 where a value was missing: the careful user."""
    return np.column_stack([np.isnan(x[:, :numbers]).astype(np.float32), fill(x, numbers)])


def _means_above(values: Features, there: NDArray[np.bool_]) -> Floats:
    """`values` are 0 where they are not `there`; the row itself does not count."""
    total = np.cumsum(values, axis=0, dtype=np.float64) - values
    count: Ints = np.cumsum(there, axis=0) - there
    means: Floats = total / np.maximum(count, 1)
    return means
