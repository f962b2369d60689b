"""What a batch asks of the model: labels joined with the observations that wait, in compiled code.

One event asks for none (a bad one), one, or several operations (observations that
expire when it arrives, then its own). They are laid out in order, with copies of
the features of parked observations, since a slot may be used again within one
batch. Nothing here reads or writes the published decisions: the kernel does,
when it runs the operations.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Features, Floats, Ints, Signs
from npstream.codec.event import Kind
from npstream.jit import jit, jit_inline
from npstream.model import Op, Operations
from npstream.partition.counters import JOINING
from npstream.partition.keyed import COUNT, append, find, oldest, remove
from npstream.partition.labelled import pop, push
from npstream.partition.pending import Buffer, Memory

_OBSERVATION, _LABELLED, _LABEL, _ECHO, _BAD = (
    int(kind) for kind in (Kind.OBSERVATION, Kind.LABELLED, Kind.LABEL, Kind.ECHO, Kind.BAD)
)
APART = 4
"""In place of a `Kind`: a label from a topic of its own, which is no event and ages nothing."""
_SCORE, _SCORE_LEARN, _LEARN, _RELEASE, _CORRECT = (
    int(op) for op in (Op.SCORE, Op.SCORE_LEARN, Op.LEARN, Op.RELEASE, Op.CORRECT)
)
_UNLABELLED = 0
"""In place of a label."""

# Where a batch stands: the next event, the event that was counted last, operations laid out, events decided by them;
# then what outlives it: events so far and event time.
EVENT, COUNTED, LAID_OUT, DECIDED, EVENTS, CLOCK = range(6)
(
    _WITH_EVENT,
    _JOINED,
    _ECHOED,
    _EARLY,
    _LATE,
    _DUPLICATE,
    _ORPHAN,
    _REPEATED,
    _LET_GO,
    _CORRECTED,
) = range(len(JOINING))


class EventColumns(NamedTuple):
    """Decoded events, one row each: `kind` and `y` int8[n], `key` uint64[n, 2], `x` float32[n, d].

    `y` of an observation is its code where it is in the review sample, else 0. `named` says whether the event has an
    id; without one an observation waits under its place in the log.
    """

    kind: Signs
    y: Signs
    key: NDArray[np.uint64]
    named: NDArray[np.bool_]
    stamp: Ints
    x: Features
    score: Floats


class Rules(NamedTuple):
    """How long an observation waits, and what becomes of it; `clock_step` is what one event may add to the time.

    `corrections`: it stays after its label, for as long.
    """

    expire_events: int
    expire_ms: float
    negative: bool
    limit: int
    clock_step: int
    corrections: bool


class Planned(NamedTuple):
    """Operations in order; operation deciding[i] decides event events[i]."""

    operations: Operations
    events: Ints
    deciding: Ints


@jit
def join(
    batch: EventColumns,
    buffer: Buffer,
    gone: Memory,
    early: Memory,
    rules: Rules,
    state: Ints,
    counts: Ints,
    planned: Planned,
) -> None:
    """Take events in order while there is room for their operations.

    `state` says where the batch stands, `counts` is that of `JOINING`; both go on. What waits beyond the limit, as
    after a change of settings, is let go first.
    """
    entries = buffer.entries
    room = planned.operations.code.size
    while buffer.labelled.number[0] and not rules.corrections:
        _drop_labelled(buffer, gone)
    while entries.numbers[COUNT] > rules.limit and state[LAID_OUT] < room:
        _make_room(buffer, gone, rules, state, counts, planned)
    while state[EVENT] < batch.kind.size:
        e = state[EVENT]
        kind = batch.kind[e]
        if kind == _BAD:
            state[EVENT] += 1
            continue
        if state[COUNTED] != e:
            state[COUNTED] = e
            if kind != APART:
                _age(batch, e, rules, state)
        while entries.numbers[COUNT] and state[LAID_OUT] < room and _is_due(buffer, rules, state):
            _let_go(buffer, gone, rules, state, counts, planned)
        # An observation may push out another one before it is decided.
        if state[LAID_OUT] + 2 > room:
            return
        if kind == _LABELLED:
            counts[_WITH_EVENT] += 1
            slot = _park_labelled(batch, e, batch.y[e], buffer, gone, rules, state)
            _decide(batch, e, _SCORE_LEARN, batch.y[e], slot, state, planned)
        elif kind == _OBSERVATION:
            _observe(batch, e, buffer, gone, early, rules, state, counts, planned)
        elif kind in (_LABEL, APART):
            _label(batch, e, buffer, gone, early, rules, state, counts, planned)
        else:
            _echo(batch, e, buffer, gone, rules, state, counts, planned)
        state[EVENT] += 1


@jit_inline
def _age(batch: EventColumns, e: int, rules: Rules, state: Ints) -> None:
    """Count a good event and advance the partition's own event time, never backwards, never far."""
    state[EVENTS] += 1
    if rules.clock_step:
        stamp = batch.stamp[e]
        if state[CLOCK] < 0:
            state[CLOCK] = max(0, stamp)
        elif stamp > state[CLOCK]:
            state[CLOCK] += min(stamp - state[CLOCK], rules.clock_step)


