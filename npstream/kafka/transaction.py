"""The transactional producer of one worker: what a commit sends, and when it is over.

No producer survives an error: librdkafka speaks a protocol in which a late
response may end a later transaction, so after anything unclear the next
transaction belongs to a new producer.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from npstream import failpoints
from npstream.codec.position import encode_position
from npstream.errors import NpstreamError, Retryable
from npstream.kafka.bounded import BoundedCaller
from npstream.kafka.clients import Sink, close_quietly, new_producer
from npstream.kafka.config import KafkaConfig, producer_settings
from npstream.kafka.connect import partition_counts
from npstream.kafka.errors import FENCED, kafka_error, translate
from npstream.port import FinishCommit, Heartbeat
from npstream.records import Channel, Pointer, Share

_ABORT_S = 2.0
"""Best effort: a transaction we cannot abort now is ended by the next `init_transactions` of this worker."""
_SLICE_S = 1.0
"""Longest single wait inside the client, so that the heartbeat goes on."""
_REBALANCES_MAX = 3
"""Rebalances that one commit may outlive; a group that moves faster than this is not ours to chase."""
_OVERTAKEN = frozenset({KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS})

DeliveryReport = Callable[[KafkaError | None, Message], None]
GroupMetadata = Callable[[], Any]
"""Returns the joined consumer's metadata as it is now; stale metadata would let a zombie commit."""


