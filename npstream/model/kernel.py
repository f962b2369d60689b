"""The event loop: one compiled call runs a sequence of operations over one model's state.

Score precedes learning, scoring changes nothing that was learned, and one event
follows another, so that any split of a sequence into calls gives the same bytes.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats, Ints, Signs
from npstream.jit import jit, jit_inline
from npstream.model.account import OF_ALL, Account, note_all, row_of, take_back_all
from npstream.model.columns import CODES, ColumnKinds
from npstream.model.contributions import Parts, contribute, take_largest
from npstream.model.generator import uniform
from npstream.model.maths import exp
from npstream.model.network import BIAS, GAMMA, SHARE, Network, Scratch, adagrad_step, forward, lag, pull, sgd_step
from npstream.model.operations import Operations, Outcome
from npstream.model.sampling import FIRST_REVIEWED, GRADIENT_MAX, Sampling, count, is_warm, recalled, stored, weight_of
from npstream.model.scaler import Scaler, absorb, standardise, to_unit_norm, widen
from npstream.model.tables import Tables, TableScratch, code_of, look_up, table_step, take_row
from npstream.model.threshold import BY_SCORE, FPR, TRACKED, Q, Rule
from npstream.model.tiers import (
    Gates,
    Stricter,
    charge_all,
    free_all,
    note_issues,
    park_all,
    reach,
    settle_all,
    track_all,
    withdraw_all,
)
from npstream.model.unread import is_unread, pass_over, was_decided

# Operations. PEEK scores and decides without any bookkeeping.
SCORE, SCORE_LEARN, LEARN, RELEASE, PEEK, CORRECT = range(6)
# Presets and input transforms as numbers.
PLUS, PAPER, EXTERNAL = range(3)
RAW, UNIT, ZSCORE = range(3)
# clock: learned negatives and targets, write position and hits of the window, draws taken, stream number, rows
# behind the tables' markers.
LEARNED_NEG, LEARNED_POS, WINDOW_AT, WINDOW_HITS, DRAWS, STREAM, ROWS = range(7)
CLOCKS = 7
# What network and tables score and how far the slow weights are from that, in the scratch memory of an event.
BY_NETWORK, BY_TABLES, LAG = range(3)

_GAMMA_MIN, _GAMMA_MAX = 0.05, 50.0
# The paper bounds neither; these only keep numbers finite forever.
_PAPER_MU_MAX = 1e6
_PAPER_GAMMA_MIN, _PAPER_GAMMA_MAX = 1e-6, 1e6


class KernelParams(NamedTuple):
    """The parameters as the kernel reads them.

    `scale` is the paper's 1/sqrt(D) of eq. 9, or 1; `eta_alpha` the rate of the directions under Adagrad;
    `key` of the random numbers of this stream, `hash_key` of categories, the same in all streams of a seed.
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
    hash_key: np.uint64
    columns: ColumnKinds


class ModelState(NamedTuple):
    """All that a model knows. `level` and `tally` are those of the widest tier, the stricter ones have `gates`."""

    level: Floats
    tally: Ints
    gates: Gates
    clock: Ints
    window: npt.NDArray[np.uint8]
    net: Network
    scaler: Scaler
    tables: Tables


class Work(NamedTuple):
    """Reused memory of one event; nothing in it outlives the event."""

    net: Scratch
    tables: TableScratch
    parts: Parts


