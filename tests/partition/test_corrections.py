"""Labels that are overruled: what a partition makes of them, in any batching, through any restore."""

from collections.abc import Mapping, Sequence

import pytest

from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.partition import LabelConfig, PartitionConfig, PartitionProcessor
from npstream.records import Merge, Record
from tests.partition.builders import config, overruled, processor, record, split, with_labels_topic

X = [0.1, 0.2, 0.3]


def correcting(**labels: object) -> PartitionConfig:
    """Small model, short buffer; observations stay after their label."""
    return config(labels=LabelConfig(**({"buffer_max": 50, "expire_events": 200, "corrections": True} | labels)))  # type: ignore[arg-type]


def taking(machine: PartitionProcessor, *values: Mapping[str, object]) -> PartitionProcessor:
    """The same after these events."""
    begin = machine.next_offset
    machine.process([record(begin + at, value) for at, value in enumerate(values)])
    return machine


def counted(machine: PartitionProcessor) -> tuple[int, int, int]:
    """Labelled non-targets and targets, and how often the model has learned."""
    return machine.model.negatives, machine.model.positives, machine.model.t


@pytest.mark.parametrize("size", [1, 7, 500])
@pytest.mark.parametrize("seed", [0, 1])
def test_batching_and_restores_change_nothing(size: int, seed: int) -> None:
    """However the same records are batched, and whatever snapshots are gone through: outputs, proof and state."""
    records = overruled(1200, seed)
    whole, parts = processor(correcting()), processor(correcting())
    expected = whole.process(records).outputs
    found = []
    for part in split(records, size):
        found += parts.process(part).outputs
        if size > 1:
            parts = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(parts.snapshot())))

    assert found == expected
    assert parts.proof() == whole.proof()
    assert encode_snapshot(parts.snapshot()) == encode_snapshot(whole.snapshot())
    assert whole.tally.labels_corrected > 50
    assert whole.pending.labelled > 5


@pytest.mark.parametrize(
    "first",
    [
        [{"id": "a", "x": X}, {"id": "a", "y": -1}],
        [{"id": "a", "x": X, "y": -1}],
        [{"id": "a", "y": -1}, {"id": "a", "x": X}],
        [{"id": "a", "x": X}, {"id": "a", "x": X, "y": -1, "kind": "label"}],
    ],
    ids=["joined", "with event", "early", "echoed"],
)
@pytest.mark.parametrize("second", [{"id": "a", "y": 1}, {"id": "a", "x": X, "y": 1, "kind": "label"}])
def test_the_last_label_wins_however_the_first_one_came(
    first: Sequence[dict[str, object]], second: dict[str, object]
) -> None:
    """Counted by the last label alone; learned each time, for a model cannot unlearn."""
    machine = taking(processor(correcting()), *first)
    assert counted(machine) == (1, 0, 1)
    taking(machine, second)
    assert counted(machine) == (0, 1, 2)
    taking(machine, second)
    assert counted(machine) == (0, 1, 2)
    taking(machine, {"id": "a", "y": -1})
    assert counted(machine) == (1, 0, 3)
    assert (machine.tally.labels_corrected, machine.tally.labels_duplicate) == (2, 1)
    assert (machine.pending.waiting, machine.pending.labelled) == (0, 1)


def test_without_corrections_the_first_label_stands() -> None:
    """A second one that says the same is a duplicate, one that says something else is late."""
    machine = taking(processor(), {"id": "a", "x": X}, {"id": "a", "y": -1}, {"id": "a", "y": -1}, {"id": "a", "y": 1})

    assert counted(machine) == (1, 0, 1)
    assert (machine.tally.labels_duplicate, machine.tally.labels_late, machine.tally.labels_corrected) == (1, 1, 0)
    assert len(machine.pending) == 0


