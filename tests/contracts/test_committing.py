"""One commit: everything in it becomes visible together, or nothing ever does."""

import sqlite3

import pytest

from npstream.errors import Fatal, NpstreamError, Retryable, StateCorrupt
from npstream.port import Log
from npstream.records import Channel, Output, Pointer, Position
from tests.contracts.builders import (
    chunks,
    decision,
    events,
    eventually,
    joined,
    read_checkpoint,
    settled,
    share,
    values,
)
from tests.stage.places import PARTITIONS, EmbeddedPlace, Place


def test_a_commit_shows_outputs_positions_and_snapshot_together(place: Place, log: Log) -> None:
    """After a commit of two partitions all its parts can be read, each where it belongs."""
    broker = place.broker()
    joined(broker)

    pointers = broker.commit(
        [
            share(0, 5, [decision(b"a"), decision(b"bad", Channel.DEAD_LETTERS), decision(b"b")], chunks(2)),
            share(2, 9, [decision(b"c")], chunks(1), changes=[(b"change", b"tau")]),
        ]
    )

    places = [(channel, partition) for channel in place.topics.channels() for partition in (0, 2)]
    eventually(lambda: settled(log, places))
    assert values(log, Channel.DECISIONS, 0) == [b"a", b"b"]
    assert values(log, Channel.DEAD_LETTERS, 0) == [b"bad"]
    assert values(log, Channel.DECISIONS, 2) == [b"c"]
    assert values(log, Channel.CHECKPOINTS, 2) == [chunks(1)[0][1], b"tau"]
    assert broker.state.committed(0) == Position(5, pointers[0], share(0, 5, [decision(b"")] * 3).position.proof)
    assert broker.state.committed(1) is None
    assert [tuple(kv[1:]) for kv in read_checkpoint(broker.state, 0, pointers[0])] == chunks(2)
    assert [tuple(kv[1:]) for kv in read_checkpoint(broker.state, 2, pointers[2])] == chunks(1)


def test_outputs_keep_key_headers_and_timestamp(place: Place, log: Log) -> None:
    """An output is published as given, on its partition; a timestamp at or below zero becomes 1."""
    broker = place.broker()
    joined(broker)
    headers = [("npstream-offset", b"12"), ("traceparent", None)]
    outputs = [
        Output(Channel.DECISIONS, key, b"v", headers, ts)
        for key, ts in ((b"k", 1), (None, 0), (b"", -5), (b"x", 2**41))
    ]

    broker.commit([share(1, 1, outputs, chunks(1))])

    eventually(lambda: len(values(log, Channel.DECISIONS, 1)) == len(outputs))
    found = [(r.key, r.value, list(r.headers), r.timestamp_ms) for r in log.read(Channel.DECISIONS, 1, 0, 2**40)]
    assert found == [
        (b"k", b"v", headers, 1),
        (None, b"v", headers, 1),
        (b"", b"v", headers, 1),
        (b"x", b"v", headers, 2**41),
    ]


def test_a_share_that_cannot_be_written_takes_the_whole_commit_with_it(place: Place, log: Log) -> None:
    """Nothing of a failed commit is visible, and a new broker finds the former position."""
    broker = place.broker()
    joined(broker)
    pointer = broker.commit([share(0, 1, [decision(b"kept")], chunks(1))])[0]

    gone = share(0, 2, [decision(b"gone")], chunks(1), segments=[(b"segment", b"gone")])
    with pytest.raises(NpstreamError):
        broker.commit([gone, share(PARTITIONS + 5, 1, [decision(b"gone")])])
    broker.abandon()

    following = place.broker()
    joined(following)
    position = following.state.committed(0)
    assert position is not None
    assert (position.next_offset, position.pointer) == (1, pointer)
    assert values(log, Channel.DECISIONS, 0) == [b"kept"]
    assert values(log, Channel.CHECKPOINTS, 0) == [chunks(1)[0][1]]


def overtake(place: Place) -> None:
    """Commit on partition 0 as somebody who takes the first worker for dead."""
    if isinstance(place, EmbeddedPlace):  # its lock lets nobody in while the first lives: write past it
        with sqlite3.connect(place.path) as db:
            assert db.execute("UPDATE positions SET next_offset = 2 WHERE partition = 0").rowcount == 1
        db.close()
    else:
        twin = place.broker()
        joined(twin)
        twin.commit([share(0, 2, [decision(b"twin")], chunks(1))])


def test_a_worker_that_was_overtaken_publishes_nothing_more(place: Place, log: Log) -> None:
    """Its commit is fatal and no part of it is ever visible; the position is the one of the other."""
    broker = place.broker()
    joined(broker)
    broker.commit([share(0, 1, [decision(b"first")], chunks(1))])
    overtake(place)

    with pytest.raises(Fatal):
        broker.commit([share(0, 3, [decision(b"late")], chunks(1))])
    broker.abandon()

    following = place.broker()
    joined(following)
    position = following.state.committed(0)
    assert position is not None
    assert position.next_offset == 2
    eventually(lambda: settled(log, [(Channel.DECISIONS, 0)]))
    assert b"late" not in values(log, Channel.DECISIONS, 0)