@jit
def run(
    ops: Operations,
    decided: Signs,
    sampling: Sampling,
    account: Account,
    params: KernelParams,
    rule: Rule,
    strict: Stricter,
    state: ModelState,
    work: Work,
    outcome: Outcome,
) -> None:
    """Run every operation in order, changing `decided`, counts, `state` and `outcome` in place.

    `decided` holds the depth of an alarm. For rows that are passed over see `unread`.
    """
    level, tally, clock, gates = state.level, state.tally, state.clock, state.gates
    for e in range(ops.code.size):
        op, slot = ops.code[e], ops.slot[e]
        y = ops.y[e] + 0  # as wide as a constant: what takes a label is compiled once
        later = slot >= 0 and op in (LEARN, CORRECT, RELEASE)
        never = later and not was_decided(decided[slot])
        if (never and op != LEARN) or is_unread(e, ops):
            frees, waits = later and not never and op != CORRECT, slot >= 0 and not later
            pass_over(e, slot, frees, waits, decided, tally, gates, outcome)
            continue
        slot = -1 if never else slot
        f, depth, reason = 0.0, 0, BY_SCORE
        if op == RELEASE:
            free_all(recalled(decided[slot]), tally, gates)
        else:
            f = _score(ops, e, params, state, work)
            depth, reason = reach(f, rule, strict, level, tally, gates)
        outcome.reason[e] = reason if depth == 0 else BY_SCORE
        code, warm = -1, never or tally[TRACKED] < rule.warmup
        if op in (LEARN, CORRECT) and slot >= 0:
            code, warm = recalled(decided[slot]), is_warm(decided[slot])
            depth = max(code, 0)
        outcome.decision[e] = 0 if op == RELEASE else 1 if depth > 0 else -1
        outcome.depth[e] = depth
        outcome.warm[e] = warm
        outcome.score[e] = f
        outcome.threshold[e] = level[Q]
        outcome.gamma[e] = state.net.head[GAMMA]
        outcome.fpr[e] = level[FPR]
        outcome.t[e] = clock[LEARNED_NEG] + clock[LEARNED_POS]
        if depth > 0 and op in (SCORE, SCORE_LEARN) and outcome.column.shape[1] > 0:
            find_parts(params, state, work)
            take_largest(work.parts.moved, outcome.column[e], outcome.contribution[e])
        if op in (SCORE, SCORE_LEARN):
            if rule.by_alarm:
                _observe(f, op, depth, params, rule, strict, state, work)
            note_issues(depth, reason, tally, gates)
            note_all(OF_ALL, warm, depth, account)
        if op == SCORE:
            if slot >= 0:
                code = depth if depth > 0 else y if y <= -FIRST_REVIEWED else -1
                decided[slot] = stored(code, warm)
                park_all(depth, tally, gates)
        elif op in (SCORE_LEARN, LEARN, CORRECT):
            weight, fresh = 1.0, True
            if op == SCORE_LEARN:
                code = depth
                if slot >= 0:
                    decided[slot] = stored(depth, warm)
            else:
                weight, fresh = weight_of(code, sampling), op == LEARN and not rule.by_alarm
                if op == CORRECT:
                    withdraw_all(-y, depth, weight, rule, strict, level, tally, gates)
                    count(code, -y, -1, sampling)
                    take_back_all(row_of(-y), warm, depth, account)
                elif slot >= 0:
                    free_all(depth, tally, gates)
            count(code, y, 1, sampling)
            note_all(row_of(y), warm, depth, account)
            _label(f, y, depth, weight, fresh, sampling, params, rule, strict, state, work)


@jit
def find_parts(params: KernelParams, state: ModelState, work: Work) -> None:
    """What each column added to the score that was computed last."""
    if params.preset != EXTERNAL:
        rows = state.clock[ROWS]
        contribute(state.net, params.scale, state.tables, params.columns, rows, work.net, work.tables, work.parts)


@jit_inline
def _score(ops: Operations, e: int, params: KernelParams, state: ModelState, work: Work) -> float:
    """The score of row e: given, or that of its features."""
    if params.preset == EXTERNAL:
        return float(ops.score[e])
    x, columns = work.net.x, params.columns
    for i in range(x.size):
        x[i] = ops.x[e, columns.number[i]]
    for c in range(work.tables.code.size):
        work.tables.code[c] = code_of(ops.x[e, columns.category[c]])
    return _score_features(params, state, work)


@jit_inline
def _score_features(params: KernelParams, state: ModelState, work: Work) -> float:
    """The score of the features in `work`; leaves there what a step of the network and the tables needs."""
    net, scaler, key = work.net, state.scaler, params.hash_key
    if params.input == ZSCORE:
        standardise(net.x, scaler.mean, scaler.inv_sd, scaler.clip, net.z)
    elif params.input == UNIT:
        to_unit_norm(net.x, net.z)
    else:
        for i in range(net.z.size):
            net.z[i] = net.x[i]
    net.part[BY_NETWORK] = forward(state.net, params.scale, net)
    net.part[BY_TABLES] = net.part[LAG] = 0.0
    if params.preset == PLUS:
        net.part[LAG] = lag(state.net, net)
        net.part[BY_TABLES] = look_up(net.x, state.tables, params.columns, key, state.clock[ROWS], work.tables)
    return float(_trained(state, work) + state.net.head[SHARE] * net.part[LAG])


