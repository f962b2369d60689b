"""Rows that a model has to leave as they are: their features could not be read, or it has never decided them.

A challenger meets both: it may read other features than the champion, and observations
wait that were decided before it was there. Taking over it becomes the champion, and
still has to release them.
"""

import numpy as np

from npstream.arrays import Ints, Signs
from npstream.jit import jit, jit_inline
from npstream.model.operations import Operations, Outcome
from npstream.model.sampling import NEVER, recalled
from npstream.model.tiers import Gates, free_all

UNREAD = np.inf
"""In place of the first feature, or of a score, that could not be read: no event has such a number."""


@jit_inline
def is_unread(e: int, ops: Operations) -> bool:
    """Whether row e has features, or a score, that could not be read."""
    return bool((ops.x[e, 0] if ops.x.shape[1] else ops.score[e]) == UNREAD)


@jit_inline
def was_decided(remembered: int) -> bool:
    """Whether this model has decided the observation."""
    return remembered != NEVER


@jit
def pass_over(
    e: int, slot: int, frees: bool, waits: bool, decided: Signs, tally: Ints, gates: Gates, outcome: Outcome
) -> None:
    """Leave row e: with `frees` its alarm waits no longer, with `waits` it begins to wait, undecided."""
    if frees:
        free_all(recalled(decided[slot]), tally, gates)
    elif waits:
        decided[slot] = NEVER
    outcome.decision[e] = outcome.depth[e] = outcome.reason[e] = 0
    outcome.warm[e] = True
    outcome.score[e] = outcome.threshold[e] = outcome.gamma[e] = outcome.fpr[e] = 0.0
    outcome.t[e] = 0
