"""A restore costs the same whatever the age of the checkpoint topic."""

import pytest

from npstream.embedded import EmbeddedBroker
from npstream.kafka import KafkaBroker
from tests.contracts.builders import joined, share
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
    chunks = following.state.read_checkpoint(0, position.pointer)

    assert [chunk.value for chunk in chunks] == [b"snapshot %d" % written] * 2
    assert following.state.records_read == 2
