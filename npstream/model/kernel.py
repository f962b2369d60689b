"""The event loop: one compiled call runs a sequence of operations over one model's state.

Score precedes learning, scoring changes nothing that was learned, and one event
follows another, so that any split of a sequence into calls gives the same bytes.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats, Ints
from npstream.jit import jit, jit_inline
from npstream.model.generator import uniform
from npstream.model.maths import exp
from npstream.model.network import GAMMA, PRIOR, Network, Scratch, adagrad_step, forward, sgd_step
from npstream.model.scaler import absorb, standardise, to_unit_norm, widen
from npstream.model.threshold import FPR, OUTSTANDING, Q, Rule, judge, note_issue, settle, track

Bytes = npt.NDArray[np.int8]

# Operations. PEEK scores and decides without any bookkeeping.
SCORE, SCORE_LEARN, LEARN, RELEASE, PEEK = range(5)
# Presets and input transforms as numbers.
PLUS, PAPER, EXTERNAL = range(3)
RAW, UNIT, ZSCORE = range(3)
# clock: learned negatives and targets, write position and hits of the window, draws taken, stream number.
LEARNED_NEG, LEARNED_POS, WINDOW_AT, WINDOW_HITS, DRAWS, STREAM = range(6)
CLOCKS = 6

# Share of targets: forgets over about 1,000 events.
_PRIOR_RATE = 1e-3
_MU_MAX = 20.0
_GAMMA_MIN, _GAMMA_MAX = 0.05, 50.0
# The paper bounds neither; these only keep numbers finite for ever.
_PAPER_MU_MAX = 1e6
_PAPER_GAMMA_MIN, _PAPER_GAMMA_MAX = 1e-6, 1e6


class KernelParams(NamedTuple):
    """The parameters as the kernel reads them.

    `scale` is the paper's 1/sqrt(D) of eq. 9, or 1; `eta_alpha` the rate of the directions under Adagrad.
    """

    preset: int
    input: int
    scale: float
    eta: float
    eta_alpha: float
    beta: float
    lam: float
    stochastic: bool
    one_class: bool
    learning: bool
    key: np.uint64


class Scaler(NamedTuple):
    """Moments and range of the features (see `scaler`); empty where unused."""

    mean: Floats
    var: Floats
    inv_sd: Floats
    low: Floats
    high: Floats


class ModelState(NamedTuple):
    """All that a model knows."""

    level: Floats
    tally: Ints
    clock: Ints
    window: npt.NDArray[np.uint8]
    net: Network
    scaler: Scaler


class Operations(NamedTuple):
    """Operations in order, one row each.

    `code` int8[n] of `Op`; `x` float32[n, d] features; `score` float64[n] for
    preset external (else unused); `y` int8[n], 1 or -1 where the operation
    learns; `slot` int32[n] place of a waiting observation or -1.
    """

    code: Bytes
    x: npt.NDArray[np.float32]
    score: Floats
    y: Bytes
    slot: npt.NDArray[np.int32]


class Outcome(NamedTuple):
    """What each operation found, before it learned; one entry per row.

    `decision` is 1 or -1 (0 for RELEASE), for LEARN the published one. `score`
    and `reason` of a LEARN row are the current model's. `threshold`, `gamma`,
    `fpr` (recent estimate) and `t` (events learned so far) are those decided with.
    """

    decision: Bytes
    reason: Bytes
    score: Floats
    threshold: Floats
    gamma: Floats
    fpr: Floats
    t: Ints


@jit
def run(
    ops: Operations,
    decided: Bytes,
    params: KernelParams,
    rule: Rule,
    state: ModelState,
    work: Scratch,
    outcome: Outcome,
) -> None:
    """Run every operation in order, changing `decided`, `state` and `outcome` in place."""
    level, tally, clock = state.level, state.tally, state.clock
    for e in range(ops.code.size):
        op = ops.code[e]
        slot = ops.slot[e]
        f = 0.0
        decision, reason = 0, 0
        if op == RELEASE:
            _free(decided[slot], tally)
        else:
            f = _score(ops, e, params, state, work)
            decision, reason = judge(f, rule, level, tally)
        if op == LEARN and slot >= 0:
            decision = decided[slot]
        outcome.decision[e] = decision
        outcome.reason[e] = reason
        outcome.score[e] = f
        outcome.threshold[e] = level[Q]
        outcome.gamma[e] = state.net.head[GAMMA]
        outcome.fpr[e] = level[FPR]
        outcome.t[e] = clock[LEARNED_NEG] + clock[LEARNED_POS]
        if op == SCORE:
            note_issue(reason, tally)
            if slot >= 0:
                decided[slot] = decision
                if decision > 0:
                    tally[OUTSTANDING] += 1
        elif op == SCORE_LEARN:
            note_issue(reason, tally)
            _label(f, ops.y[e], decision, params, rule, state, work)
        elif op == LEARN:
            if slot >= 0:
                _free(decision, tally)
            _label(f, ops.y[e], decision, params, rule, state, work)


@jit_inline
def _free(decision: int, tally: Ints) -> None:
    """An alarm is no longer waiting for its label."""
    if decision > 0:
        tally[OUTSTANDING] -= 1


@jit_inline
def _score(ops: Operations, e: int, params: KernelParams, state: ModelState, work: Scratch) -> float:
    """The score of row e: given, or that of its features."""
    if params.preset == EXTERNAL:
        return float(ops.score[e])
    x = work.x
    for i in range(x.size):
        x[i] = ops.x[e, i]
    return _score_features(params, state, work)


@jit_inline
def _score_features(params: KernelParams, state: ModelState, work: Scratch) -> float:
    """The network's score of work.x; leaves the transformed features in work.z."""
    if params.input == ZSCORE:
        standardise(work.x, state.scaler.mean, state.scaler.inv_sd, work.z)
    elif params.input == UNIT:
        to_unit_norm(work.x, work.z)
    else:
        for i in range(work.z.size):
            work.z[i] = work.x[i]
    return forward(state.net, params.scale, work)


