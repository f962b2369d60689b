"""Threshold, false-alarm budget, warm-up hold and counters: the gate between a score and a decision.

Needs nothing but scores, labels and decisions, whoever made them. State is two
small vectors, `level` (float64) and `tally` (int64), indexed by the names below.

The threshold q follows a quantile of scores just above 1 - tau by steps of its own
sign (online quantile tracking), in units of their mean absolute deviation. The
bucket J counts alarms against tau:

    J <- max(-C, J + 1{alarm} - tau)
    alarms are withheld unless J + E < C

`control` says of which events. With `fpr` it is the labelled negatives, when their
label comes: false alarms against tau per labelled negative. With `alarm_rate` it is
every observation, when it is decided: all alarms against tau per observation, E is
0, and no label is needed. On every window of n observations alarms <= tau n + 2C + 1,
and false alarms are alarms.

With `fpr`, E is what the O alarms without a label yet count. With `charge: issue` that is O.
With `charge: label` it is max(0, p O - tau U): p the share of false ones among all
labelled alarms, U the observations that wait for a label. Late labels report a burst
of false alarms only when it is over, and repaying it may take the rest of a stream: E
ends it early. It is 0 while no more alarms wait than tau explains, and always 0 when
labels come with their events.

On every window of n labelled negatives, with `fpr` and whatever the data and the model, false alarms
<= tau n + 2C + 1 (+ alarms on negatives issued and not yet labelled in label mode).

A label may be corrected. To a negative: it is charged then, and adds to the bound the alarms that were labelled
targets by mistake at any one time, in both modes. To a target: the charge is taken back as far as the bucket has not
forgotten it, so that the bound is of false alarms less those taken back, n being labels of negatives as they came.
"""

import math
from typing import NamedTuple

import numpy as np

from npstream.arrays import Floats, Ints
from npstream.jit import jit

# level: threshold, running mean and mean absolute deviation of the scores it follows, bucket, recent rates.
Q, CENTRE, SCALE, BUCKET, FPR, TPR = range(6)
LEVELS = 6
# tally: scores the threshold has seen, labelled events, errors, alarms without a label, alarms withheld,
# observations without a label.
TRACKED, NEGATIVES, POSITIVES, FALSE_ALARMS, DETECTIONS, OUTSTANDING, HELD, WITHHELD, WAITING = range(9)
TALLIES = 9

# Reasons, as published with a decision.
BY_SCORE, BY_WARMUP, BY_BUDGET = 0, 1, 2

# An overshoot of tau costs 1/tau in NP-score, an undershoot only a little power. The fewer false alarms tau allows,
# the more of an overshoot is chance: where tau is small, more is kept in reserve the less of the budget is unspent.
_TARGET, _RESERVE, _RESERVE_MAX = 0.97, 7e-4, 0.07
# Step in deviations, falling with n**-0.5 to a floor that keeps following drift. The fewer false alarms tau allows,
# the further each moves the threshold: the next one then comes later, and there is less of an overshoot.
_STEP, _STEP_FLOOR = 5.0, 0.05
_STEP_RARE, _STEP_RARE_MAX = 1.5e-4, 0.03
_SCALE_RATE, _SCALE_RATE_MAX = 0.002, 0.1
_WARMUP_MAX = 100
_TPR_RATE = 1.0 / 500.0


class Rule(NamedTuple):
    """What the gate enforces. `capacity` is C (infinite: no budget), `by_issue` 1.0 to count outstanding alarms.

    `by_alarm`: of all observations, not of labelled negatives.
    """

    tau: float
    capacity: float
    by_issue: float
    warmup: int
    by_alarm: bool


def rule_of(tau: float, budget: float, charge: str, control: str) -> Rule:
    """The rule of a tracked threshold: no alarm before it has seen min(1/tau, 100) scores."""
    warmup = math.ceil(min(1.0 / tau, _WARMUP_MAX))
    return Rule(tau, budget, 1.0 if charge == "issue" else 0.0, warmup, control == "alarm_rate")


UNGATED_CAPACITY = math.inf


def ungated(tau: float) -> Rule:
    """The rule of a fixed threshold: every score above it is an alarm, counters only."""
    return Rule(tau, UNGATED_CAPACITY, 0.0, 0, False)


@jit
def judge(score: float, rule: Rule, level: Floats, tally: Ints) -> tuple[int, int]:
    """The decision (1 or -1) on a score and its reason. Changes nothing."""
    if not score > level[Q]:
        return -1, BY_SCORE
    if tally[TRACKED] < rule.warmup:
        return -1, BY_WARMUP
    if not charged(rule, level, tally) < rule.capacity:
        return -1, BY_BUDGET
    return 1, BY_SCORE


