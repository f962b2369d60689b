"""What a model can be asked to do with each row of a batch, and why it decides as it does."""

from enum import IntEnum

import numpy as np

from npstream.model import kernel
from npstream.model import threshold as gate
from npstream.model.operations import Outcome


class Op(IntEnum):
    """What to do with one row of a batch."""

    SCORE = kernel.SCORE
    """Score and decide; the observation waits for its label (`slot`)."""
    SCORE_LEARN = kernel.SCORE_LEARN
    """Score and decide, then learn from the label that came along."""
    LEARN = kernel.LEARN
    """The label of an observation decided earlier: score it again, learn."""
    RELEASE = kernel.RELEASE
    """An observation will never get a label: its alarm is no longer outstanding."""
    CORRECT = kernel.CORRECT
    """The other label for an observation that has one: what that counted is taken back, the new one learned."""


class Reason(IntEnum):
    """Why a decision is what it is."""

    SCORE = gate.BY_SCORE
    WARMUP = gate.BY_WARMUP
    BUDGET = gate.BY_BUDGET
    INVALID = 3
    """Never made here: for events that could not be decoded."""


def empty_outcome(n: int, reasons: int = 0) -> Outcome:
    """Room for what n operations find, and for so many reasons of each alarm."""
    return Outcome(
        decision=np.empty(n, np.int8),
        reason=np.empty(n, np.int8),
        score=np.empty(n, np.float64),
        threshold=np.empty(n, np.float64),
        gamma=np.empty(n, np.float64),
        fpr=np.empty(n, np.float64),
        t=np.empty(n, np.int64),
        depth=np.empty(n, np.int8),
        column=np.full((n, reasons), -1, np.int32),
        contribution=np.zeros((n, reasons)),
        warm=np.empty(n, np.int8),
    )
