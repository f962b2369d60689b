"""What a model is asked for, row by row, and what it finds: the columns of one compiled call."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats, Ints, Signs


class Operations(NamedTuple):
    """Operations in order, one row each.

    `code` int8[n] of `Op`; `x` float32[n, d] features, NaN where one is missing,
    a category as a whole number from 0 to 2**24 - 1; `score` float64[n] for preset
    external (else unused); `y` int8[n], 1 or -1 where the operation learns, for SCORE
    the code it gets without an alarm, where it is in the review sample (see
    `sampling`), else 0; `slot` int32[n] place of a waiting observation or -1. Where features could not be read the
    first is infinite, as is a score.
    """

    code: Signs
    x: npt.NDArray[np.float32]
    score: Floats
    y: Signs
    slot: npt.NDArray[np.int32]


class Outcome(NamedTuple):
    """What each operation found, before it learned; one entry per row.

    `decision` is 1 or -1 (0 for RELEASE), for LEARN and CORRECT the published one;
    `depth` how many tiers it reached, the widest first. `score` and `reason` of such
    a row are the current model's. `threshold` (of the widest tier), `gamma`, `fpr` (recent
    estimate) and `t` (events learned so far) are those decided with. `column` int32[n, k]
    are the k columns that moved the score of an alarm most, -1 for none, and
    `contribution` float64[n, k] how far each moved it. `warm` is whether it was decided in warm-up, or by nobody. A row
    that was passed over is warm, and all else of it zero.
    """

    decision: Signs
    reason: Signs
    score: Floats
    threshold: Floats
    gamma: Floats
    fpr: Floats
    t: Ints
    depth: Signs
    column: npt.NDArray[np.int32]
    contribution: Floats
    warm: Signs
