"""A copy of labels from another topic to the labels topic, exactly once.

One process per group: its transactional id fences an earlier one, and the place
in the foreign topic is read after that, so no other membership is needed. After
anything unclear the process ends; the next one goes on where the last
transaction left off.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, TopicPartition

from npstream import failpoints
from npstream.codec.features import Steps
from npstream.codec.mapping import find
from npstream.codec.murmur2 import partition_for
from npstream.kafka.clients import close_quietly, new_consumer
from npstream.kafka.config import KafkaConfig, reader_settings
from npstream.kafka.connect import partition_count
from npstream.kafka.errors import kafka_error, translate
from npstream.kafka.messages import headers_of, is_passing, read_problem, record_of, speaks_of_partition
from npstream.kafka.tool_producer import ToolProducer
from npstream.records import Record

ROUTER_NAME = "route-labels"
"""The worker name of a router, and the end of its group's name."""

_BATCH = 2000
_SLICE_S = 0.5
_GATHER_S = 0.2
_LOOK_EVERY_S = 10.0
_CLOSE_S = 5.0

Placement = Callable[[Record], tuple[bytes | None, Sequence[int]]]
"""The key of the copy, and the partitions that it goes to."""


def by_key(partitions: int, path: Steps | None) -> Placement:
    """To the partition of the record's key, or of what a path leads to in it, as Java clients place a key.

    Without such a key it goes to all of them: a label of an unknown id is counted, not an error.
    """

    def place(record: Record) -> tuple[bytes | None, Sequence[int]]:
        key = record.key if path is None else _key_at(record.value, path)
        return (record.key, range(partitions)) if key is None else (key, (partition_for(key, partitions),))

    return place


def to_all(partitions: int) -> Placement:
    """To every partition: for labels that have only the id."""
    return lambda record: (record.key, range(partitions))


def _key_at(value: bytes | None, path: Steps) -> bytes | None:
    """Text as it is, a number in decimal; None where a path leads to neither, or the record is not JSON."""
    try:
        found = find(orjson.loads(value or b""), path)
    except orjson.JSONDecodeError:
        return None
    if isinstance(found, str):
        return found.encode()
    return b"%d" % found if type(found) is int else None


class Router:
    """Reads a foreign topic and writes the labels topic, each batch one transaction. Raises `Retryable`, `Fatal`."""

    def __init__(self, config: KafkaConfig, source: str, logger: logging.Logger) -> None:
        assert config.topics.labels is not None
        self._config = replace(config, worker_name=ROUTER_NAME, group=f"{config.group}.{ROUTER_NAME}")
        self._source, self._target = source, config.topics.labels
        self._producer = ToolProducer(config, ROUTER_NAME, logger)
        self._sink = self._producer.sink
        self._consumer = new_consumer(reader_settings(self._config), self._sink)
        self._known = 0
        self._ended: set[int] = set()
        self._looked_at = 0.0

    def open(self) -> int:
        """Fence an earlier router, find the place; returns the partition count of the labels topic."""
        count = self._producer.open(self._target)
        self._assign_new()
        return count

    def _assign_new(self) -> None:
        """Read every partition of the source, those that are new from their beginning."""
        self._looked_at = time.monotonic()
        count = partition_count(self._consumer, self._source, self._config, self._sink)
        new = [TopicPartition(self._source, partition) for partition in range(self._known, count)]
        if new:
            try:
                starts = [
                    TopicPartition(
                        place.topic, place.partition, place.offset if place.offset >= 0 else OFFSET_BEGINNING
                    )
                    for place in self._places(new)
                ]
                self._consumer.incremental_assign(starts)
            except KafkaException as error:
                raise translate(error, f"reading the place in {self._source!r}", self._config) from error
        self._known = count

    def _places(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Where the group is in these partitions, after waiting for an undecided transaction or a new coordinator."""
        deadline = time.monotonic() + self._config.stable_wait_s
        while True:
            try:
                found = self._consumer.committed(partitions, timeout=_SLICE_S)
                for place in found:
                    if place.error is not None:  # not the same as having no place: it would begin again
                        raise KafkaException(place.error)
                return found
            except KafkaException as error:
                cause = kafka_error(error)
                if cause is None or not is_passing(cause) or time.monotonic() > deadline:
                    raise
            time.sleep(_GATHER_S)

    @property
    def at_end(self) -> bool:
        """Whether the last look at each partition of the source found its end."""
        return len(self._ended) == self._known

    def turn(self, place: Placement) -> int:
        """Copy what has come, waiting a moment for it; returns how many labels were read."""
        if time.monotonic() - self._looked_at > _LOOK_EVERY_S:
            self._assign_new()
        try:
            messages = self._good(self._consumer.consume(_BATCH, _GATHER_S))
            if messages:
                failpoints.hit("after_poll")
                self._copy(messages, place)
        except (KafkaException, SystemError, BufferError) as error:
            raise translate(
                kafka_error(error) or error, f"copying labels from {self._source!r}", self._config
            ) from error
        return len(messages)

    def _good(self, messages: Sequence[Message]) -> list[Message]:
        good = []
        for message in messages:
            error, partition = message.error(), message.partition() or 0
            if error is None:
                good.append(message)
                self._ended.discard(partition)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ended.add(partition)
            elif speaks_of_partition(error):
                raise read_problem(error, self._source, partition, message.offset() or 0)
            elif not is_passing(error):
                raise KafkaException(error)
        return good

    def _copy(self, messages: Sequence[Message], place: Placement) -> None:
        self._producer.begin()
        ends: dict[int, int] = {}
        for message, headers in zip(messages, headers_of(messages), strict=True):
            record = record_of(message, headers)
            key, partitions = place(record)
            for partition in partitions:
                self._producer.send(self._target, partition, key, record.value, record.headers, record.timestamp_ms)
            ends[message.partition() or 0] = record.offset + 1
        offsets = [TopicPartition(self._source, partition, end) for partition, end in ends.items()]
        self._producer.send_offsets(offsets, self._consumer.consumer_group_metadata())
        self._producer.commit()

    def close(self) -> None:
        """Let go of the connections. Never raises."""
        close_quietly("router", self._consumer.close, _CLOSE_S)
        self._producer.close()
