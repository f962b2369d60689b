"""Partitions change hands: who is called with what, and nothing is lost or doubled."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from npstream.errors import Retryable
from npstream.kafka import KafkaLog
from npstream.kafka.admin import Admin
from npstream.records import Channel
from tests.contracts.builders import (
    PATIENCE_S,
    Owner,
    chunks,
    decision,
    events,
    eventually,
    joined,
    settled,
    share,
    values,
)
from tests.kafka.echo import Echo
from tests.kafka.zombie import zombie
from tests.stage.places import KafkaPlace


def until(owners: list[Owner], condition: Callable[[], bool]) -> None:
    """Poll all of them in turn until the condition holds."""

    def turned() -> bool:
        for owner in owners:
            owner.poll(timeout_s=0.02)
        return condition()

    eventually(turned)


def test_a_second_worker_takes_over_some_partitions(place: KafkaPlace) -> None:
    """The first is asked to let go of what the second gets, keeps the rest, and each partition has one owner."""
    first = joined(place.kafka_broker("a"))
    second = _joining(place, "b")

    until([first, second], lambda: bool(second.owned) and first.owned | second.owned == {0, 1, 2})

    assert first.owned & second.owned == set()
    assert first.reported == [("assigned", (0, 1, 2)), ("revoked", tuple(sorted(second.owned)))]
    assert second.reported == [("assigned", tuple(sorted(second.owned)))]


def test_a_static_restart_moves_nothing(place: KafkaPlace) -> None:
    """A worker that leaves politely and comes back finds its partitions, and the others are not disturbed."""
    first = joined(place.kafka_broker("a", session_timeout_ms=60_000))
    broker = place.kafka_broker("b", session_timeout_ms=60_000)
    second = Owner(broker)
    broker.subscribe(second)
    until([first, second], lambda: bool(second.owned) and first.owned | second.owned == {0, 1, 2})
    before, reported = set(second.owned), list(first.reported)

    broker.close(5.0)
    broker = place.kafka_broker("b", session_timeout_ms=60_000)
    again = Owner(broker)
    broker.subscribe(again)
    until([first, again], lambda: again.owned == before)

    assert first.reported == reported
    assert again.reported == [("assigned", tuple(sorted(before)))]


def test_a_dynamic_worker_that_leaves_hands_over_at_once(place: KafkaPlace) -> None:
    """Without static membership a polite leave gives the partitions to who is left."""
    first = joined(place.kafka_broker("a", static_membership=False))
    broker = place.kafka_broker("b", static_membership=False)
    second = Owner(broker)
    broker.subscribe(second)
    until([first, second], lambda: bool(second.owned) and first.owned | second.owned == {0, 1, 2})

    broker.close(5.0)

    until([first], lambda: first.owned == {0, 1, 2})


def test_a_worker_that_does_not_poll_must_restart_its_session(place: KafkaPlace) -> None:
    """Busy beyond max_poll_interval_ms it has left the group: its session restarts, and the error names the setting."""
    idle = joined(place.kafka_broker("a", session_timeout_ms=1500, max_poll_interval_ms=2000))
    admin = Admin(place.config())
    eventually(lambda: admin.group().members == ())
    heir = joined(place.kafka_broker("b"))
    until([heir], lambda: heir.owned == {0, 1, 2})

    with pytest.raises(Retryable, match=r"raise kafka\.max_poll_interval_ms"):
        idle.poll_until(lambda: False)


def test_a_worker_that_slept_beyond_its_session_learns_that_its_partitions_are_lost(place: KafkaPlace) -> None:
    """Awake again it learns that they are lost, and is not asked to let go of them."""
    with zombie(place, "after_poll", session_timeout_ms=4000) as sleeper:
        heir = joined(place.kafka_broker("b"))
        until([heir], lambda: heir.owned == {0, 1, 2})

        assert sleeper.last_words() == "lost (0, 1, 2)"


def test_a_commit_overtaken_by_a_rebalance_is_made_again(place: KafkaPlace, log: KafkaLog) -> None:
    """Offsets refused because the group moved on meanwhile are sent again: everything is visible once."""
    broker = place.kafka_broker("a")
    first = joined(broker)
    stale = broker._member.group_metadata()
    second = _joining(place, "b")
    until([first, second], lambda: bool(second.owned) and first.owned | second.owned == {0, 1, 2})
    kept = min(first.owned)
    metadata = iter([stale, stale, broker._member.group_metadata()])

    broker._publisher.start([share(kept, 3, [decision(b"once")], chunks(1))], lambda: next(metadata))()

    eventually(lambda: values(log, Channel.DECISIONS, kept) == [b"once"])
    position = broker.state.committed(kept)
    assert position is not None
    assert position.next_offset == 3


def test_a_commit_that_is_always_overtaken_gives_up(place: KafkaPlace, log: KafkaLog) -> None:
    """A worker that the group has dropped must restart its session, and nothing of it is visible."""
    broker = place.kafka_broker("a")
    first = joined(broker)
    stale = broker._member.group_metadata()
    second = _joining(place, "b")
    until([first, second], lambda: bool(second.owned) and first.owned | second.owned == {0, 1, 2})

    with pytest.raises(Retryable, match="the group has moved on without this worker"):
        broker._publisher.start([share(0, 3, [decision(b"never")], chunks(1))], lambda: stale)()
    broker.abandon()

    eventually(lambda: settled(log, [(Channel.DECISIONS, 0)]))
    assert values(log, Channel.DECISIONS, 0) == []


def test_every_event_is_decided_once_while_partitions_move(place: KafkaPlace, log: KafkaLog) -> None:
    """While a second worker joins and leaves again and again each event's decision is published exactly once."""
    sent = 0

    def feed_until_worked(worker: Echo) -> bool:
        nonlocal sent
        for partition in range(3):
            log.append(Channel.EVENTS, partition, events(10, first=100_000 * partition + sent))
        sent += 10
        return worker.has_worked.is_set()

    workers = [Echo(place, "a", static=True)]
    with ThreadPoolExecutor(max_workers=5) as threads:
        running = [threads.submit(workers[0].run)]
        try:
            for _ in range(4):
                workers.append(Echo(place, "b", static=False))
                running.append(threads.submit(workers[-1].run))
                eventually(partial(feed_until_worked, workers[-1]))
                workers[-1].stop.set()
                running[-1].result(timeout=PATIENCE_S)  # the name must be free before it is used again
            eventually(lambda: _decided(log) == 3 * sent)
        finally:
            for worker in workers:
                worker.stop.set()
        for ended in running:
            ended.result(timeout=PATIENCE_S)

    for partition in range(3):
        expected = [value for _, value, _, _ in events(sent, first=100_000 * partition)]
        assert values(log, Channel.DECISIONS, partition) == expected