@jit_inline
def _trained(state: ModelState, work: Work) -> float:
    """The score by the weights that learn: steps and multiplier go by it."""
    return float((work.net.part[BY_NETWORK] + work.net.part[BY_TABLES]) + state.net.head[BIAS])


@jit_inline
def _observe(
    f: float, op: int, depth: int, params: KernelParams, rule: Rule, strict: Stricter, state: ModelState, work: Work
) -> None:
    """Control alarm_rate: everything that needs no label is taken from each observation when it is decided.

    So the features are scaled, scores differ and alarms come before the first label does.
    """
    charge_all(depth, rule, strict, state.level, state.gates)
    if not params.learning:
        return
    track_all(f, 1.0, 1.0, rule, strict, state.level, state.tally, state.gates)
    if params.preset != EXTERNAL:
        _note_hit(_trained(state, work), state.clock, state.window)
        # With a label the step on it comes first: the tables must be those that it was scored by.
        if op == SCORE:
            _take_features(state.tally[TRACKED], params, state, work)


@jit_inline
def _label(
    f: float,
    y: int,
    depth: int,
    weight: float,
    fresh: bool,
    sampling: Sampling,
    params: KernelParams,
    rule: Rule,
    strict: Stricter,
    state: ModelState,
    work: Work,
) -> None:
    """Account for a label, then learn from it unless the model is frozen.

    `weight` is for how many it counts, `fresh`: scaler and markers have not seen these features yet.
    """
    settle_all(y, depth, weight, rule, strict, state.level, state.tally, state.gates)
    if not params.learning:
        return
    clock = state.clock
    clock[LEARNED_POS if y > 0 else LEARNED_NEG] += 1
    if y < 0 and params.preset != PAPER and not rule.by_alarm and weight > 0.0:
        track_all(f, weight, sampling.pace, rule, strict, state.level, state.tally, state.gates)
    if params.preset != EXTERNAL:
        trained = _trained(state, work)
        _descend(trained, y, min(max(weight, 1.0), sampling.learned_max), params, state, work)
        _learn(trained, y, weight, fresh, params, rule, state, work)


@jit_inline
def _learn(
    f: float, y: int, weight: float, fresh: bool, params: KernelParams, rule: Rule, state: ModelState, work: Work
) -> None:
    """After network and tables the multiplier and the scaler; then the drawn target of one-class mode."""
    clock = state.clock
    if params.stochastic:
        _move_gamma_stochastic(f, y, params, rule.tau, state)
    elif y < 0:
        if not rule.by_alarm:
            for _ in range(int(min(weight, state.window.size))):
                _note_hit(f, clock, state.window)
        if rule.by_alarm or weight > 0.0:
            _move_gamma(params, rule.tau, state)
    if fresh:
        seen = state.tally[TRACKED] if rule.by_alarm else clock[LEARNED_NEG] + clock[LEARNED_POS]
        _take_features(seen, params, state, work)
    if params.one_class and y < 0:
        _learn_drawn(params, state, work)


@jit_inline
def _take_features(t: int, params: KernelParams, state: ModelState, work: Work) -> None:
    """The features of the t-th event that counts here go to range, moments and markers."""
    scaler, clock, x = state.scaler, state.clock, work.net.x
    widen(x, scaler.seen, scaler.mean, scaler.inv_sd, scaler.low, scaler.high)
    absorb(x, scaler.seen, scaler.mean, scaler.var, scaler.inv_sd)
    if params.preset == PLUS:
        clock[ROWS], clock[DRAWS] = take_row(
            x, t, clock[ROWS], params.key, clock[DRAWS], state.tables, scaler.clip, work.tables
        )


