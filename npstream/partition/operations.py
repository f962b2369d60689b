"""A batch of events on its way to the model: decoded columns in, operations out, in the order of the events."""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import cast

import numpy as np

from npstream.arrays import Ints, owned
from npstream.codec.decisions import default_id
from npstream.codec.decoder import Decoded, EventId, Kind
from npstream.codec.digest import keys_of
from npstream.model import Operations, Outcome
from npstream.partition.config import LabelConfig
from npstream.partition.joining import APART, DECIDED, EVENT, LAID_OUT, EventColumns, Planned, Rules, join
from npstream.partition.pending import Pending
from npstream.records import Record

_ROOM = 1024
"""Fewest operations laid out at a time: one event may let everything expire that waits."""


def rules_of(config: LabelConfig) -> Rules:
    """The rules of waiting as compiled code reads them."""
    seconds = config.expire_seconds
    return Rules(
        expire_events=config.expire_events or 0,
        expire_ms=np.inf if seconds is None else float(seconds * 1000),
        negative=config.on_expiry == "negative",
        limit=config.buffer_max,
        # One far-future timestamp may age the waiting observations by 1% of their time, no more.
        clock_step=0 if seconds is None else max(1, int(seconds * 10)),
        corrections=config.corrections,
    )


def new_state(events: int = 0, clock_ms: int = -1) -> Ints:
    """Where joining begins: after so many events, at this event time."""
    return np.array([0, -1, 0, 0, events, clock_ms], np.int64)


def columns_of(
    records: Sequence[Record], decoded: Decoded, topic: str, partition: int, corrections: bool = False
) -> EventColumns:
    """The first records of a decoded batch, as many as are given, with the keys of those that are joined by id.

    With `corrections` an observation that brings its label is one of them.
    """
    n = len(records)
    kinds = np.array(decoded.kinds[:n], np.int8)
    by_id = np.flatnonzero((corrections | (kinds != Kind.LABELLED)) & (kinds != Kind.BAD)).tolist()
    ids = [decoded.ids[event] for event in by_id] if len(by_id) < n else decoded.ids[:n]
    named = np.ones(n, np.bool_)
    if None in ids:
        for at, event in enumerate(by_id):
            if ids[at] is None:
                ids[at] = default_id(topic, partition, records[event].offset)
                named[event] = kinds[event] == Kind.OBSERVATION
    keys = np.zeros((n, 2), np.uint64)
    if by_id:
        keys[by_id] = keys_of(cast(Sequence[EventId], ids))
    stamps = np.fromiter(map(itemgetter(1), records), np.int64, n)
    y, x, score = owned(decoded.y[:n]), owned(decoded.x[:n]), owned(decoded.score[:n])
    return EventColumns(kinds, y, keys, named, stamps, x, score)


def with_labels(batch: EventColumns, labels: Sequence[tuple[int, EventId, int]]) -> tuple[EventColumns, Ints | None]:
    """The batch with labels from a topic of their own as rows before their events, and which event each row is."""
    if not labels:
        return batch, None
    before, ids, signs = zip(*labels, strict=True)
    at = np.array(before, np.int64)
    columns = EventColumns(
        kind=np.insert(batch.kind, at, APART),
        y=np.insert(batch.y, at, np.array(signs, np.int8)),
        key=np.insert(batch.key, at, keys_of(ids), axis=0),
        named=np.insert(batch.named, at, True),
        stamp=np.insert(batch.stamp, at, 0),
        x=np.insert(batch.x, at, np.float32(0), axis=0),
        score=np.insert(batch.score, at, 0.0),
    )
    return columns, np.insert(np.arange(len(batch.kind), dtype=np.int64), at, -1)


def operations_of(batch: EventColumns, pending: Pending, rules: Rules, state: Ints, counts: Ints) -> Iterator[Planned]:
    """What a batch asks for, in as many parts as it takes; each must have run before the next is asked for.

    `state` is a new one, and has the events so far and the event time afterwards; `counts` is that of `JOINING`.
    """
    n, d = batch.x.shape
    room = max(2 * n, _ROOM)
    while True:
        columns = np.empty(room, np.int8), np.empty((room, d), np.float32), np.empty(room), np.empty(room, np.int8)
        planned = Planned(Operations(*columns, np.empty(room, np.int32)), np.empty(n, np.int64), np.empty(n, np.int64))
        state[LAID_OUT] = state[DECIDED] = 0
        with np.errstate(over="ignore"):
            join(batch, pending.buffer, pending.gone, pending.early, rules, state, counts, planned)
        operations = Operations._make(column[: state[LAID_OUT]] for column in planned.operations)
        yield Planned(operations, planned.events[: state[DECIDED]], planned.deciding[: state[DECIDED]])
        if state[EVENT] == n and len(pending) <= rules.limit:
            return


def decisions_of(parts: Sequence[tuple[Outcome, Ints]]) -> Outcome:
    """Those rows of each outcome that decide events, one after another."""
    rows = [outcome if len(of) == len(outcome.t) else Outcome._make(c[of] for c in outcome) for outcome, of in parts]
    return rows[0] if len(rows) == 1 else Outcome._make(map(np.concatenate, zip(*rows, strict=True)))