@jit
def charged(rule: Rule, level: Floats, tally: Ints) -> float:
    """The bucket, and what outstanding alarms count in it."""
    if rule.by_alarm:
        return float(level[BUCKET])
    outstanding = float(tally[OUTSTANDING])
    if rule.by_issue == 0.0:
        # One labelled alarm of each kind is assumed: nothing is known at first.
        share = (tally[FALSE_ALARMS] + 1.0) / (tally[FALSE_ALARMS] + tally[DETECTIONS] + 2.0)
        outstanding = max(0.0, share * outstanding - rule.tau * tally[WAITING])
    return float(level[BUCKET] + outstanding)


@jit
def note_issue(reason: int, tally: Ints) -> None:
    """Count an alarm that was withheld."""
    if reason == BY_WARMUP:
        tally[HELD] += 1
    elif reason == BY_BUDGET:
        tally[WITHHELD] += 1


@jit
def park(decision: int, tally: Ints) -> None:
    """A decided observation begins to wait for its label."""
    tally[WAITING] += 1
    tally[OUTSTANDING] += 1 if decision > 0 else 0


@jit
def free(decision: int, tally: Ints) -> None:
    """It waits no longer."""
    tally[WAITING] -= 1
    tally[OUTSTANDING] -= 1 if decision > 0 else 0


@jit
def settle(y: int, decision: int, weight: float, rule: Rule, level: Floats, tally: Ints) -> None:
    """A label came: count it and, where labels do, charge the bucket with the published decision.

    `weight` is for how many like it the label counts in recent rates and bucket (see `sampling`).
    """
    alarm = 1.0 if decision > 0 else 0.0
    if y > 0:
        tally[POSITIVES] += 1
        tally[DETECTIONS] += np.int64(alarm)
        level[TPR] += min(max(1.0 / tally[POSITIVES], _TPR_RATE) * weight, 1.0) * (alarm - level[TPR])
    else:
        tally[NEGATIVES] += 1
        tally[FALSE_ALARMS] += np.int64(alarm)
        level[FPR] += min(max(1.0 / tally[NEGATIVES], 0.05 * rule.tau) * weight, 1.0) * (alarm - level[FPR])
        if not rule.by_alarm:
            charge(alarm, weight, rule, level)


@jit
def withdraw(y: int, decision: int, weight: float, rule: Rule, level: Floats, tally: Ints) -> None:
    """A label was wrong: take back its count and its charge. Recent rates go on by the new label alone."""
    alarm = 1.0 if decision > 0 else 0.0
    if y > 0:
        tally[POSITIVES] -= 1
        tally[DETECTIONS] -= np.int64(alarm)
    else:
        tally[NEGATIVES] -= 1
        tally[FALSE_ALARMS] -= np.int64(alarm)
        if not rule.by_alarm:
            level[BUCKET] = max(-rule.capacity, level[BUCKET] - weight * alarm + weight * rule.tau)


@jit
def charge(alarm: float, weight: float, rule: Rule, level: Floats) -> None:
    """One event that counts, with an alarm (1.0) or without."""
    level[BUCKET] = max(-rule.capacity, level[BUCKET] + weight * alarm - weight * rule.tau)


@jit
def track(score: float, weight: float, pace: float, rule: Rule, level: Floats, tally: Ints) -> None:
    """Move the threshold by one score, taken before the model learned from its event.

    With a weight it moves as by so many scores, at a pace at which one label of the review sample moves it down by
    no more than one step. Up it moves by one step at most: a score that was below the threshold when it was decided
    and is above it now would otherwise throw it out of sight. In warm-up there are no alarms, and all of the sample
    weigh the same.

    A budget that withholds alarms hides how many scores are above the threshold: without an alarm nobody looks, and
    what is left of the alarms is just what tau allows. So the fuller the bucket, the less the sample lowers the
    threshold; it then rises until no alarm is withheld.
    """
    tally[TRACKED] += 1
    n = tally[TRACKED]
    rate = min(max(1.0 / n, _SCALE_RATE) * weight, max(1.0 / n, _SCALE_RATE_MAX))
    level[CENTRE] += rate * (score - level[CENTRE])
    level[SCALE] += rate * (abs(score - level[CENTRE]) - level[SCALE])
    if n == 1:
        # Scores may live anywhere: the first one says where.
        level[Q] = score
        return
    above = 1.0 if score > level[Q] else 0.0
    floor = _STEP_FLOOR + min(_STEP_RARE / rule.tau, _STEP_RARE_MAX)
    step = _STEP * level[SCALE] * max(1.0 / math.sqrt(n), floor)
    unspent = min(max(-level[BUCKET] / rule.capacity, 0.0), 1.0)
    target = _TARGET - min(_RESERVE / rule.tau, _RESERVE_MAX) * (1.0 - unspent)
    steps = 1.0 if n <= rule.warmup or (weight > 1.0 and above > 0.0) else weight / pace
    if weight > 1.0 and above == 0.0:
        steps *= min(max(1.0 - level[BUCKET] / rule.capacity, 0.0), 1.0)
    level[Q] += step * steps * (above - target * rule.tau)
