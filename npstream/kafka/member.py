"""The consumer that belongs to the group: ownership of partitions, and their records."""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, TopicPartition

from npstream.errors import Retryable, StateCorrupt, plural
from npstream.kafka.clients import Sink, close_quietly, new_admin, new_consumer
from npstream.kafka.config import KafkaConfig, common_settings, member_settings
from npstream.kafka.connect import topic_id
from npstream.kafka.errors import translate, translated
from npstream.kafka.group import GroupView, View
from npstream.kafka.messages import headers_of, is_passing, read_problem, speaks_of_partition
from npstream.kafka.orphans import OrphanWatch
from npstream.port import Listener
from npstream.records import Batch, Phase, Record

GATHER_S = 0.005
"""How long a poll collects records when some are there: enough to fill a batch under load."""

_MOMENT_S = 0.05
"""A call into librdkafka at the moment it ends its membership never returns, and holds the interpreter meanwhile.
Closing runs the callbacks, and they make such calls: they wait for this long first."""

_LEAVE_S = 5.0
"""Longest wait for the coordinator to be reached; then the member is dropped as it is."""


class Member:
    """One member of the group. Records are handed out for owned partitions only."""

    def __init__(
        self,
        config: KafkaConfig,
        logger: logging.Logger,
        served: Callable[[], int],
        orphans: OrphanWatch,
    ) -> None:
        """`served` returns how many input partitions the output topics have room for."""
        self._config = config
        self._served = served
        self._topic = config.topics.events
        self._logger = logger
        self._sink = Sink(logger)
        self._consumer = new_consumer(member_settings(config), self._sink)
        self._admin = new_admin(common_settings(config), self._sink)
        self._view = GroupView(self._admin, config.group, config.topics)
        self._orphans = orphans
        self._topic_ids: dict[str, str] = {}
        self._waiting: set[int] = set()
        self._member_id: str | None = None
        self._listener: Listener | None = None
        self._next_offsets: dict[int, int] = {}
        """Where each owned partition is read next."""
        self._paused: set[int] = set()
        """Those of them that the client does not fetch."""
        self._let_go: set[int] = set()
        self._rewind: set[int] = set()
        self._unreadable: dict[int, KafkaError] = {}
        self._kept: BaseException | None = None
        self._leaving = False

    @property
    def login_error(self) -> KafkaError | None:
        """The last refusal of a broker to let this client in, if there was one."""
        return self._sink.login_error

    def subscribe(self, listener: Listener) -> None:
        """Join the group; assignments come inside `poll`."""
        self._listener = listener
        for topic in (self._topic, self._config.topics.labels):
            if topic is not None:
                self._topic_ids[topic] = topic_id(self._admin, topic, self._config, self._sink)
        with translated("joining the group", self._config):
            self._consumer.subscribe(
                [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )

    def group_metadata(self) -> Any:
        """The membership as it is now; asked again for each transaction.

        A member that the group has dropped has lost its id, and some brokers accept
        offsets from a member without an id: so such a member does not send any. A new id
        comes with a new assignment only, inside a poll.
        """
        metadata = self._consumer.consumer_group_metadata()
        if self._consumer.memberid() != self._member_id:
            raise Retryable("committing: the group has moved on without this worker: the session is restarted")
        return metadata

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Wait for records, at most `timeout_s`; ownership changes reach the listener on the way."""
        self._let_go.clear()  # both are about messages that one poll fetched before ownership changed in it
        self._rewind.clear()
        self._report_unreadable()
        with translated("looking at the group", self._config):
            self._look_around()
        with translated("reading events", self._config):
            messages = self._consume(max_records, timeout_s)
            self._raise_kept()  # before the messages are used: whose they are is unclear now
            batches = self._batches(messages)
        self._raise_kept()
        return batches

    @property
    def owned(self) -> Collection[int]:
        """The partitions this member owns now."""
        return self._next_offsets.keys()

    def events_left(self, partition: int) -> int:
        """Offsets that an owned partition has still to read, as far as the client knows; many when it does not."""
        found = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        end = -1 if found is None else found[1]
        return end - self._next_offsets[partition] if end >= 0 else 2**62

    def fail(self, partition: int, problem: StateCorrupt) -> None:
        """Something else that this owned partition needs cannot be read any further."""
        if partition in self._next_offsets and self._listener is not None:
            self._listener.on_failed(partition, problem)

    def _look_around(self) -> None:
        """Act on what the brokers say of topic and group, when there is news. Raises `Retryable` to rejoin."""
        view = self._view.news(time.monotonic())
        if view is None:
            return
        for topic, seen in ((self._topic, view.topic_id), (self._config.topics.labels, view.label_topic_id)):
            known = self._topic_ids.get(topic or "")
            if seen and known and seen != known:
                raise Retryable(
                    f"topic {topic!r} was deleted and created again: what its offsets mean has changed, so every "
                    "partition is looked at again"
                )
        self._maybe_rejoin(view)
        self._take_up(view)

    def _maybe_rejoin(self, view: View) -> None:
        """Leave a stable group that has forgotten a partition; see `orphans`."""
        orphans = self._orphans.look(time.monotonic(), view.assignment, view.partitions, self._consumer.memberid())
        if orphans:
            self._listener_lets_go()
            self._listener = None
            self._leave()
            raise Retryable(
                f"{self._topic}: {_partitions(orphans)} no owner though the group is stable: leaving it and joining "
                "again, so that every partition is assigned"
            )

    def _leave(self) -> None:
        """Leave the group for good: a static member that is only closed keeps its place, and its assignment.

        The client leaves when the partitions are given back, which happens inside a poll.
        """
        deadline = time.monotonic() + _LEAVE_S
        self._consumer.unsubscribe()
        while self._consumer.memberid() and time.monotonic() < deadline:
            self._consumer.poll(_MOMENT_S)

    def _take_up(self, view: View) -> None:
        """Start with partitions that waited for the output topics to grow."""
        if not any(view.served is not None and p < view.served for p in self._waiting) or self._listener is None:
            return
        served = self._served()
        ready = sorted(partition for partition in self._waiting if partition < served)
        self._waiting.difference_update(ready)
        starts = self._listener.on_assigned(ready)
        with translated("taking up new partitions", self._config):
            for partition in ready:
                start = starts[partition]
                if start is not None:
                    place = TopicPartition(self._topic, partition, start)
                    self._next_offsets[partition] = start
                    self._paused.discard(partition)
                    self._consumer.seek(place)
                    self._consumer.resume([place])

    def _consume(self, max_records: int, timeout_s: float) -> list[Message]:
        """A batch when records are waiting, else the first to come and what is there with it.

        `consume` returns when it has all it was asked for: asking for one makes an
        idle worker wake at once and never spin.
        """
        deadline = time.monotonic() + timeout_s
        messages = self._consumer.consume(max_records, min(GATHER_S, timeout_s))
        if messages or self._kept is not None:
            return messages
        messages = self._consumer.consume(1, max(0.0, deadline - time.monotonic()))
        if messages and max_records > 1 and self._kept is None:
            messages += self._consumer.consume(max_records - 1, 0.0)
        return messages

    def _batches(self, messages: Sequence[Message]) -> list[Batch]:
        new: Callable[[type[Record], tuple[object, ...]], Record] = tuple.__new__  # the constructor costs twice as much
        read: dict[int | None, list[Record]] = {}
        for message, headers in zip(messages, headers_of(messages), strict=True):
            if message.error() is not None:
                self._note_error(message)
                continue
            partition = message.partition()
            # The client may continue after what it could not read: ignore the rest of that partition.
            if self._unreadable and partition in self._unreadable:
                continue
            fields = (message.offset(), message.timestamp()[1], message.key(), message.value(), headers)
            records = read.get(partition)
            if records is None:
                read[partition] = [new(Record, fields)]
            else:
                records.append(new(Record, fields))
        return [Batch(p, records) for p, records in read.items() if p is not None and self._accept(p, records)]

    def _accept(self, partition: int, records: list[Record]) -> bool:
        """Move the reading place on, unless these records are nobody's: paused, given away, or from before that."""
        expected = self._next_offsets.get(partition)
        if expected is None or partition in self._paused:
            return False
        if self._is_paused(partition):
            self._pause_in_client([partition])
            return False
        if partition in self._rewind:
            self._consumer.seek(TopicPartition(self._topic, partition, expected))
            return False
        if records[0].offset < expected:
            raise Retryable(
                f"{self._topic}/{partition}: the client went back from offset {expected} to {records[0].offset}: "
                "the session is restarted"
            )
        self._next_offsets[partition] = records[-1].offset + 1
        return True

    def _note_error(self, message: Message) -> None:
        """An error among the messages: keep it for its partition when it would come back, log it, or raise it."""
        error, partition = message.error(), message.partition()
        assert error is not None
        if is_passing(error):
            self._logger.warning("kafka consumer: %s: %s", error.name(), error.str())
        elif partition in self._next_offsets and speaks_of_partition(error):
            self._unreadable[partition] = error
        else:
            owned = partition if partition in self._next_offsets else None
            raise translate(error, "reading events", self._config, owned)

    def _report_unreadable(self) -> None:
        """Report what could not be read any further in the last poll, now that the records before it are processed."""
        unreadable, self._unreadable = self._unreadable, {}
        for partition, error in unreadable.items():
            if partition in self._next_offsets and self._listener is not None and not self._is_paused(partition):
                problem = read_problem(error, self._topic, partition, self._next_offsets[partition])
                self._listener.on_failed(partition, problem)
                self._pause_in_client([partition])

    def _is_paused(self, partition: int) -> bool:
        return self._listener is None or self._listener.phase_of(partition) is Phase.PAUSED

    def _pause_in_client(self, partitions: Collection[int]) -> None:
        """Make the client fetch nothing of these any more."""
        if partitions:
            self._consumer.pause([TopicPartition(self._topic, partition) for partition in partitions])
            self._paused.update(partitions)

    # Callbacks: they run inside `consume` and must never raise. What happens in them is kept for `poll`.

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        with self._keeping():
            self._member_id = consumer.memberid()
            partitions = sorted(tp.partition for tp in assigned)
            served = self._served() if partitions else 0
            starts = self._ask_starts([partition for partition in partitions if partition < served])
            starts |= dict.fromkeys(partition for partition in partitions if partition >= served)
            # One that is not to be read is assigned as well, at the end and paused: it stays ours.
            consumer.incremental_assign(
                [TopicPartition(self._topic, p, OFFSET_END if s is None else s) for p, s in starts.items()]
            )
            self._next_offsets |= {p: -1 if s is None else s for p, s in starts.items()}
            # Given away and received again within one poll: the messages of this poll are from before.
            self._rewind |= self._let_go & starts.keys()
            for partition in partitions:
                if partition >= served:
                    self._make_wait(partition, served)
            self._pause_in_client([partition for partition, start in starts.items() if start is None])

    def _ask_starts(self, partitions: list[int]) -> dict[int, int | None]:
        if not partitions or self._listener is None or self._kept is not None:
            return {}
        starts = self._listener.on_assigned(partitions)
        return {partition: starts[partition] for partition in partitions}

    def _make_wait(self, partition: int, served: int) -> None:
        if self._listener is not None and self._kept is None:
            self._waiting.add(partition)
            self._listener.on_waiting(
                partition,
                f"{self._topic}/{partition} is new and the output topics have only {plural(served, 'partition')}: run "
                "`npstream init`, which adds the missing ones; it is then taken up without a restart",
            )

    def _on_revoke(self, consumer: Consumer, revoked: list[TopicPartition]) -> None:
        partitions = [place.partition for place in revoked if place.partition in self._next_offsets]
        self._release(consumer, revoked, partitions, lambda listener: listener.on_revoked(sorted(partitions)))

    def _on_lost(self, consumer: Consumer, lost: list[TopicPartition]) -> None:
        """A lost membership means every partition is lost, also those that the list leaves out."""
        partitions = sorted(self._next_offsets)
        self._release(consumer, lost, partitions, lambda listener: listener.on_lost(partitions))

    def _release(
        self,
        consumer: Consumer,
        gone: list[TopicPartition],
        partitions: Sequence[int],
        notify: Callable[[Listener], None],
    ) -> None:
        with self._keeping():
            # First the listener: on revoke it still commits as their owner, and the group waits for the unassign.
            if partitions and self._listener is not None and self._kept is None:
                notify(self._listener)
            for partition in partitions:
                del self._next_offsets[partition]
                self._paused.discard(partition)
                self._waiting.discard(partition)
            self._let_go.update(partitions)
            consumer.incremental_unassign(gone)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Nothing may escape a callback: the client would lose records. The first error is kept."""
        if self._leaving:
            time.sleep(_MOMENT_S)
        try:
            yield
        except BaseException as error:
            self._kept = self._kept or error

    def _raise_kept(self) -> None:
        if self._kept is not None:
            raise self._kept

    def close(self, timeout_s: float) -> None:
        """Leave the group after the listener has given up its partitions; a static member keeps its place."""
        deadline = time.monotonic() + timeout_s
        self._listener_lets_go()
        self.abandon(max(0.0, deadline - time.monotonic()))

    def _listener_lets_go(self) -> None:
        if self._listener is not None and self._next_offsets and self._kept is None:
            self._listener.on_revoked(sorted(self._next_offsets))

    def abandon(self, timeout_s: float) -> None:
        """Leave without a word to the listener. Never raises."""
        self._listener = None
        self._next_offsets = {}
        self._leaving = True
        close_quietly("consumer", self._consumer.close, timeout_s)


def _partitions(numbers: Sequence[int]) -> str:
    return f"partition {numbers[0]} has" if len(numbers) == 1 else f"partitions {', '.join(map(str, numbers))} have"
