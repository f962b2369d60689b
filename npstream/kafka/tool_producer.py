"""The transactional producer of a command, of which one at a time works for a group.

Its transactional id does not name the process: the next one fences an earlier one
and ends what that left open. After anything unclear it is unusable, and the
command ends: what became of its transaction is seen by the next one.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from npstream import failpoints
from npstream.errors import Retryable
from npstream.kafka.bounded import BoundedCaller
from npstream.kafka.clients import Sink, new_producer
from npstream.kafka.config import ClientSettings, KafkaConfig, producer_settings
from npstream.kafka.connect import partition_count
from npstream.kafka.errors import kafka_error, translate
from npstream.records import Headers

_SLICE_S, _CLOSE_S = 1.0, 2.0


class ToolProducer:
    """Writes batches of records, each one transaction. Its methods raise the client's own errors but for `open`."""

    def __init__(self, config: KafkaConfig, purpose: str, logger: logging.Logger) -> None:
        self._config = config
        self.sink = Sink(logger)
        # Below the group's own prefix, so that the right on its transactional ids covers this one.
        identity: ClientSettings = {"transactional.id": f"{config.group}.{purpose}"}
        self._producer: Any = new_producer(producer_settings(config) | identity, self.sink)
        self._caller = BoundedCaller[None](purpose)
        self._began = 0.0

    def open(self, topic: str) -> int:
        """Fence an earlier command; returns the partition count of the topic that will be written to."""
        count = partition_count(self._producer, topic, self._config, self.sink)
        try:
            self._producer.init_transactions(self._config.connect_timeout_ms / 1000)
        except KafkaException as error:
            raise translate(self.sink.login_error or error, "opening transactions", self._config) from error
        return count

    def begin(self) -> None:
        """Begin a transaction."""
        self._began = time.monotonic()
        self._producer.begin_transaction()
        failpoints.hit("begin")

    def send(
        self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int
    ) -> None:
        """Hand one record to the client, waiting while its queue is full."""
        failpoints.hit("produce")
        stamp, own = max(1, timestamp_ms), list(headers)
        while True:
            try:
                self._producer.produce(topic, value, key, partition, timestamp=stamp, headers=own)
                return
            except BufferError:
                self._producer.poll(min(_SLICE_S, self._left_s()))

    def send_offsets(self, offsets: Sequence[TopicPartition], metadata: Any) -> None:
        """Make a consumer's place part of the transaction."""
        failpoints.hit("before_send_offsets")
        send, left_s = self._producer.send_offsets_to_transaction, self._left_s()
        self._caller.start(lambda: send(list(offsets), metadata, left_s))
        self._caller.wait(_SLICE_S, self._left_s)
        failpoints.hit("after_send_offsets")

    def commit(self) -> None:
        """End the transaction: all of it can be read when this returns. Raises `Retryable` when time runs out."""
        failpoints.hit("before_commit")
        while True:
            try:
                self._producer.commit_transaction(min(_SLICE_S, self._left_s()))
                break
            except KafkaException as error:
                # A timeout does not say whether it is committed; the same call asks for the same transaction again.
                found = kafka_error(error)
                if found is None or not found.retriable():
                    raise
        failpoints.hit("after_commit")

    def _left_s(self) -> float:
        left_s = self._began + self._config.transaction_timeout_ms / 1000 - time.monotonic()
        if left_s <= 0:
            raise Retryable("a transaction did not end in time: what became of it is seen by the next run")
        return left_s

    def close(self) -> None:
        """Let go of the connection. Never raises."""
        # On the caller's thread: a client must not go while a call is inside it.
        self._caller.close(self._drop, _CLOSE_S)

    def _drop(self) -> None:
        self._producer = None
