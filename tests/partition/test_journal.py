"""What the proof of a state stands on: everything that was learned."""

from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.partition import LabelConfig, PartitionProcessor
from npstream.records import Record
from tests.partition.builders import config, labelled, mixed, processor, record


def decided(last: dict[str, object]) -> PartitionProcessor:
    """A processor that has learned from some hundred events, and from one more."""
    made = processor()
    made.process(labelled(300))
    made.process([record(300, last)])
    return made


def test_features_that_change_no_score_are_in_the_proof() -> None:
    """Two values beyond all bounds give the same score, hence the same decision, and leave different states."""
    far, farther = (decided({"id": 1, "x": [value, 0.1, 0.2], "y": -1}) for value in (1e9, 2e9))

    assert far.proof().chain == farther.proof().chain
    assert far.model.digest() != farther.model.digest()
    assert far.proof().state != farther.proof().state


def test_a_label_that_no_decision_has_followed_is_in_the_proof() -> None:
    """Another label for an observation that waits changes nothing that was published, and is noticed."""
    states = []
    for y in (1, -1):
        made = decided({"id": "late", "x": [0.1, 0.2, 0.3]})
        before = made.proof()
        made.process([record(301, {"id": "late", "y": y})])
        assert made.proof().chain == before.chain
        states.append(made.proof().state)

    assert len({*states}) == 2


def test_a_correction_is_in_the_proof() -> None:
    """Learned a second time under the other label, which no decision has followed."""
    made = processor(config(labels=LabelConfig(corrections=True)))
    made.process([record(0, {"id": "a", "x": [0.1, 0.2, 0.3], "y": 1})])
    before = made.proof(), made._journal.hexdigest()
    made.process([record(1, {"id": "a", "y": -1})])

    assert made.proof().chain == before[0].chain
    assert made._journal.hexdigest() != before[1]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=5), st.integers(0, 5))
def test_equal_proofs_mean_equal_states(cuts: list[int], seed: int) -> None:
    """Whatever restores were made on the way: where the proofs are equal, so are the weights."""
    records: list[Record] = mixed(300, seed)
    straight, moved = processor(), processor()
    straight.process(records)
    begin = 0
    for end in [*sorted(cuts), len(records)]:
        moved.process(records[begin:end])
        moved = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(moved.snapshot())))
        begin = end

    assert moved.proof() == straight.proof()
    assert moved.model.digest() == straight.model.digest()
