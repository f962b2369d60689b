"""Plain reading and writing of topics, outside any group: for tools, tests and the first start."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka._model import IsolationLevel
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from npstream.errors import Retryable, StateCorrupt
from npstream.kafka.clients import Sink, close_quietly, new_admin, new_consumer, new_producer
from npstream.kafka.config import TOOL_RECORD_MAX_BYTES, ClientSettings, KafkaConfig, common_settings, reader_settings
from npstream.kafka.connect import partition_count, topic_id
from npstream.kafka.errors import translate
from npstream.kafka.messages import headers_of, is_passing, read_problem, record_of, speaks_of_partition
from npstream.port import Ends, Heartbeat, Place, Start
from npstream.records import Channel, Headers, Record

_REQUEST_S = 10.0
_QUIET_S = 30.0
"""A reader that has got nothing at all for this long below a known end gives up."""
_PAGE = 1000
_NEW = frozenset({KafkaError._NOENT, KafkaError._UNKNOWN_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
_MOVED = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""Who leads a partition has changed, and client and brokers do not agree on it yet."""
_LOOK_AGAIN_S = 0.1


class KafkaLog:
    """The `Log` of a Kafka cluster. Connections are made when first needed; `heartbeat` is called while it reads."""

    def __init__(
        self, config: KafkaConfig, logger: logging.Logger | None = None, heartbeat: Heartbeat = lambda: None
    ) -> None:
        self._config = config
        self._heartbeat = heartbeat
        self._names = config.topics.names()
        self._sink = Sink(logger or logging.getLogger("npstream.kafka"))
        self._topic_ids: dict[Channel, str] = {}
        self._producer: Producer | None = None
        self._reader: Consumer | None = None
        self._closed = False
        self._admin: AdminClient = new_admin(common_settings(config), self._sink)

    def partitions(self, channel: Channel) -> int:
        """Partition count; raises `Fatal` naming the topic when it does not exist."""
        return partition_count(self._admin, self._names[channel], self._config, self._sink)

    def topic_id(self, channel: Channel = Channel.EVENTS) -> str:
        """The id of a topic when it was first asked for; empty where brokers have none."""
        if channel not in self._topic_ids:
            self._topic_ids[channel] = topic_id(self._admin, self._names[channel], self._config, self._sink)
        return self._topic_ids[channel]

    def ends(self, channel: Channel, partition: int) -> Ends:
        """The partition's range now."""
        return self.all_ends([(channel, partition)])[channel, partition]

    def all_ends(self, places: Sequence[Place]) -> dict[Place, Ends]:
        """The ranges of many partitions in three requests."""
        begins = self._offsets(places, OffsetSpec.earliest(), IsolationLevel.READ_COMMITTED)
        stables = self._offsets(places, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        highs = self._offsets(places, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        return {
            place: Ends(begin, stable, high)
            for place, begin, stable, high in zip(places, begins, stables, highs, strict=True)
        }

    def offset_at(self, partition: int, start: Start, channel: Channel = Channel.EVENTS) -> int:
        """A topic's first offset at or after `start`."""
        place = (channel, partition)
        if start == "earliest":
            return self._offsets([place], OffsetSpec.earliest(), IsolationLevel.READ_COMMITTED)[0]
        if start != "latest":
            found = self._offsets([place], OffsetSpec.for_timestamp(int(start)), IsolationLevel.READ_COMMITTED)[0]
            if found >= 0:
                return found
        return self._offsets([place], OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)[0]

    def _offsets(self, places: Sequence[Place], spec: OffsetSpec, isolation: IsolationLevel) -> list[int]:
        asked = {TopicPartition(self._names[channel], partition): spec for channel, partition in places}
        deadline = time.monotonic() + _REQUEST_S
        while True:
            try:
                results = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=_REQUEST_S)
                found: dict[TopicPartition, ListOffsetsResultInfo] = {tp: got.result() for tp, got in results.items()}
                break
            except KafkaException as error:
                # What the client knows of a topic may be minutes old, and older than a partition of it.
                if error.args[0].code() not in _NEW | _MOVED or time.monotonic() > deadline:
                    raise translate(self._sink.login_error or error, "asking for offsets", self._config) from error
            for name in {place.topic for place in asked}:
                partition_count(self._admin, name, self._config, self._sink)
            time.sleep(_LOOK_AGAIN_S)
        return [int(found[TopicPartition(self._names[channel], partition)].offset) for channel, partition in places]

    def read(self, channel: Channel, partition: int, begin: int, end: int) -> Iterator[Record]:
        """Committed records with `begin <= offset < end`, bounded by the stable end at call time."""
        return map(_record, self.read_all({(channel, partition): (begin, end)}))

    def read_all(self, ranges: Mapping[Place, tuple[int, int]]) -> Iterator[tuple[Place, Record | StateCorrupt]]:
        """What `read` gives of many places, by one consumer."""
        ends = self.all_ends(list(ranges)) if ranges else {}
        bounded = {p: (max(begin, ends[p].begin), min(end, ends[p].stable)) for p, (begin, end) in ranges.items()}
        return self._records({place: (begin, end) for place, (begin, end) in bounded.items() if begin < end})

    def _records(self, ranges: dict[Place, tuple[int, int]]) -> Iterator[tuple[Place, Record | StateCorrupt]]:
        if not ranges:
            return
        # A new client takes 50 ms to find its first broker: the one of the read before is used again.
        consumer, self._reader = self._reader or new_consumer(reader_settings(self._config), self._sink), None
        unharmed = False
        try:
            # This also makes the client learn where the partitions are; otherwise its first read waits for a timer.
            for name in {self._names[channel] for channel, _ in ranges}:
                partition_count(consumer, name, self._config, self._sink)
            consumer.assign([self._partition(place, each) for place, each in ranges.items()])
            yield from self._until_ends(consumer, ranges)
            unharmed = True
        except GeneratorExit:
            unharmed = True  # whoever reads has seen enough
            raise
        except KafkaException as error:
            where = self._partition(*next(iter(ranges.items())))
            raise translate(error, f"reading {where.topic}/{where.partition}", self._config) from error
        finally:
            self._put_back(consumer, unharmed)

    def _put_back(self, consumer: Consumer, unharmed: bool) -> None:
        """Keep one consumer for the next read; close others, and one that something has happened to."""
        try:
            if unharmed and self._reader is None and not self._closed:
                consumer.unassign()
                self._reader = consumer
                return
        except (KafkaException, RuntimeError):
            pass  # it is of no use any more
        close_quietly("log-reader", consumer.close, _REQUEST_S)

    def _until_ends(
        self, consumer: Consumer, ranges: Mapping[Place, tuple[int, int]]
    ) -> Iterator[tuple[Place, Record | StateCorrupt]]:
        """Records up to each end. The stable end lies at or beyond any end asked for, so it always comes.

        A broker that has just become the leader may report an earlier one for a moment: more will come behind that.
        """
        left, heard = dict(ranges), time.monotonic()
        while left:
            self._heartbeat()
            messages = consumer.consume(_PAGE, 0.05)
            for message, headers in zip(messages, headers_of(messages), strict=True):
                place, error = self._place_of(message), message.error()
                if error is None and place in left:
                    record, end = record_of(message, headers), left[place][1]
                    left[place] = record.offset + 1, end
                    if record.offset + 1 >= end:
                        del left[place]
                    if record.offset < end:
                        yield place, record
                elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                    if place in left and (message.offset() or 0) >= left[place][1]:
                        del left[place]
                elif error is not None and place in left and speaks_of_partition(error):
                    yield place, read_problem(error, message.topic() or "", place[1], left.pop(place)[0])
                elif error is not None and not is_passing(error):
                    raise KafkaException(error)
            # Silence counts from here: the consumer of this generator may have been busy for long.
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > _QUIET_S:
                where = self._partition(*next(iter(left.items())))
                raise Retryable(
                    f"reading {where.topic}/{where.partition}: nothing came for {_QUIET_S:g} s: check the brokers at "
                    f"{self._config.bootstrap}"
                )

    def _partition(self, place: Place, begin_and_end: tuple[int, int]) -> TopicPartition:
        channel, partition = place
        return TopicPartition(self._names[channel], partition, begin_and_end[0])

    def _place_of(self, message: Message) -> Place:
        """Where a message, or an error, is from: no place at all for an error that is about none."""
        topic, partition = message.topic(), message.partition()
        return Channel(self._names.index(topic)) if topic else Channel.EVENTS, -1 if partition is None else partition

    def append(
        self, channel: Channel, partition: int, records: Sequence[tuple[bytes | None, bytes | None, Headers, int]]
    ) -> None:
        """Write records durably: acknowledged by all in-sync replicas when this returns."""
        topic = self._names[channel]
        failures: list[KafkaError] = []

        def report(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(error)

        try:
            producer = self._writer(topic)
            for key, value, headers, timestamp_ms in records:
                _produce(producer, topic, partition, key, value, list(headers), max(timestamp_ms, 1), report)
            if producer.flush(_QUIET_S) or failures:
                raise KafkaException(failures[0] if failures else KafkaError(KafkaError._TIMED_OUT))
        except KafkaException as error:
            raise translate(self._sink.login_error or error, f"writing {topic}/{partition}", self._config) from error

    def _writer(self, topic: str) -> Producer:
        if self._producer is None:
            settings: ClientSettings = {"linger.ms": 5, "message.max.bytes": TOOL_RECORD_MAX_BYTES}
            settings |= common_settings(self._config) | {"enable.idempotence": True, "acks": "all"}
            self._producer = new_producer(settings, self._sink)
            # Connect first: an idempotent client without a broker waits for a timer of half a second.
            partition_count(self._producer, topic, self._config, self._sink)
        return self._producer

    def close(self) -> None:
        """Let go of connections. Never raises."""
        self._closed = True
        if self._reader is not None:
            close_quietly("log-reader", self._reader.close, _REQUEST_S)
            self._reader = None
        if self._producer is not None:
            close_quietly("log-writer", self._producer.close, _REQUEST_S)
            self._producer = None


def _record(found: tuple[Place, Record | StateCorrupt]) -> Record:
    if isinstance(found[1], StateCorrupt):
        raise found[1]
    return found[1]


def _produce(
    producer: Producer,
    topic: str,
    partition: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, str | bytes | None]],
    timestamp_ms: int,
    report: Callable[[KafkaError | None, object], None],
) -> None:
    """Hand one record to the client, waiting while its queue is full, within the time a reader would wait."""
    deadline = time.monotonic() + _QUIET_S
    while True:
        try:
            producer.produce(topic, value, key, partition, on_delivery=report, timestamp=timestamp_ms, headers=headers)
            return
        except BufferError:
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from None
            producer.poll(0.05)
