"""What a label counts when only some observations are looked at: all alarms, and a random sample of the others.

The published decision of an observation that waits, or may be corrected, has a code: 1
or above is an alarm, by the tiers it reached, 0 none and its label came with it, -1 none and not in the sample, -2 and
below none but to be reviewed, one code for each share of reviews that was ever in
force. What was decided in warm-up is remembered as 9 minus its code, above every alarm.

A label counts 1 on an alarm and 1/p on a reviewed observation, p being the share when
it was decided. On any other it counts nothing in rates, threshold and budget: who
looked at it had a reason to.

The gradient of `plus` takes all labels: a reviewed non-target counts 1/p, at most 20,
everything else 1. Targets of the sample too: missed ones are reported by others as
well, and a mistaken verdict that counts twenty times drowns the few true ones. Where
observations without a label are learned as non-targets, those that the sample stands
for are learned from themselves, and a reviewed one counts 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Floats, Ints, Signs
from npstream.jit import jit_inline
from npstream.model.tier_rates import TIERS_MAX

CODES = 128
"""As many as an int8 has below zero."""
WARM = TIERS_MAX + 1
"""What was decided in warm-up is remembered as this minus its code."""
NEVER = -128
"""In place of a code: the model has not decided this observation, which began to wait before there was such a model,
or which it could not read."""
ALARMED, AT_ONCE, FIRST_REVIEWED = range(3)
"""Rows of `Sampling.labelled`: alarms; others whose label came with them; those reviewed, by minus their code."""
NON_TARGETS, TARGETS = range(2)
"""Its columns."""

Flags = NDArray[np.bool_]

GRADIENT_MAX = 20.0
"""Most that one non-target counts in the gradient."""


class Sampling(NamedTuple):
    """`weight` float64[CODES] of a label by minus its code, [1] for what is not in the sample.

    `labelled` int64[CODES, 2] counts labels of the sample. `pace` slows the threshold where one label counts much.
    `learned_max` is the most that a label counts in learning.
    """

    weight: Floats
    labelled: Ints
    pace: float
    learned_max: float


def no_sample() -> Sampling:
    """Every label counts one."""
    return Sampling(np.ones(CODES), np.zeros((CODES, 2), np.int64), 1.0, 1.0)


@jit_inline
def stored(code: int, warm: bool) -> int:
    """How a code is remembered; in warm-up there is no alarm, so that none of them is above 0."""
    return WARM - code if warm else code


@jit_inline
def is_warm(remembered: int) -> bool:
    """Whether it was decided in warm-up."""
    return remembered >= WARM


@jit_inline
def recalled(remembered: int) -> int:
    """The code that was stored."""
    return WARM - remembered if remembered >= WARM else remembered


def reviewed(remembered: Signs) -> Flags:
    """Which of these decisions asked for a review."""
    return np.where(remembered >= WARM, WARM - remembered, remembered) <= -FIRST_REVIEWED


@jit_inline
def weight_of(code: int, sampling: Sampling) -> float:
    """For how many a label counts, by the code of the published decision."""
    if code == 0:
        return 1.0
    return float(sampling.weight[ALARMED if code > 0 else -code])


@jit_inline
def count(code: int, y: int, number: int, sampling: Sampling) -> None:
    """A label of the sample comes (1) or is taken back (-1)."""
    if code == -1:
        return
    row = AT_ONCE if code == 0 else ALARMED if code > 0 else -code
    sampling.labelled[row, TARGETS if y > 0 else NON_TARGETS] += number