@jit_inline
def _label(f: float, y: int, decision: int, params: KernelParams, rule: Rule, state: ModelState, work: Scratch) -> None:
    """Account for a label, then learn from it unless the model is frozen."""
    settle(y, decision, rule, state.level, state.tally)
    if not params.learning:
        return
    clock = state.clock
    clock[LEARNED_POS if y > 0 else LEARNED_NEG] += 1
    if params.preset != EXTERNAL:
        _learn(f, y, params, rule.tau, state, work)
    if y < 0 and params.preset != PAPER:
        track(f, rule.tau, state.level, state.tally)


@jit_inline
def _learn(f: float, y: int, params: KernelParams, tau: float, state: ModelState, work: Scratch) -> None:
    """Network, multiplier and scaler, in that order; then the drawn target of one-class mode."""
    _descend(f, y, params, state, work)
    if params.stochastic:
        _move_gamma_stochastic(f, y, params, tau, state)
    elif y < 0:
        _move_gamma(f, params, tau, state)
    scaler = state.scaler
    t = state.clock[LEARNED_NEG] + state.clock[LEARNED_POS]
    widen(work.x, t, scaler.mean, scaler.inv_sd, scaler.low, scaler.high)
    absorb(work.x, t, scaler.mean, scaler.var, scaler.inv_sd)
    if params.one_class and y < 0:
        _draw_target(params, state, work)
        _descend(_score_features(params, state, work), 1, params, state, work)


@jit_inline
def _draw_target(params: KernelParams, state: ModelState, work: Scratch) -> None:
    """A target from the uniform density over the running feature range (the minimum-volume-set case)."""
    scaler, clock = state.scaler, state.clock
    for i in range(work.x.size):
        share = uniform(params.key, clock[DRAWS])
        clock[DRAWS] += 1
        work.x[i] = scaler.low[i] + share * (scaler.high[i] - scaler.low[i])


