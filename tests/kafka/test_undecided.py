"""Undecided transactions: what they hide, and who waits for them."""

import threading

import pytest
from confluent_kafka import Producer

from npstream.errors import Retryable
from npstream.kafka import KafkaBroker, KafkaLog
from npstream.port import Ends
from npstream.records import Channel, Phase, Position
from tests.contracts.builders import events, eventually, joined, offsets, read_checkpoint, values
from tests.kafka.zombie import zombie
from tests.stage.places import KafkaPlace


def test_records_of_an_open_transaction_are_hidden_until_it_commits(place: KafkaPlace, log: KafkaLog) -> None:
    """Neither the worker nor a reader gets past the stable end; after the commit both do."""
    log.append(Channel.EVENTS, 0, events(3))
    owner = joined(place.kafka_broker())
    upstream = Producer({"bootstrap.servers": place.bootstrap, "transactional.id": place.group + "-upstream"})
    upstream.init_transactions(10)
    upstream.begin_transaction()
    upstream.produce(place.topics.events, b"open", partition=0)
    upstream.flush(10)
    log.append(Channel.EVENTS, 0, events(2))

    assert log.ends(Channel.EVENTS, 0) == Ends(0, 3, 6)
    assert offsets(owner.collect(3)) == {0: [0, 1, 2]}
    owner.poll(timeout_s=0.5)
    assert owner.got == {}
    assert len(values(log, Channel.EVENTS, 0)) == 3

    upstream.commit_transaction(10)
    assert offsets(owner.collect(3)) == {0: [3, 4, 5]}


def test_aborted_records_are_never_handed_out(place: KafkaPlace, log: KafkaLog) -> None:
    """The worker reads around what was aborted, and offsets have gaps there."""
    owner = joined(place.kafka_broker())
    upstream = Producer({"bootstrap.servers": place.bootstrap, "transactional.id": place.group + "-upstream"})
    upstream.init_transactions(10)
    upstream.begin_transaction()
    upstream.produce(place.topics.events, b"aborted", partition=0)
    upstream.flush(10)
    upstream.abort_transaction(10)
    log.append(Channel.EVENTS, 0, events(2))

    assert offsets(owner.collect(2)) == {0: [2, 3]}


def test_the_committed_position_waits_for_an_undecided_transaction(place: KafkaPlace) -> None:
    """Offsets sent but not decided delay the result; when they are decided it is the right one."""
    turns = threading.Semaphore(0)
    found: list[Position | None] = []
    with zombie(place, "after_send_offsets", transaction_timeout_ms=60_000) as sleeper:
        heir = KafkaBroker(place.config("b", transaction_timeout_ms=60_000), heartbeat=turns.release)
        while turns.acquire(blocking=False):
            pass  # connecting shows life, too
        waiting = threading.Thread(target=lambda: found.append(heir.state.committed(0)))
        waiting.start()
        assert turns.acquire(timeout=30)  # one whole wait has passed
        assert found == []

        sleeper.kill()
        place.kafka_broker("a").subscribe(_Nobody())  # the same worker's next life ends the transaction
        waiting.join(30)

    assert found == [None]
    heir.abandon()


def test_a_stop_ends_the_wait(place: KafkaPlace) -> None:
    """A worker asked to stop does not wait for somebody else's transaction."""
    with zombie(place, "after_send_offsets", transaction_timeout_ms=60_000):
        heir = KafkaBroker(place.config("b"), stopping=lambda: True)
        with pytest.raises(Retryable, match="stopped while waiting for the committed position"):
            heir.state.committed(0)
        heir.abandon()


def test_a_checkpoint_is_read_as_soon_as_the_position_points_to_it(place: KafkaPlace, log: KafkaLog) -> None:
    """The markers of a commit may come late: the reader waits for them instead of taking an older snapshot."""
    with zombie(place, "after_commit") as sleeper:
        reader = place.kafka_broker("b")
        position = reader.state.committed(0)
        assert position is not None
        assert [kv.value for kv in read_checkpoint(reader.state, 0, position.pointer)] == [b"chunk 0 .."]
        assert sleeper.last_words() == "committed"
    eventually(lambda: values(log, Channel.DECISIONS, 0) == [b"zombie"])


class _Nobody:
    """A listener that is never called, since its broker never polls."""

    def on_assigned(self, partitions: object) -> dict[int, int | None]:
        raise AssertionError(partitions)

    def on_revoked(self, partitions: object) -> None: ...

    def on_lost(self, partitions: object) -> None: ...

    def on_waiting(self, partition: int, reason: object) -> None: ...

    def on_failed(self, partition: int, error: object) -> None: ...

    def phase_of(self, partition: int) -> Phase:
        raise AssertionError(partition)
