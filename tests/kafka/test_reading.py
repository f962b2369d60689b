"""Readers beside the group, when brokers do not know everything at the moment, as after a change of leaders."""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from npstream.errors import Retryable
from npstream.kafka import KafkaLog, clients
from npstream.kafka.router import Router
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


class _KnowsNoPlace(Consumer):
    """The library's consumer, which is told that no committed place can be named now."""

    def committed(self, partitions: list[TopicPartition], *_: Any, **__: Any) -> list[TopicPartition]:
        return [_Unknown(each.topic, each.partition) for each in partitions]


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
        router = Router(routed.config(), place.topics.events, logging.getLogger("tests"))
    with closing(router), pytest.raises(Retryable, match="reading the place"):
        router.open()