@jit_inline
def _descend(f: float, y: int, params: KernelParams, state: ModelState, work: Scratch) -> None:
    """One step of the network on the weighted loss of this event."""
    if params.preset == PLUS:
        mu = _weight(y, params, state)
        # Logistic loss: unlike the sigmoid it keeps its slope on confidently wrong scores.
        g = -y * mu / (1.0 + exp(y * f))
        adagrad_step(state.net, g, params.eta, params.eta_alpha, work)
    else:
        mu = _paper_weight(y, params, state)
        # l^2(m) exp(m) of eqs. 14-16, written so that it cannot overflow.
        decay = exp(-abs(f))
        g = -y * mu * decay / ((1.0 + decay) * (1.0 + decay))
        sgd_step(state.net, g, params.scale, params.eta * _fading(params, state.clock), params.lam, work)


@jit_inline
def _weight(y: int, params: KernelParams, state: ModelState) -> float:
    """mu of eq. 13 with a forgetful share of targets; one-class targets are half of what is learned."""
    head = state.net.head
    if not params.one_class:
        head[PRIOR] += _PRIOR_RATE * ((1.0 if y > 0 else 0.0) - head[PRIOR])
    mu = 1.0 / head[PRIOR] if y > 0 else head[GAMMA] / (1.0 - head[PRIOR])
    return float(min(mu, _MU_MAX))


@jit_inline
def _paper_weight(y: int, params: KernelParams, state: ModelState) -> float:
    """mu of eq. 13 (Algorithm 1, line 8); the classes of one-class mode are balanced by construction."""
    clock, gamma = state.clock, state.net.head[GAMMA]
    t = clock[LEARNED_NEG] + clock[LEARNED_POS]
    cost = 1.0 if y > 0 else gamma
    share = 2.0 if params.one_class else t / clock[LEARNED_POS if y > 0 else LEARNED_NEG]
    return float(min(cost * share, _PAPER_MU_MAX))


@jit_inline
def _fading(params: KernelParams, clock: Ints) -> float:
    """(1 + lambda (t - 1))^-1 of Algorithm 1, line 13."""
    return float(1.0 / (1.0 + params.lam * (clock[LEARNED_NEG] + clock[LEARNED_POS] - 1)))


@jit_inline
def _move_gamma(f: float, params: KernelParams, tau: float, state: ModelState) -> None:
    """gamma (1 + beta (P_fa - tau)), P_fa the share of f > 0 among the last W negatives (eq. 17)."""
    clock, window, head = state.clock, state.window, state.net.head
    at = clock[WINDOW_AT]
    hit = np.uint8(1) if f > 0.0 else np.uint8(0)
    clock[WINDOW_HITS] += np.int64(hit) - np.int64(window[at])
    window[at] = hit
    clock[WINDOW_AT] = (at + 1) % window.size
    share = clock[WINDOW_HITS] / min(clock[LEARNED_NEG], window.size)
    head[GAMMA] = _clamp(head[GAMMA] * (1.0 + params.beta * _fading(params, clock) * (share - tau)), params.preset)


@jit_inline
def _move_gamma_stochastic(f: float, y: int, params: KernelParams, tau: float, state: ModelState) -> None:
    """gamma + beta (1{y = -1} t/n- l(y f) - tau): the additive form of section IV."""
    clock, head = state.clock, state.net.head
    error = 0.0
    if y < 0:
        error = (clock[LEARNED_NEG] + clock[LEARNED_POS]) / clock[LEARNED_NEG] / (1.0 + exp(-f))
    head[GAMMA] = _clamp(head[GAMMA] + params.beta * _fading(params, clock) * (error - tau), params.preset)


@jit_inline
def _clamp(gamma: float, preset: int) -> float:
    if preset == PLUS:
        return min(max(gamma, _GAMMA_MIN), _GAMMA_MAX)
    return min(max(gamma, _PAPER_GAMMA_MIN), _PAPER_GAMMA_MAX)
