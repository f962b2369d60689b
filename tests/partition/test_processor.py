"""The processor as a value-in, value-out machine."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.errors import SettingsError, StateCorrupt
from npstream.model import Params
from npstream.partition import LabelConfig, PartitionProcessor
from npstream.records import Channel, Output, Record
from tests.partition.builders import config, labelled, mixed, processor, record, split


def run(machine: PartitionProcessor, batches: list[list[Record]]) -> list[Output]:
    """All outputs of these batches, in order."""
    return [output for batch in batches for output in machine.process(batch).outputs]


def decision(output: Output) -> dict[str, object]:
    """The decision's fields."""
    assert output.channel == Channel.DECISIONS
    assert output.value is not None
    return dict(orjson.loads(output.value))


@pytest.mark.parametrize("records", [labelled(1500), mixed(1500), mixed(1500, seed=7)], ids=["labelled", "a", "b"])
@pytest.mark.parametrize("size", [1, 7, 500])
def test_batching_changes_nothing(records: list[Record], size: int) -> None:
    """However the same records are batched, outputs, proof and snapshot bytes are the same."""
    whole, parts = processor(), processor()

    assert run(whole, [records]) == run(parts, split(records, size))
    assert whole.proof() == parts.proof()
    assert encode_snapshot(whole.snapshot()) == encode_snapshot(parts.snapshot())


@pytest.mark.parametrize("size", [1, 7, 500])
def test_batching_changes_nothing_where_all_alarms_are_held_to_tau(size: int) -> None:
    """Threshold and budget follow each observation when it is decided, not the batch it came in."""
    using = config(params=Params(d=3, D=8, tau=0.1, budget=5.0, control="alarm_rate"))
    records = mixed(1500)
    whole, parts = processor(using), processor(using)

    assert run(whole, [records]) == run(parts, split(records, size))
    assert encode_snapshot(whole.snapshot()) == encode_snapshot(parts.snapshot())
    assert 0.05 < whole.tally.alarm_rate < 0.12


@pytest.mark.parametrize("cut", [0, 1, 255, 256, 257, 800, 1499])
def test_a_snapshot_continues_as_if_nothing_had_happened(cut: int) -> None:
    """Decoding a snapshot and going on gives the outputs and the state of the undisturbed run."""
    records = mixed(1500)
    undisturbed, first = processor(), processor()
    expected = run(undisturbed, [records])

    before = run(first, [records[:cut]])
    second = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(first.snapshot())))
    after = run(second, [records[cut:]])

    assert before + after == expected
    assert second.proof() == undisturbed.proof()
    assert encode_snapshot(second.snapshot()) == encode_snapshot(undisturbed.snapshot())


