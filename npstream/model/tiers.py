"""Several rates from one score: the gate of the largest rate, and one for each stricter tier behind it.

Each tier has a threshold, a bucket, counters and rates of its own, kept by the
functions of `threshold` in rows as theirs are. How far a score comes is its depth:
0 is no alarm, 1 an alarm of the widest tier, 2 one of the next as well, and so on.

A tier is asked only about what the wider ones let pass, and after each move the
threshold of a stricter tier is at least that of the next wider one: thresholds
never cross, whatever the scores. What a tier lets pass it charges itself, so that
the bound of `threshold` holds for each of them at its own rate.
"""

from typing import NamedTuple

import numpy as np

from npstream.arrays import Floats, Ints
from npstream.jit import jit, jit_inline
from npstream.model.threshold import (
    BY_SCORE,
    DETECTIONS,
    FALSE_ALARMS,
    FPR,
    HELD,
    LEVELS,
    NEGATIVES,
    OUTSTANDING,
    POSITIVES,
    TALLIES,
    TPR,
    WITHHELD,
    Q,
    Rule,
    charge,
    charged,
    free,
    judge,
    note_issue,
    park,
    rule_of,
    settle,
    track,
    withdraw,
)
from npstream.records import Tier


class Stricter(NamedTuple):
    """The tiers behind the widest one, from wide to strict: float64[n] rates and int64[n] scores before an alarm."""

    tau: Floats
    warmup: Ints


class Gates(NamedTuple):
    """Their state: `level` float64[n, 6] and `tally` int64[n, 9], rows as `threshold` has them.

    `alarms` int64[n + 1] counts those of every tier, the widest first; empty without tiers.
    """

    level: Floats
    tally: Ints
    alarms: Ints


def tier_of(name: str, alarms: int, rule: Rule, level: Floats, tally: Ints) -> Tier:
    """A row of state in words."""
    return Tier(
        name=name,
        rate=float(rule.tau),
        threshold=float(level[Q]),
        budget_left=float(rule.capacity - charged(rule, level, tally)),
        fpr=float(level[FPR]),
        tpr=float(level[TPR]),
        alarms=alarms,
        negatives=int(tally[NEGATIVES]),
        positives=int(tally[POSITIVES]),
        false_alarms=int(tally[FALSE_ALARMS]),
        detections=int(tally[DETECTIONS]),
        outstanding=int(tally[OUTSTANDING]),
        held=int(tally[HELD]),
        withheld=int(tally[WITHHELD]),
    )


def stricter(rates: tuple[float, ...]) -> Stricter:
    """The tiers of these rates, given from wide to strict."""
    warmups = [rule_of(tau, 1.0, "label", "fpr").warmup for tau in rates]
    return Stricter(np.array(rates, np.float64), np.array(warmups, np.int64))


def new_gates(tiers: int) -> Gates:
    """The state of so many tiers, of which the widest has its row elsewhere, before the first event."""
    n = max(tiers - 1, 0)
    return Gates(np.zeros((n, LEVELS)), np.zeros((n, TALLIES), np.int64), np.zeros(tiers, np.int64))


@jit
def rule_at(k: int, rule: Rule, strict: Stricter) -> Rule:
    """The rule of a stricter tier: that of the widest at its own rate."""
    return Rule(strict.tau[k], rule.capacity, rule.by_issue, strict.warmup[k], rule.by_alarm)


# The widest tier is done in the event loop itself; the loops over others are functions of their own, so that a model
# without tiers pays for a comparison and not for their code.


@jit_inline
def reach(score: float, rule: Rule, strict: Stricter, level: Floats, tally: Ints, gates: Gates) -> tuple[int, int]:
    """The depth of a score, and why it came no deeper. Changes nothing."""
    decision, reason = judge(score, rule, level, tally)
    if decision < 0:
        return 0, reason
    return (1, BY_SCORE) if strict.tau.size == 0 else _reach_stricter(score, rule, strict, gates)


@jit
def _reach_stricter(score: float, rule: Rule, strict: Stricter, gates: Gates) -> tuple[int, int]:
    for k in range(strict.tau.size):
        decision, reason = judge(score, rule_at(k, rule, strict), gates.level[k], gates.tally[k])
        if decision < 0:
            return k + 1, reason
    return strict.tau.size + 1, BY_SCORE