@jit_inline
def _is_due(buffer: Buffer, rules: Rules, state: Ints) -> bool:
    """Whether the oldest has waited longer than the rules allow."""
    slot = oldest(buffer.entries)
    if 0 < rules.expire_events < state[EVENTS] - buffer.parked_at[slot]:
        return True
    return bool(state[CLOCK] - buffer.parked_ms[slot] > rules.expire_ms)


@jit_inline
def _observe(
    batch: EventColumns,
    e: int,
    buffer: Buffer,
    gone: Memory,
    early: Memory,
    rules: Rules,
    state: Ints,
    counts: Ints,
    planned: Planned,
) -> None:
    first, second = batch.key[e, 0], batch.key[e, 1]
    came = find(early.entries, first, second)
    if came >= 0:
        counts[_EARLY] += 1
        y = early.value[came]
        remove(early.entries, came)
        slot = _park_labelled(batch, e, y, buffer, gone, rules, state)
        if slot < 0:
            _remember(gone, first, second, y)
        _decide(batch, e, _SCORE_LEARN, y, slot, state, planned)
    elif find(buffer.entries, first, second) >= 0:
        # A producer's retry: it gets its decision, and label and review count for the first one.
        counts[_REPEATED] += 1
        _decide(batch, e, _SCORE, 0, -1, state, planned)
    else:
        if buffer.entries.numbers[COUNT] >= rules.limit:
            _make_room(buffer, gone, rules, state, counts, planned)
        _decide(batch, e, _SCORE, batch.y[e], _park(batch, e, buffer, state), state, planned)


@jit_inline
def _park(batch: EventColumns, e: int, buffer: Buffer, state: Ints) -> int:
    """The observation stays; its slot. There is room."""
    slot = append(buffer.entries, batch.key[e, 0], batch.key[e, 1])
    for i in range(buffer.x.shape[1]):
        buffer.x[slot, i] = batch.x[e, i]
    if buffer.score.size:
        buffer.score[slot] = batch.score[e]
    buffer.number[slot] = buffer.parked[0]
    buffer.parked[0] += 1
    buffer.parked_at[slot] = state[EVENTS]
    buffer.parked_ms[slot] = state[CLOCK]
    buffer.label[slot] = _UNLABELLED
    return slot


@jit_inline
def _park_labelled(batch: EventColumns, e: int, y: int, buffer: Buffer, gone: Memory, rules: Rules, state: Ints) -> int:
    """An observation whose label is known at once stays, should it be corrected; its slot, or -1 where it does not.

    It pushes out none that waits.
    """
    if not rules.corrections or not batch.named[e] or find(buffer.entries, batch.key[e, 0], batch.key[e, 1]) >= 0:
        return -1
    if buffer.entries.numbers[COUNT] >= rules.limit:
        if buffer.labelled.number[0] == 0:
            return -1
        _drop_labelled(buffer, gone)
    slot = _park(batch, e, buffer, state)
    _keep_labelled(buffer, slot, y)
    return slot


@jit_inline
def _label(
    batch: EventColumns,
    e: int,
    buffer: Buffer,
    gone: Memory,
    early: Memory,
    rules: Rules,
    state: Ints,
    counts: Ints,
    planned: Planned,
) -> None:
    first, second, y = batch.key[e, 0], batch.key[e, 1], batch.y[e]
    slot = find(buffer.entries, first, second)
    if slot >= 0:
        code = _labelled(buffer, gone, slot, y, _JOINED, rules, counts)
        if code >= 0:
            _parked(buffer, slot, code, y, state, planned)
        return
    left = find(gone.entries, first, second)
    came = find(early.entries, first, second)
    if left >= 0:
        counts[_DUPLICATE if gone.value[left] == y else _LATE] += 1
    elif came >= 0 and rules.corrections and early.value[came] != y:
        counts[_CORRECTED] += 1
        early.value[came] = y
    elif came >= 0:
        counts[_DUPLICATE] += 1
    else:
        if early.entries.numbers[COUNT] == early.value.size:
            counts[_ORPHAN] += 1
            remove(early.entries, oldest(early.entries))
        early.value[append(early.entries, first, second)] = batch.y[e]


