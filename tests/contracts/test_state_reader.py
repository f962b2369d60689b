"""Looking at a group from outside, and moving its positions when nobody works for it."""

import time
from contextlib import closing

import pytest

from npstream.errors import NpstreamError, UsageError
from npstream.history.sole_member import commit_alone, require_nobody
from npstream.port import Log
from npstream.records import Channel
from tests.contracts.builders import PATIENCE_S, chunks, decision, eventually, joined, read_checkpoint, share, values
from tests.stage.places import PARTITIONS, Place


def test_a_state_sees_positions_snapshots_and_members_beside_a_worker(place: Place) -> None:
    """What a worker has committed can be read while it works, and the worker is named."""
    with closing(place.state()) as state:
        assert state.members() == []
        assert state.committed(0) is None
        broker = place.dynamic()
        joined(broker)
        pointers = broker.commit([share(0, 5, [decision(b"a")], chunks(2))])

        found = state.committed(0)
        assert found == broker.state.committed(0)
        assert found is not None
        assert found.pointer == pointers[0]
        assert [tuple(kv[1:]) for kv in read_checkpoint(state, 0, found.pointer)] == chunks(2)
        assert len(state.members()) == 1
        broker.close(5.0)
        eventually(lambda: state.members() == [])


def test_a_tool_moves_positions_while_nobody_works(place: Place, log: Log) -> None:
    """Snapshot, position and records are there for the next worker, which starts where it should."""
    with closing(place.state()) as state:
        shares = [share(p, 7 + p, chunks=chunks(1), changes=[(b"g/t/0/change/%020d" % 7, b"{}")]) for p in (0, 2)]
        require_nobody(state, "g", "")

        commit_alone(place.tool(), PARTITIONS, {0: None, 2: None}, shares, time.monotonic, PATIENCE_S)

        eventually(lambda: state.members() == [])
        assert [None if at is None else at.next_offset for at in map(state.committed, range(PARTITIONS))] == [
            *(7, None, 9)
        ]
        eventually(lambda: len(values(log, Channel.CHECKPOINTS, 2)) == 2)
        worker = place.broker()
        assert {p: worker.state.committed(p) is not None for p in range(PARTITIONS)} == {0: True, 1: False, 2: True}


def test_a_tool_refuses_while_a_worker_is_active(place: Place) -> None:
    """The refusal names the worker, and nothing is committed even by a tool that did not ask first."""
    broker = place.dynamic()
    joined(broker)
    with closing(place.state()) as state:
        with pytest.raises(UsageError, match="active members"):
            require_nobody(state, "g", "")
        with pytest.raises(NpstreamError):
            commit_alone(place.tool(), PARTITIONS, {}, [share(0, 3, chunks=chunks(1))], time.monotonic, 1.0)
        broker.abandon()
        eventually(lambda: state.members() == [])
        assert state.committed(0) is None


def test_a_tool_refuses_when_a_position_moved_meanwhile(place: Place) -> None:
    """A plan made from an older position is thrown away."""
    broker = place.dynamic()
    joined(broker)
    broker.commit([share(0, 5, chunks=chunks(1))])
    broker.close(5.0)
    with closing(place.state()) as state:
        eventually(lambda: state.members() == [])
        with pytest.raises(UsageError, match="has moved"):
            commit_alone(
                place.tool(), PARTITIONS, {0: None}, [share(0, 3, chunks=chunks(1))], time.monotonic, PATIENCE_S
            )
        at = state.committed(0)
        assert at is not None
        assert at.next_offset == 5
