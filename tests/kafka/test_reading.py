"""Readers beside the group, when brokers do not know everything at the moment, as after a change of leaders."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from npstream.errors import Retryable
from npstream.kafka import KafkaLog, clients
from npstream.kafka.router import Router, to_all
from npstream.port import Ends
from npstream.records import Channel, Record
from tests.contracts.builders import events
from tests.stage.places import KafkaPlace


class _EndsEarly(Consumer):
    """The library's consumer, whose first records are followed by the end of the partition, before the others come.

    So it is when the leader has changed: the new one has every record, and learns only with the next fetch of its
    followers that the last ones may be read.
    """

    def consume(self, *arguments: Any, **named: Any) -> list[Message]:
        messages = super().consume(*arguments, **named)
        for at, message in enumerate(messages[1:], start=1):
            if message.error() is None:
                return [*messages[:at], _end_before(message), *messages[at:]]
        return messages


def _end_before(message: Message) -> Message:
    end = KafkaError(KafkaError._PARTITION_EOF)
    return Message(topic=message.topic(), partition=message.partition(), offset=message.offset(), error=end)


class _Unknown(TopicPartition):
    error = KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT)


class _Astray(TopicPartition):
    error = KafkaError(KafkaError.NOT_COORDINATOR)


class _KnowsNoPlace(Consumer):
    """The library's consumer, to which brokers cannot name a committed place at first."""

    def committed(self, partitions: list[TopicPartition], *_: Any, **__: Any) -> list[TopicPartition]:
        return [_Unknown(each.topic, each.partition) for each in partitions]


class _KnowsNoCoordinator(Consumer):
    """The library's consumer, whose group has no coordinator when it first asks, as on brokers that just started."""

    asked = 0

    def committed(self, partitions: list[TopicPartition], *arguments: Any, **named: Any) -> list[TopicPartition]:
        self.asked += 1
        if self.asked == 1:
            return [_Astray(each.topic, each.partition) for each in partitions]
        if self.asked == 2:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return super().committed(partitions, *arguments, **named)


class _NeverTakesAPlace(Producer):
    """The library's producer, whose group has lost its coordinator at the wrong moment."""

    def send_offsets_to_transaction(self, *_: Any, **__: Any) -> None:
        threading.Event().wait()


class _JustMoved(AdminClient):
    """The library's client, to which a partition has just moved from one broker to another when it first asks."""

    failed = False

    def list_offsets(self, *arguments: Any, **named: Any) -> Any:
        if self.failed:
            return super().list_offsets(*arguments, **named)
        self.failed = True
        refused = Future[Any]()
        refused.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_LEADER_EPOCH)))
        return dict.fromkeys(arguments[0], refused)


@contextmanager
def consumers(kind: type[Consumer]) -> Iterator[None]:
    """Those that are built in the block are such ones."""
    with mock.patch.object(clients, "Consumer", kind):
        yield


def test_an_end_before_the_asked_one_is_not_the_end(log: KafkaLog) -> None:
    """Whoever asked for records up to an offset that was stable gets all of them."""
    log.append(Channel.EVENTS, 0, events(20))

    with consumers(_EndsEarly):
        read = list(log.read(Channel.EVENTS, 0, 0, 20))

    assert [record.offset for record in read] == list(range(20))


def test_a_partition_that_has_just_moved_is_asked_about_again(place: KafkaPlace, log: KafkaLog) -> None:
    """A change of leaders passes by itself: it is no reason for a worker to begin again with all its partitions."""
    log.append(Channel.EVENTS, 0, events(3))

    with mock.patch.object(clients, "AdminClient", _JustMoved):
        found = KafkaLog(place.config()).ends(Channel.EVENTS, 0)

    assert found == Ends(0, 3, 3)


def test_a_read_shows_that_its_worker_is_alive(place: KafkaPlace, log: KafkaLog) -> None:
    """A restore may read for minutes what waits for labels: the heartbeat goes on between any two pages."""
    beats: list[int] = []
    read: list[Record] = []
    log.append(Channel.EVENTS, 0, events(2500))

    reader = KafkaLog(place.config(), heartbeat=lambda: beats.append(len(read)))
    for record in reader.read(Channel.EVENTS, 0, 0, 2500):
        read.append(record)

    assert len(set(beats)) > 2, "not once a page"


def test_a_router_that_does_not_know_its_place_does_not_begin_again(place: KafkaPlace) -> None:
    """It would copy every label for a second time."""
    routed = place.with_topics(replace(place.topics, labels=f"{place.topics.events}.labels")).create()

    with consumers(_KnowsNoPlace):
        router = Router(
            replace(routed.config(), transaction_timeout_ms=1000), place.topics.events, logging.getLogger("tests")
        )
    with closing(router), pytest.raises(Retryable, match="reading the place"):
        router.open()


def test_a_router_waits_for_the_coordinator_of_its_group(place: KafkaPlace) -> None:
    """Without one at its start it asks again, as a worker does, instead of ending."""
    routed = place.with_topics(replace(place.topics, labels=f"{place.topics.events}.labels")).create()

    with consumers(_KnowsNoCoordinator):
        router = Router(routed.config(), place.topics.events, logging.getLogger("tests"))
    with closing(router):
        assert router.open() == routed.log().partitions(Channel.LABELS)


def test_a_router_whose_place_is_never_taken_ends(place: KafkaPlace) -> None:
    """The client may forget the time it was given when a coordinator goes away; nobody may wait for it forever."""
    routed = place.with_topics(replace(place.topics, labels=f"{place.topics.events}.labels")).create()
    routed.log().append(Channel.EVENTS, 0, events(5))

    with mock.patch.object(clients, "Producer", _NeverTakesAPlace):
        router = Router(
            replace(routed.config(), transaction_timeout_ms=2000), place.topics.events, logging.getLogger("tests")
        )
    with closing(router), pytest.raises(Retryable, match="did not end in time"):
        _copy(router)
    with closing(Router(routed.config(), place.topics.events, logging.getLogger("tests"))) as following:
        _copy(following)

    assert len(list(routed.log().read(Channel.LABELS, 0, 0, routed.log().ends(Channel.LABELS, 0).stable))) == 5


def _copy(router: Router) -> None:
    count, copied = router.open(), 0
    while copied < 5:
        copied += router.turn(to_all(count))
