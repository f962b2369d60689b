"""Reading the committed state of partitions: stable positions and the snapshots they point to, many in one round.

The reader never joins the group and writes nothing, so tools may use it beside
a running worker.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from npstream.codec.position import decode_position
from npstream.errors import Retryable, StateCorrupt, plural
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
_PAGE = 100
"""Chunks taken from the client at a time, each of up to a megabyte."""
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

    @property
    def login_error(self) -> KafkaError | None:
        """The last refusal of a broker to let this client in, if there was one."""
        return self._sink.login_error

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
        found = self.all_committed([partition])[partition]
        if isinstance(found, StateCorrupt):
            raise found
        return found

    def all_committed(self, partitions: Sequence[int]) -> dict[int, Position | StateCorrupt | None]:
        """Those of many partitions in one request, once no transaction of any of them is undecided."""
        places = [TopicPartition(self._config.topics.events, partition) for partition in partitions]
        deadline = self._deadline()
        while places:
            try:
                found = self._consumer.committed(places, timeout=_SLICE_S)
            except KafkaException as error:
                self._passing_or_raise(error, "reading the committed position", _only(partitions))
            else:
                failed = [place for place in found if place.error is not None]
                if not failed:
                    return {place.partition: self._position(place) for place in found}
                for place in failed:
                    self._passing_or_raise(
                        KafkaException(place.error), "reading the committed position", place.partition
                    )
            self._turn(deadline, f"the committed position of {_place(places[0])}{_more(places)}")
        return {}

    def _position(self, found: TopicPartition) -> Position | StateCorrupt | None:
        if found.offset < 0:
            return None
        try:
            return decode_position(found.offset, found.metadata or "")
        except StateCorrupt as error:
            return StateCorrupt(f"group {self._config.group!r}, {_place(found)}: {error}")

    def read_checkpoints(self, pointers: Mapping[int, Pointer]) -> Iterator[tuple[int, list[KeyValue] | StateCorrupt]]:
        """The chunks at the pointers, and nothing else, whatever else the topic holds."""
        if not pointers:
            return
        topic = self._config.topics.checkpoints
        if not self._warm:
            self.partition_counts()
        wanted = {partition: _Snapshot(topic, partition, pointer) for partition, pointer in pointers.items()}
        try:
            self._consumer.assign(
                [TopicPartition(topic, partition, each.offset) for partition, each in pointers.items()]
            )
            try:
                yield from self._whole(topic, wanted)
            finally:
                self._consumer.unassign()
        except KafkaException as error:
            raise translate(error, "reading checkpoints", self._config, _only(list(pointers))) from error

    def _whole(self, topic: str, wanted: dict[int, "_Snapshot"]) -> Iterator[tuple[int, list[KeyValue] | StateCorrupt]]:
        """Snapshots as they become whole; each leaves `wanted`."""
        deadline = self._deadline()
        while wanted:
            messages = self._consumer.consume(1, _SLICE_S)
            messages += self._consumer.consume(_PAGE, 0.0) if messages else []
            done = [found for message in messages if (found := self._take(message, wanted)) is not None]
            # What follows a whole snapshot is of no interest: nobody waits for it, and it takes room.
            self._consumer.incremental_unassign([TopicPartition(topic, partition) for partition, _ in done])
            if done:
                deadline = self._deadline()
                self._heartbeat()
            elif wanted:
                self._turn(deadline, f"the checkpoint at {next(iter(wanted.values())).place}")
            yield from done

    def _take(
        self, message: Message, wanted: dict[int, "_Snapshot"]
    ) -> tuple[int, list[KeyValue] | StateCorrupt] | None:
        """Add a message to its snapshot; return that when it is complete, or never will be."""
        partition, error = message.partition(), message.error()
        snapshot = wanted.get(-1 if partition is None else partition)
        if snapshot is None or partition is None:
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                self._passing_or_raise(KafkaException(error), "reading checkpoints")
            return None
        if error is not None and not self._ends(error, message, snapshot.pointer):
            return None
        if error is None and (snapshot.chunks or message.offset() == snapshot.pointer.offset):
            self.records_read += 1
            snapshot.chunks.append(_chunk(message))
            if len(snapshot.chunks) < snapshot.pointer.chunks:
                return None
            return partition, wanted.pop(partition).chunks
        return partition, wanted.pop(partition).gone()

    def _ends(self, error: KafkaError, message: Message, pointer: Pointer) -> bool:
        """Whether an error event says that no more chunks will come.

        The stable end passes the first chunk only when its transaction is decided,
        so the end of the partition beyond it means that the rest is not there.
        """
        if error.code() == KafkaError._PARTITION_EOF:
            return (message.offset() or 0) > pointer.offset
        if error.code() in _GONE:
            return True
        self._passing_or_raise(KafkaException(error), "reading a checkpoint", message.partition())
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

    def _passing_or_raise(self, error: KafkaException, doing: str, partition: int | None = None) -> None:
        found = kafka_error(error)
        if found is None or not is_passing(found):
            raise translate(error, doing, self._config, partition) from error

    def members(self) -> list[str]:
        """The group's members as its coordinator knows them."""
        return [_in_words(member) for member in Admin(self._config, self._logger).group().members]

    def close(self) -> None:
        """Let go of the connection. Never raises."""
        close_quietly("reader", self._consumer.close, _CLOSE_S)


def _in_words(member: GroupMember) -> str:
    owned = ", ".join(map(str, member.partitions)) or "none"
    return f"{member.worker_name or member.client} on {member.host.removeprefix('/')} (partitions: {owned})"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A snapshot on its way, as far as its chunks have come."""

    topic: str
    partition: int
    pointer: Pointer
    chunks: list[KeyValue] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Where it begins."""
        return f"{self.topic}/{self.partition} offset {self.pointer.offset}"

    def gone(self) -> StateCorrupt:
        """The rest of it will not come."""
        return StateCorrupt(
            f"the checkpoint at {self.place} is gone, {len(self.chunks)} of {self.pointer.chunks} chunks are left: was "
            "the topic emptied, or does it delete instead of compact? Check with `npstream doctor`, then `npstream "
            "reset` starts the partition over"
        )


def _chunk(message: Message) -> KeyValue:
    return KeyValue(message.offset() or 0, message.key() or b"", message.value())


def _only(partitions: Sequence[int]) -> int | None:
    """The partition that a failed request was about, if it was about one."""
    return partitions[0] if len(partitions) == 1 else None


def _place(place: TopicPartition) -> str:
    return f"{place.topic}/{place.partition}"


def _more(places: Sequence[TopicPartition]) -> str:
    return f" and {plural(len(places) - 1, 'more partition')}" if len(places) > 1 else ""
