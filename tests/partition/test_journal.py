"""What the proof of a state stands on: everything that was learned."""

import hashlib
import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.model import Model, Op, Operations
from npstream.partition import LabelConfig, PartitionProcessor
from npstream.partition.journal import Journal
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


def test_a_journal_is_the_digest_of_plain_rows() -> None:
    """Features, score, and one number of label, decision and correction: a proof that was committed stays right."""
    code = np.array([Op.SCORE_LEARN, Op.SCORE, Op.LEARN, Op.SCORE_LEARN, Op.CORRECT], np.int8)
    x, y = np.arange(15, dtype=np.float32).reshape(5, 3), np.array([1, 0, -1, -1, 1], np.int8)
    operations = Operations(code, x, np.zeros(5), y, np.array([0, 1, 1, 2, 2], np.int32))
    outcome = Model.create(config().params).run(operations, np.zeros(3, np.int8))
    journal = Journal()
    journal.extend(operations, outcome)

    packed = b""
    for at in (0, 2, 3, 4):
        number = 16 * (code[at] == Op.CORRECT) + 4 * (int(y[at]) + 1) + int(outcome.decision[at]) + 1
        packed += struct.pack("<3f4xdQ", *x[at].tolist(), outcome.score[at], number)
    assert journal.hexdigest() == hashlib.blake2b(packed, digest_size=16).hexdigest()
    assert Journal.load(journal.dump()).hexdigest() == journal.hexdigest()


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