@jit_inline
def _echo(
    batch: EventColumns,
    e: int,
    buffer: Buffer,
    gone: Memory,
    rules: Rules,
    state: Ints,
    counts: Ints,
    planned: Planned,
) -> None:
    """Learn from a label that brings its features along, whether its observation still waits or not."""
    slot = left = -1
    first, second, y = batch.key[e, 0], batch.key[e, 1], batch.y[e]
    if batch.named[e]:
        slot = find(buffer.entries, first, second)
        left = find(gone.entries, first, second)
    if slot >= 0:
        code = _labelled(buffer, gone, slot, y, _ECHOED, rules, counts)
        if code >= 0:
            _own(batch, e, code, y, slot, state, planned)
    elif left >= 0 and gone.value[left] == y:
        counts[_DUPLICATE] += 1
    else:
        counts[_ECHOED] += 1
        if batch.named[e]:
            _remember(gone, first, second, y)
        _own(batch, e, _LEARN, y, -1, state, planned)


@jit_inline
def _labelled(buffer: Buffer, gone: Memory, slot: int, y: int, fate: int, rules: Rules, counts: Ints) -> int:
    """What a label asks for that finds its observation, -1 for nothing; counted as `fate` where it is the first."""
    before = buffer.label[slot]
    if before == y:
        counts[_DUPLICATE] += 1
        return -1
    if before != _UNLABELLED:
        counts[_CORRECTED] += 1
        buffer.label[slot] = y
        return _CORRECT
    counts[fate] += 1
    if rules.corrections:
        _keep_labelled(buffer, slot, y)
    else:
        _take(buffer, gone, slot, y)
    return _LEARN


@jit_inline
def _keep_labelled(buffer: Buffer, slot: int, y: int) -> None:
    buffer.label[slot] = y
    push(buffer.labelled, buffer.parked_at, slot)


@jit_inline
def _make_room(buffer: Buffer, gone: Memory, rules: Rules, state: Ints, counts: Ints, planned: Planned) -> None:
    """Memory is bounded: the oldest that has its label leaves, else the oldest of all, which counts as expired."""
    if buffer.labelled.number[0]:
        _drop_labelled(buffer, gone)
    else:
        _let_go(buffer, gone, rules, state, counts, planned)


@jit_inline
def _let_go(buffer: Buffer, gone: Memory, rules: Rules, state: Ints, counts: Ints, planned: Planned) -> None:
    """The oldest observation leaves; without a label, should one still come, it will be late."""
    slot = oldest(buffer.entries)
    if buffer.label[slot] != _UNLABELLED:
        _drop_labelled(buffer, gone)
        return
    counts[_LET_GO] += 1
    _take(buffer, gone, slot, _UNLABELLED)
    if rules.negative:
        _parked(buffer, slot, _LEARN, -1, state, planned)
    else:
        _parked(buffer, slot, _RELEASE, 0, state, planned)


@jit_inline
def _drop_labelled(buffer: Buffer, gone: Memory) -> None:
    """The oldest that has its label leaves; there is one. Its label stands."""
    slot = pop(buffer.labelled, buffer.parked_at)
    _take(buffer, gone, slot, buffer.label[slot])


@jit_inline
def _take(buffer: Buffer, gone: Memory, slot: int, y: int) -> None:
    key = buffer.entries.key
    _remember(gone, key[slot, 0], key[slot, 1], y)
    remove(buffer.entries, slot)


@jit_inline
def _remember(gone: Memory, first: np.uint64, second: np.uint64, y: int) -> None:
    """Under which label an id has left; the id that was remembered first is forgotten for it."""
    known = find(gone.entries, first, second)
    if known >= 0:
        remove(gone.entries, known)
    elif gone.entries.numbers[COUNT] == gone.value.size:
        remove(gone.entries, oldest(gone.entries))
    gone.value[append(gone.entries, first, second)] = y


@jit_inline
def _decide(batch: EventColumns, e: int, code: int, y: int, slot: int, state: Ints, planned: Planned) -> None:
    """An operation on the event itself, whose decision is published."""
    planned.events[state[DECIDED]] = e
    planned.deciding[state[DECIDED]] = state[LAID_OUT]
    state[DECIDED] += 1
    _own(batch, e, code, y, slot, state, planned)


@jit_inline
def _own(batch: EventColumns, e: int, code: int, y: int, slot: int, state: Ints, planned: Planned) -> None:
    """An operation on the features of the event."""
    at = _next(code, y, slot, state, planned)
    for i in range(batch.x.shape[1]):
        planned.operations.x[at, i] = batch.x[e, i]
    planned.operations.score[at] = batch.score[e]


@jit_inline
def _parked(buffer: Buffer, slot: int, code: int, y: int, state: Ints, planned: Planned) -> None:
    """An operation on the features of an observation that waited."""
    at = _next(code, y, slot, state, planned)
    for i in range(buffer.x.shape[1]):
        planned.operations.x[at, i] = buffer.x[slot, i]
    planned.operations.score[at] = buffer.score[slot] if buffer.score.size else 0.0


@jit_inline
def _next(code: int, y: int, slot: int, state: Ints, planned: Planned) -> int:
    at = state[LAID_OUT]
    state[LAID_OUT] += 1
    planned.operations.code[at] = code
    planned.operations.y[at] = y
    planned.operations.slot[at] = slot
    return int(at)
