"""A restore costs the same whatever the age of the checkpoint topic, and is one round for all partitions."""

from dataclasses import replace

import pytest

from npstream.embedded import EmbeddedBroker
from npstream.errors import StateCorrupt
from npstream.kafka import KafkaBroker
from npstream.port import Log
from npstream.records import Channel, KeyValue, Position, Record
from tests.contracts.builders import chunks, events, joined, read_checkpoint, share
from tests.simulation.broker import SimulatedBroker
from tests.stage.places import Place


@pytest.mark.parametrize("written", [10, 1000])
def test_a_restore_reads_as_many_records_as_its_snapshot_has_chunks(place: Place, written: int) -> None:
    """After ten and after a thousand checkpoints the next worker reads two records, and they are the newest."""
    first = place.broker()
    joined(first)
    for turn in range(1, written + 1):
        snapshot = [(b"ring/%d/%d" % (turn % 4, chunk), b"snapshot %d" % turn) for chunk in range(2)]
        first.commit([share(0, turn, chunks=snapshot)])
    first.close(5.0)

    following = place.broker()
    assert isinstance(following, EmbeddedBroker | KafkaBroker | SimulatedBroker)
    position = following.state.committed(0)
    assert position is not None
    assert position.next_offset == written
    chunks = read_checkpoint(following.state, 0, position.pointer)

    assert [chunk.value for chunk in chunks] == [b"snapshot %d" % written] * 2
    assert following.state.records_read == 2


def test_many_partitions_are_read_in_one_round(place: Place, log: Log) -> None:
    """Positions and snapshots come for all that were asked for; what is wrong with one is in its place alone."""
    owner = place.broker()
    joined(owner)
    pointers = owner.commit([share(0, 3, chunks=chunks(2, b"old")), share(1, 4, chunks=chunks(3))])
    pointers |= owner.commit([share(0, 5, chunks=chunks(1, b"new"))])

    found = owner.state.all_committed([0, 1, 2])
    lost = replace(pointers[1], offset=pointers[1].offset + 1)
    read = dict(owner.state.read_checkpoints({0: pointers[0], 1: lost}))

    assert {p: at.next_offset if isinstance(at, Position) else at for p, at in found.items()} == {0: 5, 1: 4, 2: None}
    assert [chunk.value for chunk in _whole(read[0])] == [value for _, value in chunks(1, b"new")]
    assert isinstance(read[1], StateCorrupt)
    assert owner.state.all_committed([]) == {}
    assert list(owner.state.read_checkpoints({})) == []


def test_many_ranges_are_read_in_one_round(place: Place, log: Log) -> None:
    """Each range holds what reading it alone gives, in order, however the ranges come interleaved."""
    for partition in (0, 2):
        log.append(Channel.EVENTS, partition, events(1500, first=partition))
    log.append(Channel.DECISIONS, 1, events(3))
    ranges = {
        (Channel.EVENTS, 0): (10, 1200),
        (Channel.EVENTS, 1): (0, 100),
        (Channel.EVENTS, 2): (1499, 9999),
        (Channel.DECISIONS, 1): (1, 2),
    }

    together: dict[tuple[Channel, int], list[Record]] = {place: [] for place in ranges}
    for where, record in log.read_all(ranges):
        assert isinstance(record, Record)
        together[where].append(record)

    assert together == {where: list(log.read(*where, begin, end)) for where, (begin, end) in ranges.items()}
    assert [len(records) for records in together.values()] == [1190, 0, 1, 1]


def _whole(found: list[KeyValue] | StateCorrupt) -> list[KeyValue]:
    assert not isinstance(found, StateCorrupt), found
    return found