@jit
def _learn_drawn(params: KernelParams, state: ModelState, work: Work) -> None:
    """A target drawn from the running feature range (minimum-volume sets). A call, since few models ask for it."""
    scaler, clock, x = state.scaler, state.clock, work.net.x
    for i in range(x.size):
        share = uniform(params.key, clock[DRAWS])
        clock[DRAWS] += 1
        # A number that was always missing has no range.
        x[i] = scaler.low[i] + share * (scaler.high[i] - scaler.low[i]) if scaler.seen[i] > 0 else np.nan
    for c in range(work.tables.code.size):
        work.tables.code[c] = np.int64(uniform(params.key, clock[DRAWS]) * CODES)
        clock[DRAWS] += 1
    _score_features(params, state, work)
    _descend(_trained(state, work), 1, 1.0, params, state, work)


@jit_inline
def _descend(f: float, y: int, weight: float, params: KernelParams, state: ModelState, work: Work) -> None:
    """One step of network and tables on the weighted loss of this event."""
    if params.preset == PLUS:
        _descend_plus(f, y, weight, params, state, work)
    else:
        mu = _paper_weight(y, params, state) * (1.0 if y > 0 else min(weight, GRADIENT_MAX))
        # l^2(m) exp(m) of eqs. 14-16, written so that it cannot overflow.
        decay = exp(-abs(f))
        g = -y * mu * decay / ((1.0 + decay) * (1.0 + decay))
        sgd_step(state.net, g, params.scale, params.eta * _fading(params, state.clock), params.lam, work.net)


@jit_inline
def _descend_plus(f: float, y: int, weight: float, params: KernelParams, state: ModelState, work: Work) -> None:
    """Network and tables each learn half from the common score, half from their own.

    Jointly trained, the faster of the two leaves nothing for the other to learn; apart, neither corrects the other.
    """
    mu = 1.0 if y > 0 else min(weight * state.net.head[GAMMA], GRADIENT_MAX)
    bias = state.net.head[BIAS]
    g_network = pull(0.5 * f + 0.5 * (work.net.part[BY_NETWORK] + bias), y, mu)
    g_tables = pull(0.5 * f + 0.5 * (work.net.part[BY_TABLES] + bias), y, mu)
    g_share = pull(f + state.net.head[SHARE] * work.net.part[LAG], y, mu) * work.net.part[LAG]
    t = state.clock[LEARNED_NEG] + state.clock[LEARNED_POS]
    adagrad_step(state.net, g_network, pull(f, y, mu), g_share, params.eta, params.eta_alpha, t, work.net)
    table_step(state.tables, g_tables, params.eta, state.clock[ROWS], work.tables)


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
def _note_hit(f: float, clock: Ints, window: npt.NDArray[np.uint8]) -> None:
    """Whether f > 0 goes to the window: of negatives or, with control alarm_rate, of all observations."""
    at = clock[WINDOW_AT]
    hit = np.uint8(1) if f > 0.0 else np.uint8(0)
    clock[WINDOW_HITS] += np.int64(hit) - np.int64(window[at])
    window[at] = hit
    clock[WINDOW_AT] = (at + 1) % window.size


@jit_inline
def _move_gamma(params: KernelParams, tau: float, state: ModelState) -> None:
    """gamma (1 + beta (P_fa - tau)), P_fa the share of f > 0 in the window (eq. 17)."""
    clock, head = state.clock, state.net.head
    noted = state.tally[TRACKED] if params.preset == PLUS else clock[LEARNED_NEG]
    # A label may come before the first observation.
    share = min(clock[WINDOW_HITS] / max(min(noted, state.window.size), 1), 1.0)
    head[GAMMA] = _clamp(head[GAMMA] * (1.0 + params.beta * _fading(params, clock) * (share - tau)), params.preset)


@jit_inline
def _move_gamma_stochastic(f: float, y: int, params: KernelParams, tau: float, state: ModelState) -> None:
    """gamma + beta (1{y = -1} t/n- l(y f) - tau): the additive form of section IV."""
    clock, head = state.clock, state.net.head
    error = (clock[LEARNED_NEG] + clock[LEARNED_POS]) / clock[LEARNED_NEG] / (1.0 + exp(-f)) if y < 0 else 0.0
    head[GAMMA] = _clamp(head[GAMMA] + params.beta * _fading(params, clock) * (error - tau), params.preset)


@jit_inline
def _clamp(gamma: float, preset: int) -> float:
    low, high = (_GAMMA_MIN, _GAMMA_MAX) if preset == PLUS else (_PAPER_GAMMA_MIN, _PAPER_GAMMA_MAX)
    return min(max(gamma, low), high)
