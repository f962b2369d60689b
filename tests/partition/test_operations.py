"""What a batch asks of the model, compiled, against a plain buffer that takes one event at a time."""

from collections.abc import Iterable, Sequence

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npstream.codec.decisions import default_id
from npstream.codec.decoder import Decoded, Kind
from npstream.codec.digest import key_of
from npstream.errors import BadEvent
from npstream.model import Op
from npstream.partition import LabelConfig
from npstream.partition.counters import JOINING
from npstream.partition.joining import CLOCK, EVENTS
from npstream.partition.keyed import slots_of
from npstream.partition.operations import columns_of, new_state, operations_of, rules_of
from npstream.partition.pending import Pending, Widths
from npstream.records import Record
from tests.partition.builders import config, processor, record
from tests.partition.plain_buffer import Asked, Event, PlainBuffer

TOPIC = "events"
kinds = st.sampled_from([Kind.OBSERVATION] * 3 + [Kind.LABEL] * 3 + [Kind.ECHO, Kind.LABELLED, Kind.BAD])
names = st.integers(0, 9)
stamps = st.integers(-3, 400) | st.sampled_from([-(2**63), 2**62])
rules = st.builds(
    LabelConfig,
    buffer_max=st.integers(1, 6),
    expire_events=st.none() | st.integers(1, 9),
    expire_seconds=st.none() | st.sampled_from([0.005, 0.02, 1.0]),
    on_expiry=st.sampled_from(["drop", "negative"]),
    remembered_max=st.integers(1, 4),
    early_max=st.integers(1, 3),
    corrections=st.booleans(),
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Any event; all but labels may come without an id."""
    kind = draw(kinds)
    identity = draw(names if kind == Kind.LABEL else names | st.none())
    y = 0 if kind in (Kind.OBSERVATION, Kind.BAD) else draw(st.sampled_from([1, -1]))
    return Event(kind, identity, y, draw(stamps))


class Compiled:
    """The compiled buffer, asked as the oracle is: by batches, and telling which observation was meant."""

    def __init__(self, config: LabelConfig, d: int) -> None:
        self.config, self.d = config, d
        self.pending = Pending(config, Widths(d, score=d == 0))
        self.events, self.clock = 0, -1
        self.counts = np.zeros(len(JOINING), np.int64)
        self._tenants: dict[int, int] = {}
        self._waits: dict[int, bool] = {}
        self._row = 0

    def take(self, batch: Sequence[Event]) -> list[Asked]:
        """What these events ask for, in order; and that those that are decided are the ones that must be."""
        n = len(batch)
        rows = range(self._row, self._row + n)
        self._row += n
        bad = {at: BadEvent("not_json", "") for at, event in enumerate(batch) if event.kind == Kind.BAD}
        own = np.array(rows, np.float64)
        decoded = Decoded(
            [int(event.kind) for event in batch],
            [event.identity for event in batch],
            np.repeat(own, self.d).astype(np.float32).reshape(n, self.d),
            np.zeros(n) if self.d else own,
            np.array([event.y for event in batch], np.int8),
            bad,
            {},
        )
        records = [Record(row, event.stamp, None, None) for row, event in zip(rows, batch, strict=True)]
        made = columns_of(records, decoded, TOPIC, 0, self.config.corrections)
        asked, decided, state = list[Asked](), list[int](), new_state(self.events, self.clock)
        for part in operations_of(made, self.pending, rules_of(self.config), state, self.counts):
            code, x, score, y, slots = part.operations
            came_from = x[:, 0] if self.d else score
            for at in range(len(code)):
                asked.append(self._asked(Op(code[at]), int(came_from[at]), int(y[at]), int(slots[at])))
            for event, at in zip(part.events.tolist(), part.deciding.tolist(), strict=True):
                assert code[at] in (Op.SCORE, Op.SCORE_LEARN)
                assert came_from[at] == rows[event]
                decided.append(event)
        self.events, self.clock = int(state[EVENTS]), int(state[CLOCK])
        assert decided == [at for at, event in enumerate(batch) if event.kind in (Kind.OBSERVATION, Kind.LABELLED)]
        return asked

    def _asked(self, op: Op, row: int, y: int, slot: int) -> Asked:
        """With the observation that the kernel would find in this slot at this point of the sequence."""
        if slot < 0:
            return Asked(op, row, y, None)
        if op in (Op.SCORE, Op.SCORE_LEARN):
            # One that has its label leaves without an operation.
            assert self._waits.get(slot) is not True, "a slot in which one waits was given away"
            self._tenants[slot], self._waits[slot] = row, op == Op.SCORE
            return Asked(op, row, y, row)
        assert self._waits[slot] is (op != Op.CORRECT)
        self._waits[slot] = False
        return Asked(op, row, y, self._tenants[slot])

    def restore(self) -> None:
        """Through a snapshot: observations may lie elsewhere afterwards."""
        before = slots_of(self.pending.buffer.entries).tolist()
        self.pending = Pending.load(self.config, Widths(self.d, score=self.d == 0), self.pending.dump(), {})
        after = slots_of(self.pending.buffer.entries).tolist()
        self._tenants = {new: self._tenants[old] for old, new in zip(before, after, strict=True)}
        self._waits = {new: self._waits[old] for old, new in zip(before, after, strict=True)}

    def seen(self) -> tuple[bytes, bytes, bytes, dict[str, int], int, int]:
        """All that goes on, for comparison."""
        blobs = self.pending.dump()
        ids, labels = blobs["pending.ids"], blobs["pending.label"]
        parked = b"".join(ids[16 * at : 16 * at + 16] + labels[at : at + 1] for at in range(len(labels)))
        assert self.pending.labelled == len(labels) - labels.count(0) == len(self.pending) - self.pending.waiting
        counts = dict(zip(JOINING, self.counts.tolist(), strict=True))
        return (
            parked,
            blobs["labels.gone"],
            blobs["labels.early"],
            {name: count for name, count in counts.items() if count},
            self.events,
            self.clock,
        )


def key(identity: int) -> bytes:
    """Of an id of the plain buffer; those below zero stand for the event's own."""
    return key_of(identity if identity >= 0 else default_id(TOPIC, 0, -1 - identity))


def packed(memory: Iterable[tuple[int, int]]) -> bytes:
    """A memory as a snapshot holds it."""
    return b"".join(key(identity) + int(value).to_bytes(1, "little", signed=True) for identity, value in memory)


def seen(plain: PlainBuffer) -> tuple[bytes, bytes, bytes, dict[str, int], int, int]:
    """All that goes on, of the plain buffer."""
    counts = {name: count for name, count in plain.counts.items() if count}
    gone, early = packed(plain.gone.items()), packed(plain.early.items())
    parked = packed((identity, parked.y) for identity, parked in plain.parked.items())
    return parked, gone, early, counts, plain.events, plain.clock


@pytest.mark.parametrize("d", [0, 2])
@settings(deadline=None)
@given(rules, st.lists(events(), max_size=60), st.lists(st.integers(1, 12), min_size=1, max_size=12))
@example(
    using=LabelConfig(buffer_max=2, corrections=True),
    stream=[Event(Kind.LABEL, 1, 1, 0), Event(Kind.LABEL, 1, -1, 0), Event(Kind.OBSERVATION, 1, 0, 0)],
    sizes=[1],
)
@example(
    using=LabelConfig(buffer_max=2, expire_seconds=0.005),
    stream=[Event(Kind.OBSERVATION, 1, 0, -3), Event(Kind.OBSERVATION, 2, 0, 0)],
    sizes=[1],
)
def test_it_asks_for_what_a_plain_buffer_asks_for(
    d: int, using: LabelConfig, stream: list[Event], sizes: list[int]
) -> None:
    """The same joins, expiries and evictions in the same order, the same memories and counts, in whatever batches."""
    compiled, plain = Compiled(using, d), PlainBuffer(using)
    at = 0
    for size in [*sizes, len(stream)]:
        batch, at = stream[at : at + size], at + size
        assert compiled.take(batch) == [asked for event in batch for asked in plain.take(event)]
        assert compiled.seen() == seen(plain)
        if size % 3 == 0:
            compiled.restore()


def test_one_event_may_let_thousands_go() -> None:
    """More than one call lays out at a time: the order is kept across the parts."""
    many = 3000
    using = LabelConfig(buffer_max=many, expire_seconds=1.0)
    compiled, plain = Compiled(using, 1), PlainBuffer(using)
    stream = [Event(Kind.OBSERVATION, n, 0, 5) for n in range(many)]
    # Time moves by 1% of a second for each event: after a hundred and one of them all that waits is due.
    stream += [Event(Kind.LABELLED, None, 1, 10**6) for _ in range(102)]

    assert compiled.take(stream) == [asked for event in stream for asked in plain.take(event)]
    assert compiled.seen() == seen(plain)
    assert plain.counts["observations_expired"] == many


@pytest.mark.parametrize(("on_expiry", "learned"), [("negative", [0, 0, 1, 2, 3]), ("drop", [0, 0, 0, 0, 0])])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_what_expires_goes_before_the_event_that_finds_it(on_expiry: str, learned: list[int], size: int) -> None:
    """An observation that expires as a negative has been learned when the event that pushes it out is decided."""
    using = LabelConfig(buffer_max=10, expire_events=1, on_expiry=on_expiry)  # type: ignore[arg-type]
    made = processor(config(labels=using))
    records = [record(at, {"id": at, "x": [0.1, 0.2, 0.3]}) for at in range(5)]

    outputs = [output for at in range(0, 5, size) for output in made.process(records[at : at + size]).outputs]

    assert [orjson.loads(output.value or b"")["t"] for output in outputs] == learned


def test_a_label_counts_from_the_next_event_on() -> None:
    """Events are decided in their order: the label between two observations is learned between them."""
    made = processor()
    x = [0.1, 0.2, 0.3]
    batch = [{"id": 1, "x": x}, {"id": 2, "x": x}, {"id": 1, "y": 1}, {"id": 3, "x": x, "y": -1}, {"id": 4, "x": x}]

    outputs = made.process([record(at, value) for at, value in enumerate(batch)]).outputs

    found = [orjson.loads(output.value or b"") for output in outputs]
    assert [(decision["id"], decision["t"]) for decision in found] == [(1, 0), (2, 0), (3, 1), (4, 2)]
