"""Reading a partition's committed state: its stable position and the snapshot it points to.

The reader never joins the group and writes nothing, so tools may use it beside
a running worker.
"""

import logging
import time
from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from npstream.codec.position import decode_position
from npstream.errors import Retryable, StateCorrupt
from npstream.kafka.admin import Admin, GroupMember
from npstream.kafka.clients import Sink, close_quietly, new_consumer
from npstream.kafka.config import KafkaConfig, reader_settings
from npstream.kafka.connect import partition_counts
from npstream.kafka.errors import kafka_error, translate
from npstream.kafka.messages import is_passing
from npstream.port import Heartbeat
from npstream.records import KeyValue, Pointer, Position

_SLICE_S = 0.5
"""Longest single wait inside the client, so that heartbeat and stop are seen."""
_HISTORY_S = 2.0
_CLOSE_S = 2.0

_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


class KafkaStateReader:
    """The `StateReader` of a Kafka cluster. Waits for undecided transactions, at most `stable_wait_s`."""

    def __init__(
        self,
        config: KafkaConfig,
        logger: logging.Logger | None = None,
        heartbeat: Heartbeat = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Connects when first needed."""
        self._config = config
        self._logger = logger or logging.getLogger("npstream.kafka")
        self._heartbeat = heartbeat
        self._stopping = stopping
        self._sink = Sink(self._logger)
        self._consumer = new_consumer(reader_settings(config), self._sink)
        self._warm = False
        self.records_read = 0
        """Records that reading checkpoints has taken from the log so far."""

    def partition_counts(self) -> list[int]:
        """Partition counts of the four topics; `Retryable` or `Fatal` when they cannot be had.

        This also makes the client learn where each partition is; otherwise its first
        read would wait for a metadata timer of a second.
        """
        self._warm = True
        return partition_counts(self._consumer, self._config, self._sink)

    def has_history(self, partitions: int) -> bool:
        """Whether the group has ever committed, or is about to, an offset of the events topic."""
        places = [TopicPartition(self._config.topics.events, partition) for partition in range(partitions)]
        try:
            return any(found.offset >= 0 for found in self._consumer.committed(places, timeout=_HISTORY_S))
        except KafkaException as error:
            self._passing_or_raise(error, "reading the committed positions")
            return True

    def committed(self, partition: int) -> Position | None:
        """The position once no transaction is undecided; `Retryable` when that takes too long."""
        topic = self._config.topics.events
        deadline = self._deadline()
        while True:
            try:
                found = self._consumer.committed([TopicPartition(topic, partition)], timeout=_SLICE_S)[0]
            except KafkaException as error:
                self._passing_or_raise(error, "reading the committed position")
            else:
                if found.error is None:
                    return self._position(found)
                self._passing_or_raise(KafkaException(found.error), "reading the committed position")
            self._turn(deadline, f"the committed position of {topic}/{partition}")

    def _position(self, found: TopicPartition) -> Position | None:
        if found.offset < 0:
            return None
        try:
            return decode_position(found.offset, found.metadata or "")
        except StateCorrupt as error:
            raise StateCorrupt(f"group {self._config.group!r}, {found.topic}/{found.partition}: {error}") from error

    def read_checkpoint(self, partition: int, pointer: Pointer) -> list[KeyValue]:
        """The chunks at the pointer, and nothing else, whatever else the topic holds."""
        topic = self._config.topics.checkpoints
        if not self._warm:
            self.partition_counts()
        try:
            self._consumer.assign([TopicPartition(topic, partition, pointer.offset)])
            try:
                return self._chunks(topic, partition, pointer)
            finally:
                self._consumer.unassign()
        except KafkaException as error:
            raise translate(error, f"reading the checkpoint of partition {partition}", self._config) from error

    def _chunks(self, topic: str, partition: int, pointer: Pointer) -> list[KeyValue]:
        deadline = self._deadline()
        chunks: list[KeyValue] = []
        while len(chunks) < pointer.chunks:
            message = self._consumer.poll(_SLICE_S)
            if message is None or (message.error() is not None and not self._is_gone(message, pointer)):
                self._turn(deadline, f"the checkpoint at {topic}/{partition} offset {pointer.offset}")
                continue
            if message.error() is not None or (not chunks and message.offset() != pointer.offset):
                raise StateCorrupt(
                    f"the checkpoint at {topic}/{partition} offset {pointer.offset} is gone, {len(chunks)} of "
                    f"{pointer.chunks} chunks are left: was the topic emptied, or does it delete instead of compact? "
                    "Check with `npstream doctor`, then `npstream reset` starts the partition over"
                )
            self.records_read += 1
            chunks.append(_chunk(message))
        return chunks

    def _is_gone(self, message: Message, pointer: Pointer) -> bool:
        """Whether an error event says that no more chunks will come.

        The stable end passes the first chunk only when its transaction is decided,
        so the end of the partition beyond it means that the rest is not there.
        """
        error = message.error()
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            return (message.offset() or 0) > pointer.offset
        if error.code() in _GONE:
            return True
        self._passing_or_raise(KafkaException(error), "reading a checkpoint")
        return False

    def _deadline(self) -> float:
        return time.monotonic() + self._config.stable_wait_s

    def _turn(self, deadline: float, what: str) -> None:
        """One turn of a wait: show life, notice a stop, give up in time."""
        self._heartbeat()
        if self._stopping():
            raise Retryable(f"stopped while waiting for {what}")
        if time.monotonic() > deadline:
            raise Retryable(
                f"{what} was not stable within {self._config.stable_wait_s:g} s: a transaction is undecided; "
                "if this repeats, run `npstream doctor`, which names hanging transactions and their remedy"
            )

    def _passing_or_raise(self, error: KafkaException, doing: str) -> None:
        found = kafka_error(error)
        if found is None or not is_passing(found):
            raise translate(error, doing, self._config) from error

    def members(self) -> list[str]:
        """The group's members as its coordinator knows them."""
        return [_in_words(member) for member in Admin(self._config, self._logger).group().members]

    def close(self) -> None:
        """Let go of the connection. Never raises."""
        close_quietly("reader", self._consumer.close, _CLOSE_S)


def _in_words(member: GroupMember) -> str:
    owned = ", ".join(map(str, member.partitions)) or "none"
    return f"{member.worker_name or member.client} on {member.host.removeprefix('/')} (partitions: {owned})"


def _chunk(message: Message) -> KeyValue:
    return KeyValue(message.offset() or 0, message.key() or b"", message.value())