def test_an_observation_is_corrected_until_it_expires() -> None:
    """As long as one without a label would wait; nothing is learned when it leaves."""
    machine = taking(processor(correcting(expire_events=3, on_expiry="negative")), {"id": "a", "x": X, "y": 1})
    taking(machine, *[{"x": X, "y": -1}] * 3)
    assert machine.pending.labelled == 1
    taking(machine, {"x": X, "y": -1}, {"id": "a", "y": -1})

    assert (machine.pending.labelled, machine.tally.labels_late, machine.tally.observations_expired) == (0, 1, 0)
    assert counted(machine) == (4, 1, 5)


def test_none_that_waits_is_pushed_out_by_one_that_has_its_label() -> None:
    """Room is made by the oldest with a label; where there is none, a labelled observation does not stay."""
    machine = processor(correcting(buffer_max=3))
    taking(machine, {"id": 1, "x": X}, {"id": 2, "x": X, "y": 1}, {"id": 3, "x": X, "y": 1}, {"id": 4, "x": X})
    assert (machine.pending.waiting, machine.pending.labelled) == (2, 1)
    taking(machine, {"id": 2, "y": -1}, {"id": 3, "y": -1})
    assert (machine.tally.labels_late, machine.tally.labels_corrected) == (1, 1)
    taking(machine, {"id": 5, "x": X}, {"id": 6, "x": X, "y": 1}, {"id": 6, "y": -1})
    assert (machine.pending.waiting, machine.pending.labelled) == (3, 0)
    assert (machine.tally.observations_expired, machine.tally.labels_corrected) == (0, 1)


def test_turned_off_what_has_its_label_leaves() -> None:
    """At the next event nothing can be corrected any more; those that wait go on waiting. Turned on, they stay."""
    machine = taking(processor(correcting()), {"id": 1, "x": X}, {"id": 2, "x": X, "y": 1}, {"id": 3, "x": X})
    machine.reconfigure(config(labels=LabelConfig(buffer_max=50)))
    assert (machine.pending.waiting, machine.pending.labelled) == (2, 0)
    taking(machine, {"id": 2, "y": -1}, {"id": 1, "y": 1})
    assert counted(machine) == (0, 2, 2)
    machine = PartitionProcessor.from_snapshot(machine.snapshot())
    machine.reconfigure(correcting())
    taking(machine, {"id": 3, "y": 1}, {"id": 3, "y": -1})
    assert counted(machine) == (1, 2, 4)


def test_labels_of_a_topic_of_their_own_are_corrected_too() -> None:
    """Taken before observations, like all of them."""
    using = with_labels_topic(labels=LabelConfig(buffer_max=50, corrections=True))
    machine = processor(using)
    events: list[Record] = [record(at, {"id": at, "x": X}) for at in range(4)]
    labels = [record(at, {"id": 0, "y": y}) for at, y in enumerate((1, -1, -1))]
    machine.process(events, [Merge(1, labels[:1]), Merge(2, labels[1:])])

    assert counted(machine) == (1, 0, 2)
    assert (machine.tally.labels_corrected, machine.tally.labels_duplicate) == (1, 1)


def test_reviewed_samples_are_corrected_by_their_weight() -> None:
    """The label's count in its class is taken back, and the other class has it."""
    labels = LabelConfig(buffer_max=200, review=0.5, corrections=True)
    machine = processor(config(labels=labels))
    records = [record(at, {"id": at, "x": X}) for at in range(100)]
    asked = [
        at for at, output in enumerate(machine.process(records).outputs) if b'"review":true' in (output.value or b"")
    ]
    n, wrong = len(asked), 7
    taking(machine, *[{"id": at, "y": 1 if i < wrong else -1} for i, at in enumerate(asked)])
    before = machine.review.labels()
    taking(machine, *[{"id": at, "y": -1} for at in asked])
    after = machine.review.labels()

    assert before is not None
    assert after is not None
    assert (before.other_non_targets[1], before.other_targets[1]) == ((n - wrong, 0.5), (wrong, 0.5))
    assert (after.other_non_targets[1], after.other_targets[1]) == ((n, 0.5), (0, 0.5))
    assert machine.tally.labels_corrected == wrong