def test_new_partitions_wait_for_room_in_the_output_topics(place: KafkaPlace, log: KafkaLog) -> None:
    """A partition added to the events alone is reported with the remedy; the old ones go on, also after a restart."""
    broker = place.kafka_broker(options={"topic.metadata.refresh.interval.ms": 500})
    owner = joined(broker)
    broker.commit([share(0, 0, chunks=chunks(1))])
    admin = AdminClient({"bootstrap.servers": place.bootstrap})
    for grown in admin.create_partitions([NewPartitions(place.topics.events, 4)]).values():
        grown.result(timeout=10)

    owner.poll_until(lambda: 3 in owner.waiting)
    assert "run `npstream init`" in owner.waiting[3]
    log.append(Channel.EVENTS, 0, events(1))
    log.append(Channel.EVENTS, 3, events(1))
    assert set(owner.collect(1)) == {0}
    broker.close(5.0)

    again = joined(place.kafka_broker())
    again.poll_until(lambda: 3 in again.waiting)
    assert set(again.collect(1)) == {0}


def _decided(log: KafkaLog) -> int:
    return sum(len(values(log, Channel.DECISIONS, partition)) for partition in range(3))


def _joining(place: KafkaPlace, worker_name: str) -> Owner:
    """A worker that has subscribed and not polled yet."""
    broker = place.kafka_broker(worker_name)
    owner = Owner(broker)
    broker.subscribe(owner)
    return owner