def test_a_restore_makes_one_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables cost more than most of what a snapshot holds, and a worker restores many partitions at once."""
    made = list[EventConfig]()

    class Counted(EventDecoder):
        def __init__(self, using: EventConfig) -> None:
            made.append(using)
            super().__init__(using)

    snapshot = processor().snapshot()
    monkeypatch.setattr("npstream.partition.processor.EventDecoder", Counted)
    PartitionProcessor.from_snapshot(snapshot)

    assert len(made) == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 400), max_size=6), st.integers(0, 5))
def test_any_number_of_restores_changes_nothing(cuts: list[int], seed: int) -> None:
    """A partition that moves between workers at any points decides what one worker would have decided."""
    records = mixed(400, seed)
    expected = run(processor(), [records])
    machine = processor()
    outputs: list[Output] = []
    edges = [0, *sorted(cuts), len(records)]
    for begin, end in pairwise(edges):
        machine = PartitionProcessor.from_snapshot(machine.snapshot())
        outputs += machine.process(records[begin:end]).outputs

    assert outputs == expected


def test_each_fate_of_a_label_is_counted() -> None:
    """Joined, early, late, duplicate and echoed labels are distinguished, as are repeated observations."""
    machine = processor(config(labels=LabelConfig(buffer_max=2)))
    x = [0.1, 0.2, 0.3]
    machine.process(
        [
            record(0, {"id": "a", "x": x}),
            record(1, {"id": "a", "x": x}),
            record(2, {"id": "a", "y": 1}),
            record(3, {"id": "a", "y": 1}),
            record(4, {"id": "b", "y": -1}),
            record(5, {"id": "b", "x": x}),
            record(6, {"id": "c", "x": x}),
            record(7, {"id": "d", "x": x}),
            record(8, {"id": "e", "x": x}),
            record(9, {"id": "c", "y": -1}),
            record(10, {"id": "d", "x": x, "y": -1, "kind": "label"}),
        ]
    )
    tally = machine.tally

    assert (tally.labels_joined, tally.labels_duplicate, tally.observations_duplicate) == (1, 1, 1)
    assert (tally.labels_early, tally.labels_late, tally.labels_echoed) == (1, 1, 1)
    assert (tally.observations_expired, len(machine.pending)) == (1, 1)
    assert tally.decisions == 6


def test_labels_that_come_alone_publish_nothing() -> None:
    """A label joins its observation and gets no decision; the model has learned."""
    machine = processor()
    outputs = run(machine, [[record(0, {"id": "a", "x": [0, 0, 0]}), record(1, {"id": "a", "y": -1})]])

    assert [decision(output)["id"] for output in outputs] == ["a"]
    assert machine.model.t == 1


def test_expired_observations_count_as_negatives_when_asked() -> None:
    """With on_expiry negative an observation nobody labels is learned as a non-target."""
    rules = config(labels=LabelConfig(buffer_max=10, expire_events=2, on_expiry="negative"))
    machine = processor(rules)
    machine.process([record(i, {"id": i, "x": [0, 0, 0]}) for i in range(5)])

    assert machine.model.negatives == 2
    assert machine.tally.observations_expired == 2


def test_one_far_future_timestamp_does_not_empty_the_buffer() -> None:
    """Event time advances by a bounded step an event, so a broken clock upstream cannot expire everything."""
    machine = processor(config(labels=LabelConfig(buffer_max=10, expire_seconds=60)))
    machine.process([record(0, {"id": 0, "x": [0, 0, 0]}, 1_000), record(1, {"id": 1, "x": [0, 0, 0]}, 10**15)])

    assert len(machine.pending) == 2


@pytest.mark.parametrize("first_ms", [0, 1, 1_700_000_000_000])
def test_event_time_begins_with_the_first_event_and_only_with_that(first_ms: int) -> None:
    """Whatever its time is; the second event moves it by a bounded step, also where the first was at zero."""
    machine = processor(config(labels=LabelConfig(buffer_max=10, expire_seconds=60)))
    machine.process([record(0, {"id": 0, "x": [0, 0, 0]}, first_ms)])
    begun = machine.snapshot().meta["clock_ms"]
    machine.process([record(1, {"id": 1, "x": [0, 0, 0]}, first_ms + 10**12)])

    assert begun == first_ms
    assert 0 < machine.snapshot().meta["clock_ms"] - first_ms <= 60_000
    assert len(machine.pending) == 2


def test_event_time_expires_what_waited_too_long() -> None:
    """Event time that moves on normally lets old observations go."""
    machine = processor(config(labels=LabelConfig(buffer_max=1000, expire_seconds=60)))
    machine.process([record(i, {"id": i, "x": [0, 0, 0]}, 1_000 + 500 * i) for i in range(300)])

    assert len(machine.pending) == 121


def test_bad_events_touch_nothing_but_the_dead_letters() -> None:
    """With rubbish in between, the good events' decisions are those of a run without it."""
    good = [record(2 * i, orjson.loads(item.value or b"")) for i, item in enumerate(labelled(300))]
    bad = [record(2 * i + 1, b'{"id":"bad","x":[1,2,' + b"0" * (i % 3)) for i in range(300)]
    mixed_up = sorted(good + bad)

    clean = run(processor(), [good])
    dirty = run(processor(config(dead_letter_cap=1.0)), [mixed_up])

    assert [output for output in dirty if output.channel == Channel.DECISIONS] == clean
    dead_letters = [output for output in dirty if output.channel == Channel.DEAD_LETTERS]
    assert [dead_letter.value for dead_letter in dead_letters] == [item.value for item in bad]


def test_the_cap_halts_before_the_dead_letter_that_is_too_many() -> None:
    """The batch is cut at the event that exceeds the cap; a higher cap goes on from there."""
    rules = config(dead_letter_cap=0.002)
    records = [record(i, b"rubbish") for i in range(5)]
    machine = processor(rules)
    step = machine.process(records)

    assert step.halted is not None
    assert "dead_letter_cap" in str(step.halted)
    assert step.next_offset == 2
    machine.reconfigure(replace(rules, dead_letter_cap=1.0))
    assert [output.key for output in machine.process(records[2:]).outputs] == [b"k2", b"k3", b"k4"]