@jit_inline
def note_issues(depth: int, reason: int, tally: Ints, gates: Gates) -> None:
    """Count an alarm, or that a tier withheld it."""
    if depth == 0:
        note_issue(reason, tally)
    elif gates.alarms.size > 0:
        _note_stricter(depth, reason, gates)


@jit
def _note_stricter(depth: int, reason: int, gates: Gates) -> None:
    for k in range(depth):
        gates.alarms[k] += 1
    if depth <= len(gates.tally):
        note_issue(reason, gates.tally[depth - 1])


@jit_inline
def park_all(depth: int, tally: Ints, gates: Gates) -> None:
    """A decided observation begins to wait for its label."""
    park(depth, tally)
    if gates.alarms.size > 0:
        _park_stricter(depth, gates)


@jit
def _park_stricter(depth: int, gates: Gates) -> None:
    for k in range(len(gates.tally)):
        park(depth - 1 - k, gates.tally[k])


@jit_inline
def free_all(depth: int, tally: Ints, gates: Gates) -> None:
    """It waits no longer."""
    free(depth, tally)
    if gates.alarms.size > 0:
        _free_stricter(depth, gates)


@jit
def _free_stricter(depth: int, gates: Gates) -> None:
    for k in range(len(gates.tally)):
        free(depth - 1 - k, gates.tally[k])


@jit_inline
def settle_all(
    y: int, depth: int, weight: float, rule: Rule, strict: Stricter, level: Floats, tally: Ints, gates: Gates
) -> None:
    """A label came: each tier counts it, with what was published."""
    settle(y, depth, weight, rule, level, tally)
    if strict.tau.size > 0:
        _settle_stricter(y, depth, weight, rule, strict, gates)


@jit
def _settle_stricter(y: int, depth: int, weight: float, rule: Rule, strict: Stricter, gates: Gates) -> None:
    for k in range(strict.tau.size):
        settle(y, depth - 1 - k, weight, rule_at(k, rule, strict), gates.level[k], gates.tally[k])


@jit_inline
def withdraw_all(
    y: int, depth: int, weight: float, rule: Rule, strict: Stricter, level: Floats, tally: Ints, gates: Gates
) -> None:
    """A label was wrong: each tier takes back what it counted."""
    withdraw(y, depth, weight, rule, level, tally)
    if strict.tau.size > 0:
        _withdraw_stricter(y, depth, weight, rule, strict, gates)


@jit
def _withdraw_stricter(y: int, depth: int, weight: float, rule: Rule, strict: Stricter, gates: Gates) -> None:
    for k in range(strict.tau.size):
        withdraw(y, depth - 1 - k, weight, rule_at(k, rule, strict), gates.level[k], gates.tally[k])


@jit_inline
def charge_all(depth: int, rule: Rule, strict: Stricter, level: Floats, gates: Gates) -> None:
    """Control alarm_rate: an observation was decided."""
    charge(1.0 if depth > 0 else 0.0, 1.0, rule, level)
    if strict.tau.size > 0:
        _charge_stricter(depth, rule, strict, gates)


@jit
def _charge_stricter(depth: int, rule: Rule, strict: Stricter, gates: Gates) -> None:
    for k in range(strict.tau.size):
        charge(1.0 if depth > k + 1 else 0.0, 1.0, rule_at(k, rule, strict), gates.level[k])


@jit_inline
def track_all(
    score: float, weight: float, pace: float, rule: Rule, strict: Stricter, level: Floats, tally: Ints, gates: Gates
) -> None:
    """Move all thresholds by one score, and keep them in order."""
    track(score, weight, pace, rule, level, tally)
    if strict.tau.size > 0:
        _track_stricter(score, weight, pace, level[Q], rule, strict, gates)


@jit
def _track_stricter(
    score: float, weight: float, pace: float, wider: float, rule: Rule, strict: Stricter, gates: Gates
) -> None:
    """None falls below the threshold of the wider one. The review sample slows each by its own rate."""
    for k in range(strict.tau.size):
        own = rule_at(k, rule, strict)
        track(score, weight, max(1.0, pace * own.tau / rule.tau), own, gates.level[k], gates.tally[k])
        wider = max(wider, gates.level[k, Q])
        gates.level[k, Q] = wider