def test_an_abandoned_broker_commits_no_more(place: Place, log: Log) -> None:
    """After abandon a commit is refused as retryable and leaves no trace."""
    broker = place.broker()
    joined(broker)
    broker.abandon()

    with pytest.raises(Retryable):
        broker.commit([share(0, 1, [decision(b"gone")], chunks(1))])

    assert values(log, Channel.DECISIONS, 0) == []


def test_a_later_commit_keeps_the_pointer_it_is_given(place: Place) -> None:
    """Without chunks the position points where it says: to the snapshot of an earlier commit."""
    broker = place.broker()
    joined(broker)
    pointer = broker.commit([share(0, 4, chunks=chunks(3, b"old"))])[0]

    pointers = broker.commit([share(0, 7, [decision(b"d")], pointer=pointer)])

    position = broker.state.committed(0)
    assert position is not None
    assert (pointers[0], position.pointer, position.next_offset) == (pointer, pointer, 7)
    assert [tuple(kv[1:]) for kv in read_checkpoint(broker.state, 0, pointer)] == chunks(3, b"old")


def test_commits_of_positions_alone_move_the_offset(place: Place) -> None:
    """A batch that publishes nothing is progress all the same, and no commit at all is none."""
    broker = place.broker()
    joined(broker)
    pointer = broker.commit([share(0, 1, chunks=chunks(1))])[0]

    for next_offset in range(2, 20):
        broker.commit([share(0, next_offset, pointer=pointer)])
    assert broker.commit([]) == {}

    position = broker.state.committed(0)
    assert position is not None
    assert position.next_offset == 19


def test_thousands_of_outputs_go_in_one_commit(place: Place, log: Log) -> None:
    """A large batch is published whole and in order."""
    broker = place.broker()
    joined(broker)
    outputs = [decision(b"%d" % i) for i in range(20_000)]

    broker.commit([share(0, 20_000, outputs, chunks(1))])

    eventually(lambda: len(values(log, Channel.DECISIONS, 0)) == 20_000)
    assert values(log, Channel.DECISIONS, 0) == [output.value for output in outputs]


def test_groups_do_not_see_each_others_positions(place: Place) -> None:
    """A position belongs to its group."""
    broker = place.broker()
    joined(broker)
    broker.commit([share(0, 1, chunks=chunks(1))])
    broker.close(5.0)

    place.group += "-other"
    assert place.broker().state.committed(0) is None


def test_a_snapshot_of_many_chunks_comes_back_whole(place: Place) -> None:
    """Three megabytes in four chunks are read back as they were written."""
    broker = place.broker()
    joined(broker)
    written = chunks(4, size=800_000)

    pointer = broker.commit([share(0, 1, chunks=written)])[0]

    found = read_checkpoint(broker.state, 0, pointer)
    assert [tuple(kv[1:]) for kv in found] == written
    assert [kv.offset for kv in found] == list(range(pointer.offset, pointer.offset + 4))


@pytest.mark.parametrize(
    "wrong", [Pointer(0, 3, 0, 0, ""), Pointer(50, 1, 0, 0, "")], ids=["too many chunks", "beyond the end"]
)
def test_a_pointer_to_chunks_that_are_not_there_is_refused(place: Place, wrong: Pointer) -> None:
    """Missing chunks are corrupt state, reported with the place."""
    broker = place.broker()
    joined(broker)
    broker.commit([share(0, 1, chunks=chunks(2))])

    with pytest.raises(StateCorrupt, match=f"offset {wrong.offset}"):
        read_checkpoint(broker.state, 0, wrong)


def test_compaction_keeps_the_newest_of_each_key(place: Place, log: Log) -> None:
    """Old snapshots go in time; the newest at each ring place and the change records stay readable."""
    broker = place.broker()
    joined(broker)
    written = 0

    def write() -> Pointer:
        nonlocal written
        written += 1
        snapshot = [(b"ring/%d/%d" % (written % 4, chunk), b"snapshot %d" % written) for chunk in range(2)]
        return broker.commit([share(0, written, chunks=snapshot)])[0]

    broker.commit([share(0, 0, chunks=chunks(1), changes=[(b"change/1", b"tau")])])
    for _ in range(100):
        write()

    def compacted() -> bool:
        pointer = write()
        found = [kv.value for kv in read_checkpoint(broker.state, 0, pointer)]
        assert found == [b"snapshot %d" % written] * 2
        return len(values(log, Channel.CHECKPOINTS, 0)) < written

    eventually(compacted, patience_s=90.0)
    kept = values(log, Channel.CHECKPOINTS, 0)
    assert b"tau" in kept
    assert {b"snapshot %d" % n for n in range(written - 3, written + 1)} <= set(kept)


def test_events_beside_the_worker_do_not_disturb_its_commits(place: Place, log: Log) -> None:
    """Appending events between commits changes nothing about either."""
    broker = place.broker()
    joined(broker)
    for turn in range(5):
        log.append(Channel.EVENTS, 0, events(10, first=10 * turn))
        broker.commit([share(0, turn, [decision(b"%d" % turn)], chunks(1))])

    eventually(lambda: len(values(log, Channel.DECISIONS, 0)) == 5)
    assert values(log, Channel.EVENTS, 0) == [value for _, value, _, _ in events(50)]