def test_a_changed_cap_counts_from_a_new_block() -> None:
    """What the old cap let through is not held against the new one; another change leaves the block as it is."""
    loose = config(dead_letter_cap=1.0)
    strict = replace(loose, dead_letter_cap=0.002)
    records = [record(i, b"rubbish") for i in range(10)]
    machine = processor(loose)
    machine.process(records[:5])
    machine.reconfigure(strict)
    machine.process(records[5:6])
    machine.reconfigure(replace(strict, on_bad_event="1"))

    assert machine.process(records[6:]).next_offset == 7


def test_an_invalid_event_can_be_decided_nevertheless() -> None:
    """With on_bad_event an event whose id can be read gets a decision beside its dead letter."""
    machine = processor(config(on_bad_event="1"))
    outputs = run(machine, [[record(0, {"id": "a", "x": [1]}), record(1, b"?")]])

    assert [output.channel for output in outputs] == [Channel.DEAD_LETTERS, Channel.DECISIONS, Channel.DEAD_LETTERS]
    assert decision(outputs[1])["decision"] == 1
    assert decision(outputs[1])["reason"] == "invalid"


def test_tau_can_change_and_d_cannot() -> None:
    """A new tau shows in the next decision; another number of features is refused with the ways out."""
    machine = processor()
    first = run(machine, [labelled(10)])
    machine.reconfigure(config(params=replace(config().params, tau=0.2)))
    second = machine.process([record(10, {"x": [0, 0, 0]})]).outputs

    assert decision(first[-1])["tau"] == 0.1
    assert decision(second[0])["tau"] == 0.2
    with pytest.raises(SettingsError, match="npstream promote"):
        machine.reconfigure(config(params=Params(d=4, D=8, tau=0.1, budget=5.0)))


def test_a_smaller_buffer_lets_the_oldest_go() -> None:
    """Shrinking labels.buffer_max releases the oldest waiting observations and keeps the rest."""
    machine = processor()
    machine.process([record(i, {"id": i, "x": [0, 0, 0]}) for i in range(20)])
    machine.reconfigure(config(labels=LabelConfig(buffer_max=5)))
    machine.process([record(20, {"id": 3, "y": 1}), record(21, {"id": 19, "y": 1})])

    assert (machine.tally.labels_late, machine.tally.labels_joined) == (1, 1)
    assert machine.tally.observations_expired == 15


def test_partitions_start_from_different_directions() -> None:
    """The cold start is keyed by the partition, so that models are independent."""
    assert processor(partition=0).model.digest() != processor(partition=1).model.digest()


def test_a_snapshot_whose_parts_do_not_fit_is_refused() -> None:
    """State that does not belong together names the partition and the way back."""
    snapshot = processor().snapshot()
    broken = replace(snapshot, blobs={**snapshot.blobs, "model": snapshot.blobs["model"][:-8]})

    with pytest.raises(StateCorrupt, match="events/0"):
        PartitionProcessor.from_snapshot(broken)


def test_an_alarm_that_nobody_can_label_is_not_waited_for() -> None:
    """Observations sent again under a waiting id are decided and never count as alarms without a label."""
    loud = Params(preset="external", tau=0.5, budget=3.0, charge="issue")
    rules = config(params=loud, events=EventConfig(d=0, external=True))
    machine = processor(rules)
    machine.process([record(i, {"score": float(-i), "y": -1}) for i in range(10)])
    machine.process([record(i, {"id": "a", "score": 100.0}) for i in range(10, 20)])
    machine.process([record(20, {"id": "a", "y": 1})])

    assert machine.tally.alarms == 10
    assert machine.model.outstanding == 0


def test_the_tally_counts_what_was_published() -> None:
    """Decisions, alarms, and why the others are none."""
    made = processor()
    found = [decision(output) for output in run(made, [labelled(600)])]
    reasons = Counter(each["reason"] for each in found)
    tally = made.tally

    assert tally.decisions == len(found) == 600
    assert tally.alarms == sum(each["decision"] == 1 for each in found) > 0
    assert (tally.withheld_warmup, tally.withheld_budget) == (reasons["warmup"], reasons["budget"])
    assert reasons["warmup"] > 0
