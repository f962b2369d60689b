"""Whole batches against their events one by one."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.decisions import default_id
from npstream.codec.decoder import EventConfig
from npstream.codec.envelope import decision_headers, published_timestamp
from npstream.codec.snapshot import encode_snapshot
from npstream.model import Outcome, Params
from npstream.partition import LabelConfig, PartitionConfig, PartitionProcessor
from npstream.partition.dead_letter_cap import BLOCK, DeadLetterCap
from npstream.partition.outputs import OutputBuilder
from npstream.records import Record
from tests.partition.builders import D, config

EXTERNAL = config(params=Params(preset="external", tau=0.2, budget=3.0), events=EventConfig(d=0, external=True))
TIMED = config(labels=LabelConfig(buffer_max=50, expire_seconds=30.0))
F32 = config(events=EventConfig(d=D, format="f32"))


headers = st.lists(st.tuples(st.sampled_from(["traceparent", "b3", "other"]), st.binary(max_size=3)), max_size=2)
stamps = st.integers(-5, 200_000) | st.sampled_from([0, 10**15])
names = st.none() | st.integers(0, 9) | st.sampled_from(["a", "a,b", "é"])
rows = st.tuples(
    names, st.lists(st.floats(-3, 3, width=32), min_size=D, max_size=D), st.sampled_from([1, -1]), stamps, headers
)


def as_record(offset: int, row: tuple[Any, ...], using: PartitionConfig) -> Record:
    """One labelled event in the format of the rules."""
    name, x, y, stamp, own = row
    key = None if name is None else b"k%d" % offset
    if using.events.format == "f32":
        reported = [] if name is None else [("id", str(name).encode())]
        return Record(offset, stamp, key, np.array(x, "<f4").tobytes(), [*reported, ("y", b"%d" % y), *own])
    features = {"score": x[0]} if using.events.external else {"x": x}
    return Record(offset, stamp, key, orjson.dumps({"id": name, **features, "y": y}), own)


@pytest.mark.parametrize("using", [config(), TIMED, EXTERNAL, F32], ids=["counted", "timed", "external", "f32"])
@given(events=st.lists(rows, min_size=1, max_size=40), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9))
@settings(max_examples=40, deadline=None)
def test_a_batch_is_taken_as_event_by_event(
    using: PartitionConfig, events: list[tuple[Any, ...]], sizes: list[int]
) -> None:
    """The same outputs, counters, event time, proof and snapshot, whatever ids, times and headers the events have."""
    together, apart = (PartitionProcessor.cold(using, "g", "events", 0, 0, None) for _ in range(2))
    records = [as_record(3 * i, row, using) for i, row in enumerate(events)]
    at = 0
    for size in [*sizes, len(records)]:
        batch, at = records[at : at + size], at + size
        outputs = together.process(batch).outputs
        assert outputs == [output for each in batch for output in apart.process([each]).outputs]

    assert together.tally == apart.tally
    assert together.proof() == apart.proof()
    assert encode_snapshot(together.snapshot()) == encode_snapshot(apart.snapshot())


@given(st.lists(st.integers(0, 2500), max_size=4), st.integers(0, 400))
def test_counting_many_records_is_counting_each(sizes: list[int], bad: int) -> None:
    """Blocks begin where they would, so that the cap does not see batches."""
    short, long = DeadLetterCap(1.0, bad=bad, seen=bad), DeadLetterCap(1.0, bad=bad, seen=bad)
    for size in sizes:
        short.count(size)
        for _ in range(size):
            long.count(1)

    assert (short.seen, short.bad) == (long.seen, long.bad)
    assert short.seen < BLOCK


@given(st.lists(rows, min_size=1, max_size=6), st.data())
def test_many_decisions_are_those_of_each(events: list[tuple[Any, ...]], data: st.DataObject) -> None:
    """All records of a batch or some of them: each decision has its own event's key, id, time, headers and offset."""
    using = config()
    records = [as_record(7 * i, row, using) for i, row in enumerate(events)]
    ids = [row[0] for row in events]
    chosen = sorted(data.draw(st.sets(st.integers(0, len(records) - 1), min_size=1)))
    publisher = OutputBuilder(using, "events", 4)
    column = np.arange(len(chosen), dtype=np.float64)

    def outcome(at: slice) -> Outcome:
        side = np.where(column % 2 > 0, 1, -1).astype(np.int8)
        numbers = [column + step / 3 for step in range(4)]
        parts: list[Any] = [side, np.zeros(len(column), np.int8), *numbers, column.astype(np.int64), side > 0]
        parts += [np.zeros((len(column), 1), np.int32), column[:, np.newaxis] / 7, side < 0]
        return Outcome(*(np.ascontiguousarray(part[at]) for part in parts))

    together = publisher.decisions(records, ids, outcome(slice(None)), chosen)
    alone = [
        publisher.decisions([records[event]], [ids[event]], outcome(slice(i, i + 1)), [0])
        for i, event in enumerate(chosen)
    ]

    assert together == [output for (output,) in alone]
    for event, output in zip(chosen, together, strict=True):
        offset, stamp, key, _, own = records[event]
        assert (output.key, output.timestamp_ms) == (key, published_timestamp(stamp))
        assert output.headers == decision_headers(offset, own)
        name = default_id("events", 4, offset) if ids[event] is None else ids[event]
        assert orjson.loads(output.value or b"")["id"] == name
