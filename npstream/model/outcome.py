"""What a model is asked to do with each row of a batch, and what it answers."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from npstream.model import kernel
from npstream.model import threshold as gate
from npstream.model.threshold import Floats, Ints


class Op(IntEnum):
    """What to do with one row of a batch."""

    SCORE = kernel.SCORE
    """Score and decide; the observation waits for its label (`slot`)."""
    SCORE_LEARN = kernel.SCORE_LEARN
    """Score and decide, then learn from the label that came along."""
    LEARN = kernel.LEARN
    """The label of an observation decided earlier: score it anew, learn."""
    RELEASE = kernel.RELEASE
    """An observation will never get a label: its alarm is no longer outstanding."""


class Reason(IntEnum):
    """Why a decision is what it is."""

    SCORE = gate.BY_SCORE
    WARMUP = gate.BY_WARMUP
    BUDGET = gate.BY_BUDGET
    INVALID = 3
    """Never made here: for events that could not be decoded."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What each row of a batch found, before it learned; one entry per row.

    `decision` is 1 or -1 (0 for RELEASE), for LEARN the published one. `score`
    and `reason` of a LEARN row are the current model's. `threshold`, `gamma`,
    `fpr` (recent estimate) and `t` (events learned so far) are those decided with.
    """

    decision: npt.NDArray[np.int8]
    reason: npt.NDArray[np.int8]
    score: Floats
    threshold: Floats
    gamma: Floats
    fpr: Floats
    t: Ints


def empty_rows(n: int) -> kernel.Rows:
    """Room for the answers of n operations."""
    return kernel.Rows(
        decision=np.empty(n, np.int8),
        reason=np.empty(n, np.int8),
        score=np.empty(n, np.float64),
        threshold=np.empty(n, np.float64),
        gamma=np.empty(n, np.float64),
        fpr=np.empty(n, np.float64),
        t=np.empty(n, np.int64),
    )