class Publisher:
    """Publishes shares, each call one transaction. Unusable after the first error it cannot outlive."""

    def __init__(self, config: KafkaConfig, logger: logging.Logger, heartbeat: Heartbeat) -> None:
        self._config = config
        self._names = config.topics.names()
        self._timeout_s = config.transaction_timeout_ms / 1000
        self._logger = logger
        self._heartbeat = heartbeat
        self._sink = Sink(logger)
        self._producer: Any = new_producer(producer_settings(config), self._sink)
        self._caller = BoundedCaller[dict[int, Pointer]]("commit")
        self._began = 0.0
        self._ended: float | None = None
        self.produce_s = 0.0
        self._open = False
        self._usable = True

    @property
    def login_error(self) -> KafkaError | None:
        """The last refusal of a broker to let this client in, if there was one."""
        return self._sink.login_error

    def open(self, timeout_s: float) -> None:
        """Fence an earlier process of this worker and end what it left open."""
        deadline = time.monotonic() + timeout_s
        # Connect first: a client asked for transactions before it has a broker waits for a timer of half a second.
        self.partition_counts()
        while True:
            try:
                self._producer.init_transactions(_SLICE_S)
                return
            except KafkaException as error:
                found = kafka_error(error)
                if not (found and found.retriable() and time.monotonic() < deadline):
                    self._usable = False
                    raise translate(self._sink.login_error or error, "opening transactions", self._config) from error
                self._heartbeat()

    def partition_counts(self) -> list[int]:
        """Partition counts of the four topics as this client sees them from now on."""
        return partition_counts(self._producer, self._config, self._sink)

    def start(self, shares: Sequence[Share], group_metadata: GroupMetadata) -> FinishCommit:
        """Begin to publish all shares or nothing; what it returns waits for the end.

        1. Send outputs, segments, snapshot chunks and changes.

        The rest is waiting, done on another thread:

        2. Wait for the chunks, whose offsets the positions point to.
        3. Attach the input offsets with their positions.
        4. Commit.
        """
        if not self._usable:
            raise Retryable("the transactional producer has failed before: build a new broker")
        if not shares:
            return dict  # nothing to publish needs no transaction
        with self._giving_up():
            self._begin(shares, group_metadata)
        return lambda: self._finish(shares, group_metadata)

    def _finish(self, shares: Sequence[Share], group_metadata: GroupMetadata) -> dict[int, Pointer]:
        """A rebalance that overtakes the offsets on their way makes them stale, not wrong: publish again.

        The partitions are still ours, since they can only be taken away inside a
        poll, and a new producer makes sure that the refused transaction is over.
        """
        with self._giving_up():
            for _ in range(_REBALANCES_MAX):
                try:
                    return self._caller.wait(_SLICE_S, self._turn)
                except KafkaException as error:
                    found = kafka_error(error)
                    if found is None or found.code() not in _OVERTAKEN:
                        raise
                    self._logger.info("a rebalance overtook a commit, publishing again: %s", found.name())
                    self._renew()
                    self._begin(shares, group_metadata)
            return self._caller.wait(_SLICE_S, self._turn)

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Whatever goes wrong, this producer is not used again."""
        try:
            yield
        except (KafkaException, SystemError, RuntimeError, BufferError) as error:
            raise self._give_up(error) from error
        except BaseException:
            self._usable = False
            raise

    def _renew(self) -> None:
        close_quietly("producer", self._drop, _ABORT_S)
        self._open = False
        self._producer = new_producer(producer_settings(self._config), self._sink)
        self.open(self._config.connect_timeout_ms / 1000)

    def _begin(self, shares: Sequence[Share], group_metadata: GroupMetadata) -> None:
        """Hand everything over; from here on the transaction comes to its end by itself."""
        self._began, self._ended = time.monotonic(), None
        self._producer.begin_transaction()
        self._open = True
        failpoints.hit("begin")
        firsts = {share.partition: self._try_send(share) for share in shares}
        self.produce_s += time.monotonic() - self._began
        # Asked for now: with older metadata a worker that the group has dropped could commit.
        metadata = group_metadata()
        self._caller.start(lambda: self._complete(shares, firsts, metadata))

    def _complete(
        self, shares: Sequence[Share], firsts: Mapping[int, list[Message]], metadata: Any
    ) -> dict[int, Pointer]:
        """Steps 2 to 4, on the caller's thread, while the worker's own may compute."""
        try:
            if any(share.chunks for share in shares):
                # Only a delivered chunk has an offset to point to. Outputs need no wait: the commit includes one.
                self._flush()
                failpoints.hit("after_flush")
            pointers = {share.partition: _pointer(share, firsts[share.partition]) for share in shares}
            offsets = [self._offset(share, pointers[share.partition]) for share in shares]
            offsets += self._label_offsets(shares)
            failpoints.hit("before_send_offsets")
            self._producer.send_offsets_to_transaction(offsets, metadata, self._left_s())
            _require_delivered(shares, firsts)
            failpoints.hit("after_send_offsets")
            failpoints.hit("before_commit")
            self._commit()
            self._open = False
            failpoints.hit("after_commit")
            return pointers
        finally:
            self._ended = time.monotonic()

    def _try_send(self, share: Share) -> list[Message]:
        """As `_send`; a record that the client does not take is an error of its partition, not of the transaction."""
        try:
            return self._send(share)
        except (KafkaException, TypeError, ValueError, OverflowError) as error:
            doing = f"publishing decisions of {self._names[0]}/{share.partition}"
            raise self._give_up(error, doing, share.partition) from error

    def _send(self, share: Share) -> list[Message]:
        """Hand one share to the client; the list gets the delivery report of its first chunk."""
        reports: list[Message] = []
        self._send_outputs(share)
        for segment, content in share.segments:
            failpoints.hit("segment")
            self._send_checkpoint(share.partition, segment, content, None)
        for index, (key, value) in enumerate(share.chunks):
            if index or len(share.chunks) == 1:
                failpoints.hit("mid_snapshot")
            self._send_checkpoint(share.partition, key, value, None if index else _keep(reports))
        for key, value in share.changes:
            self._send_checkpoint(share.partition, key, value, None)
        return reports

    def _send_outputs(self, share: Share) -> None:
        produce, names, partition = self._producer.produce, self._names, share.partition
        watched = failpoints.watched("produce")
        for channel, key, value, headers, timestamp_ms in share.outputs:
            if watched:
                failpoints.hit("produce")
            # librdkafka takes timestamp 0 for "now", which would not be the same after a replay.
            stamp = timestamp_ms if timestamp_ms > 0 else 1
            own = headers if type(headers) is list else list(headers)
            while True:
                try:
                    # By position (after two names of the callback): by keyword a call takes half as long again.
                    produce(names[channel], value, key, partition, None, None, stamp, own)
                    break
                except BufferError:
                    self._make_room()

    def _send_checkpoint(
        self,
        partition: int,
        key: bytes,
        value: bytes | None,
        report: Callable[[KafkaError | None, Message], None] | None,
    ) -> None:
        topic = self._names[Channel.CHECKPOINTS]
        while True:
            try:
                self._producer.produce(topic, value, key, partition, on_delivery=report)
                return
            except BufferError:
                self._make_room()

    def _make_room(self) -> None:
        """The client's queue is full: let it drain, at most until the transaction's time is over."""
        self._producer.poll(min(0.05, self._left_s()))
        self._heartbeat()

    def _flush(self) -> None:
        while self._producer.flush(min(_SLICE_S, self._left_s())):
            pass

    def _turn(self) -> float:
        """One turn of a wait: call the heartbeat, return what is left of the transaction's time."""
        self._heartbeat()
        return self._left_s()

    def _commit(self) -> None:
        while True:
            try:
                self._producer.commit_transaction(min(_SLICE_S, self._left_s()))
                return
            except KafkaException as error:
                # A timeout does not say whether it is committed; the same call asks for the same transaction again.
                found = kafka_error(error)
                if found is None or not found.retriable():
                    raise

    def _left_s(self) -> float:
        """What is left of the transaction's time; raises `Retryable` when nothing is."""
        left_s = self._began + self._timeout_s - time.monotonic()
        if left_s <= 0:
            raise Retryable(
                f"a transaction did not end within {self._timeout_s:g} s: brokers at {self._config.bootstrap} are slow "
                "or gone; what became of it is read from the log after a restart of the session"
            )
        return left_s

    def _offset(self, share: Share, pointer: Pointer) -> TopicPartition:
        position = replace(share.position, pointer=pointer)
        return TopicPartition(self._names[0], share.partition, position.next_offset, encode_position(position))

    def _label_offsets(self, shares: Sequence[Share]) -> list[TopicPartition]:
        """For tools that show lag: what counts is in the positions."""
        topic = self._config.topics.labels
        if topic is None:
            return []
        places = [(share.partition, share.position.labels) for share in shares]
        return [TopicPartition(topic, p, labels.next_label) for p, labels in places if labels is not None]

    def _give_up(self, error: BaseException, doing: str = "committing", partition: int | None = None) -> NpstreamError:
        self._usable = False
        found = kafka_error(error)
        open_s = (self._ended or time.monotonic()) - self._began
        if found is not None and found.code() in FENCED and open_s >= self._timeout_s:
            return Retryable(f"a transaction was open for {open_s:.1f} s and the brokers aborted it: restart")
        return translate(found or error, doing, self._config, partition)

    def close(self, timeout_s: float) -> None:
        """Let go of the producer and of what it still holds. Never raises."""
        self._usable = False
        # On the caller's thread: a client must not go while a call is inside it.
        self._caller.close(self._drop, timeout_s)

    def _drop(self) -> None:
        """Abort what is open, so that readers need not wait for a timeout; best effort."""
        producer, self._producer = self._producer, None
        if producer is not None and self._open:
            producer.purge()
            producer.abort_transaction(_ABORT_S)


def _keep(reports: list[Message]) -> DeliveryReport:
    def report(_: KafkaError | None, message: Message) -> None:
        reports.append(message)

    return report


def _pointer(share: Share, reports: list[Message]) -> Pointer:
    """The position's pointer, with the offset that the first chunk got when there are chunks."""
    offset = reports[0].offset() if reports else None
    return share.position.pointer if offset is None else replace(share.position.pointer, offset=offset)


def _require_delivered(shares: Sequence[Share], firsts: Mapping[int, list[Message]]) -> None:
    """Raise when a first chunk was not delivered, and so its pointer leads nowhere.

    Asked after the offsets were sent: a failed transaction refuses them and names
    the cause, of which a delivery report knows only that the chunk was dropped.
    """
    for share in shares:
        reports = firsts[share.partition]
        if share.chunks and not reports:
            raise Retryable(f"partition {share.partition}: a snapshot chunk was not reported: the session is restarted")
        if reports and (error := reports[0].error()) is not None:
            raise KafkaException(error)
