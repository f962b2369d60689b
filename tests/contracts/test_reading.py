"""What a broker hands to the worker."""

import threading
from collections.abc import Mapping, Sequence

import pytest

from npstream.errors import Fatal
from npstream.port import Log
from npstream.records import Channel, Headers, Record, Topics
from tests.contracts.builders import Owner, chunks, events, joined, offsets, share
from tests.stage.places import PARTITIONS, Place


def plain(records: list[Record]) -> list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]]:
    return [(r.key, r.value, list(r.headers), r.timestamp_ms) for r in records]


def test_records_come_in_offset_order_and_in_bounded_batches(place: Place, log: Log) -> None:
    """Each partition's records come once, whole and in order, however small the batches."""
    for partition in range(PARTITIONS):
        log.append(Channel.EVENTS, partition, events(40, first=100 * partition))
    broker = place.broker()
    owner = joined(broker, max_records=7)

    got = owner.collect(40 * PARTITIONS, max_records=7)

    assert {p: plain(records) for p, records in got.items()} == {
        partition: events(40, first=100 * partition) for partition in range(PARTITIONS)
    }
    assert all([r.offset for r in records] == list(range(40)) for records in got.values())


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (None, b"v", []),
        (b"k", None, []),
        (None, None, []),
        (b"", b"", []),
        (b"\x00\xff", bytes(range(256)), []),
        (b"k", b"v", [("a", b"1"), ("a", b"2"), ("ünï", b"\xff\x00"), ("empty", b""), ("none", None)]),
    ],
)
def test_a_record_is_handed_out_as_it_was_written(
    place: Place, log: Log, key: bytes | None, value: bytes | None, headers: Headers
) -> None:
    """Absent and empty are different things, and header order is kept."""
    log.append(Channel.EVENTS, 0, [(key, value, headers, 1234)])
    broker = place.broker()
    owner = joined(broker)

    assert plain(owner.collect(1)[0]) == [(key, value, list(headers), 1234)]
    assert plain(list(log.read(Channel.EVENTS, 0, 0, 1))) == [(key, value, list(headers), 1234)]


def test_records_written_during_a_poll_are_seen_by_it(place: Place) -> None:
    """A waiting poll wakes up for what another thread writes."""
    broker = place.broker()
    joined(broker)
    writer = threading.Timer(0.2, lambda: place.log().append(Channel.EVENTS, 1, events(1)))
    writer.start()

    batches = broker.poll(10, 30.0)

    writer.join()
    assert [(batch.partition, [r.value for r in batch.records]) for batch in batches] == [(1, [b"event 0"])]


def test_an_idle_poll_ends_by_itself(place: Place) -> None:
    """Nothing to read is an empty result, not an endless wait."""
    broker = place.broker()
    joined(broker)

    assert broker.poll(10, 0.05) == []


def test_a_partition_starts_where_the_listener_says(place: Place, log: Log) -> None:
    """The listener's return value is the first offset handed out."""
    for partition in range(PARTITIONS):
        log.append(Channel.EVENTS, partition, events(10))
    broker = place.broker()
    owner = joined(broker, starts={0: 4, 1: 0, 2: 10})

    assert offsets(owner.collect(16)) == {0: list(range(4, 10)), 1: list(range(10))}


def test_a_partition_without_a_start_stays_silent(place: Place, log: Log) -> None:
    """None pauses a partition and leaves the others alone."""
    for partition in range(PARTITIONS):
        log.append(Channel.EVENTS, partition, events(10))
    broker = place.broker()
    owner = joined(broker, starts={1: None})

    got = owner.collect(20)

    assert sorted(got) == [0, 2]
    assert broker.poll(100, 0.3) == []


def test_a_paused_partition_stays_silent_while_the_others_go_on(place: Place, log: Log) -> None:
    """After pause nothing more of that partition is handed out, though more is written."""
    for partition in range(PARTITIONS):
        log.append(Channel.EVENTS, partition, events(10))
    broker = place.broker()
    owner = joined(broker)
    owner.collect(30)

    owner.paused.add(1)
    for partition in range(PARTITIONS):
        log.append(Channel.EVENTS, partition, events(5))
    got = owner.collect(10)

    assert sorted(got) == [0, 2]
    assert broker.poll(100, 0.3) == []


def test_a_restarted_worker_resumes_at_the_committed_offsets(place: Place, log: Log) -> None:
    """What was committed is not read again, what was not committed is."""
    for partition in range(PARTITIONS):
        log.append(Channel.EVENTS, partition, events(10))
    first = place.broker()
    joined(first).collect(30)
    first.commit([share(0, 10, chunks=chunks(1)), share(1, 3, chunks=chunks(1))])
    first.abandon()

    owner = joined(place.broker())

    assert offsets(owner.collect(17)) == {1: list(range(3, 10)), 2: list(range(10))}


def test_events_deleted_before_they_were_read_stop_their_partition_only(place: Place, log: Log) -> None:
    """The listener gets the partition that has lost its place and why; the others go on."""
    for partition in range(PARTITIONS):
        log.append(Channel.EVENTS, partition, events(10))
    place.trim(1, 5)
    broker = place.broker()
    owner = joined(broker, starts={0: 0, 1: 2, 2: 0})

    owner.poll_until(lambda: bool(owner.failures))

    assert offsets(owner.collect(20)) == {0: list(range(10)), 2: list(range(10))}
    assert set(owner.failures) == {1}
    assert "offset 2" in str(owner.failures[1])


def test_close_lets_the_listener_go_and_abandon_does_not(place: Place) -> None:
    """A polite leave calls on_revoked with everything owned; abandoning calls nobody."""
    polite = place.broker()
    owner = joined(polite)
    polite.close(5.0)
    assert owner.reported[-1] == ("revoked", (0, 1, 2))

    abrupt = place.broker()
    owner = joined(abrupt)
    reported = list(owner.reported)
    abrupt.abandon()
    assert owner.reported == reported


def test_a_listener_may_commit_a_last_checkpoint_while_closing(place: Place) -> None:
    """What on_revoked commits is there for the next owner."""
    broker = place.broker()
    owner = joined(broker)
    owner.on_revoke = lambda partitions: broker.commit([share(p, 0, chunks=chunks(1)) for p in partitions])
    broker.close(5.0)

    following = place.broker()
    assert [following.state.committed(partition) is not None for partition in range(PARTITIONS)] == [True] * PARTITIONS


def test_an_error_of_the_listener_comes_out_of_poll(place: Place) -> None:
    """The listener's own exception, unchanged, reaches whoever polls."""

    class Broken(Exception):
        pass

    class Refusing(Owner):
        def on_assigned(self, partitions: Sequence[int]) -> Mapping[int, int | None]:
            raise Broken("no")

    broker = place.broker()
    owner = Refusing(broker)
    broker.subscribe(owner)

    with pytest.raises(Broken):
        owner.poll_until(lambda: False)


def test_a_missing_topic_is_named_with_its_remedy(place: Place) -> None:
    """A worker on topics that do not exist says which, and what to run."""
    names = place.topics.names()
    elsewhere = place.with_topics(Topics(names[0], "nowhere", *names[2:]))

    with pytest.raises(Fatal, match=r"'nowhere' does not exist.*npstream init"):
        elsewhere.broker()
    with pytest.raises(Fatal, match=r"'nowhere' does not exist.*npstream init"):
        elsewhere.log().partitions(Channel.DECISIONS)
