"""Labels on a topic of their own, in the processor: the merge is part of the input, and every output records it."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.dead_letters import read_dead_letter
from npstream.codec.envelope import LABELS_HEADER
from npstream.codec.labels import LabelTopic
from npstream.codec.position import decode_position, encode_position
from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.errors import StateCorrupt
from npstream.partition import PartitionProcessor
from npstream.partition.merges import MergeByTime
from npstream.records import Channel, LabelPosition, Merge, Output, Pointer, Position, Proof, Record
from tests.partition.builders import config, processor, record, split, two_topics, with_labels_topic


def mark(output: Output) -> int | None:
    """The label offset that a decision names."""
    found = [content for name, content in output.headers if name == LABELS_HEADER]
    return int(found[0] or b"") if found else None


def run(machine: PartitionProcessor, batches: Sequence[list[Record]], merges: Sequence[Merge]) -> list[Output]:
    """All outputs of these batches; each call gets all merges, as a replay does."""
    return [output for batch in batches for output in machine.process(batch, merges).outputs]


def by_chance(events: list[Record], labels: list[Record], cuts: list[tuple[int, int]]) -> list[Merge]:
    """A merge that no clock would make: labels up to an index before the event at another."""
    merges, done = [], 0
    for at, until in sorted(cuts):
        if until > done:
            merges.append(Merge(events[at].offset, labels[done:until]))
            done = until
    return merges


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 299), st.integers(0, 60)), max_size=12),
    st.integers(0, 5),
    st.sampled_from([1, 7, 100]),
)
def test_any_merge_gives_the_same_however_it_is_batched(cuts: list[tuple[int, int]], seed: int, size: int) -> None:
    """Outputs, proof and snapshot depend on events, labels and their merge, not on batches and restores."""
    events, labels = two_topics(300, seed)
    merges = by_chance(events, labels, cuts)
    whole, parts = processor(with_labels_topic()), processor(with_labels_topic())

    expected = run(whole, [events], merges)
    found: list[Output] = []
    for batch in split(events, size):
        parts = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(parts.snapshot())))
        found += parts.process(batch, merges).outputs

    assert found == expected
    assert parts.proof() == whole.proof()
    assert encode_snapshot(parts.snapshot()) == encode_snapshot(whole.snapshot())


def test_the_decisions_record_the_merge() -> None:
    """Following their marks alone leads to the same outputs and the same state."""
    events, labels = two_topics(400)
    first, second = processor(with_labels_topic()), processor(with_labels_topic())
    outputs = run(first, [events], MergeByTime(labels)(events))
    decisions = [output for output in outputs if output.channel is Channel.DECISIONS]
    marks = [(int(output.headers[0][1] or b""), mark(output) or 0) for output in decisions]

    recorded = [
        Merge(offset, labels[before:after])
        for (_, before), (offset, after) in pairwise([(-1, 0), *marks])
        if after > before
    ]

    assert len(recorded) > 50
    assert run(second, split(events, 33), recorded) == outputs
    assert second.proof() == first.proof()


def test_labels_wait_for_an_observation() -> None:
    """They are learned before the next event that is decided: not before a label, nor a bad event."""
    machine = processor(with_labels_topic(on_bad_event="-1"))
    x = [0.1, 0.2, 0.3]
    merge = Merge(1, [record(0, {"id": "a", "y": 1})])
    steps = [
        machine.process([record(0, {"id": "a", "x": x})], [merge]),
        machine.process([record(1, {"id": "z", "y": 1}), record(2, {"id": "b", "x": [1]})], [merge]),
        machine.process([record(3, {"id": "c", "x": x})], [merge]),
    ]

    assert [step.merges for step in steps] == [(), (), ((3, 1),)]
    assert [mark(output) for step in steps for output in step.outputs if output.channel is Channel.DECISIONS] == [
        0,
        0,
        1,
    ]
    assert machine.tally.labels_joined == 1
    assert machine.next_label == 1


def test_a_bad_label_is_a_dead_letter_before_the_decision_it_came_with() -> None:
    """It names its own topic and offset, and the event it was read before; nothing of it is lost."""
    machine = processor(with_labels_topic())
    step = machine.process(
        [record(7, {"id": "a", "x": [0.1, 0.2, 0.3]})], [Merge(7, [record(4, b"{"), record(5, {"id": "q", "y": 9})])]
    )

    assert [output.channel for output in step.outputs] == [
        Channel.DEAD_LETTERS,
        Channel.DEAD_LETTERS,
        Channel.DECISIONS,
    ]
    letters = [read_dead_letter(Record(0, o.timestamp_ms, o.key, o.value, o.headers)) for o in step.outputs[:2]]
    assert [(letter.topic, letter.offset, letter.reason) for letter in letters] == [
        ("labels", 4, "not_json"),
        ("labels", 5, "bad_label"),
    ]
    assert letters[0].value == b"{"
    assert step.outputs[0].headers[-1] == ("npstream-before", b"7")
    assert machine.tally.dead_letters == 2


def test_the_cap_on_dead_letters_takes_a_merge_as_a_whole_or_not_at_all() -> None:
    """Too many bad labels halt the partition in front of the observation; with a higher cap it goes on there."""
    machine = processor(with_labels_topic(dead_letter_cap=0.001))
    events = [record(0, {"id": "a", "x": [0.1, 0.2, 0.3]})]
    merge = Merge(0, [record(0, {"id": "a", "y": 1}), record(1, b"{"), record(2, b"{")])
    before = encode_snapshot(machine.snapshot())

    step = machine.process(events, [merge])

    assert isinstance(step.halted, StateCorrupt)
    assert "labels/0" in str(step.halted)
    assert (step.next_offset, step.outputs, machine.next_label) == (0, [], 0)
    assert encode_snapshot(machine.snapshot()) == before
    machine.reconfigure(with_labels_topic(dead_letter_cap=1.0))
    assert [output.channel for output in machine.process(events, [merge]).outputs] == [2, 2, 1]


def test_without_a_labels_topic_nothing_speaks_of_one() -> None:
    """Decisions have no mark of one, and the state no offset."""
    machine = processor()
    outputs = run(machine, [two_topics(200)[0]], ())

    assert {mark(output) for output in outputs} == {None}
    assert config().to_dict()["label_topic"] is None
    assert machine.snapshot().meta["next_label"] is None


def test_a_labels_topic_of_another_name_is_read_from_its_first_record() -> None:
    """The offset of the old one means nothing in the new one; the same name with other paths goes on."""
    machine = processor(with_labels_topic())
    events, labels = two_topics(100)
    run(machine, [events], MergeByTime(labels)(events))
    reached = machine.next_label
    assert reached

    machine.reconfigure(with_labels_topic(label_topic=LabelTopic("labels", "other")))
    assert machine.next_label == reached
    machine.reconfigure(config())
    without = machine.next_label
    machine.reconfigure(with_labels_topic())
    assert [without, machine.next_label] == [None, 0]


merges = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)), max_size=200)


@given(merges, st.integers(0, 2**40), st.integers(0, 2**40))
def test_a_position_keeps_its_merges(steps: list[tuple[int, int]], offset: int, saved: int) -> None:
    """What is written is read again, and nothing else is taken for it."""
    at, label, made = offset, saved, []
    for events, labels in steps:
        at, label = at + events, label + labels
        made.append((at, label))
    position = Position(at, Pointer(1, 2, 3, offset, "ef"), Proof(1, "ab", "cd"), LabelPosition(saved, tuple(made)))

    assert decode_position(at, encode_position(position)) == position
    with pytest.raises(StateCorrupt):
        decode_position(at, encode_position(position).replace('"labels":[', '"labels":[-'))
