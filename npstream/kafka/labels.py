"""The labels topic: a second consumer, which never joins the group and reads the labels of owned partitions.

The group subscribes to the events topic alone: no assignment would keep the same
partition of two topics on one worker. Where each partition is read from is the
caller's to say; what it has not taken yet is held here, in bounded memory.
"""

import logging
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, TopicPartition

from npstream.errors import StateCorrupt
from npstream.kafka.clients import Sink, close_quietly, new_consumer
from npstream.kafka.config import KafkaConfig, reader_settings
from npstream.kafka.connect import partition_count
from npstream.kafka.errors import translate, translated
from npstream.kafka.messages import headers_of, is_passing, record_of, speaks_of_partition
from npstream.port import LABELS_MAX, NEAR_END, due_labels
from npstream.records import LabelsWanted, Record

_WAIT_S = 1.0
"""Longest wait for the labels that come before the events of a partition that lags; later ones are merged later."""
_SLICE_S = 0.05
_TAKE = 10_000


class LabelReader:
    """Reads labels beside the group member. `read` moves nothing on: what is wanted next says what was taken."""

    def __init__(self, config: KafkaConfig, topic: str, logger: logging.Logger) -> None:
        self._config = config
        self._topic = topic
        self._logger = logger
        self._sink = Sink(logger)
        settings = reader_settings(config) | {"client.id": f"{config.transactional_id}.labels"}
        self._consumer = new_consumer(settings, self._sink)
        self._held: dict[int, deque[Record]] = {}
        self._begin: dict[int, int] = {}
        """Every label of a partition from here on is held or still to come."""
        self._at_end: set[int] = set()
        self._paused: set[int] = set()
        self._gone: dict[int, StateCorrupt] = {}

    def read(
        self, wanted: Sequence[LabelsWanted], events_left: Mapping[int, int], owned: Collection[int]
    ) -> tuple[dict[int, Sequence[Record]], dict[int, StateCorrupt]]:
        """Labels that are due by partition, and why a partition's labels cannot be read any further.

        `events_left` says how many events each partition has still to read.
        """
        with translated("reading labels", self._config):
            self._let_go([partition for partition in self._held if partition not in owned])
            for each in wanted:
                self._move(each.partition, each.next_label)
            self._fill(wanted, events_left)
        gone, self._gone = self._gone, {}
        self._let_go(list(gone))
        return {each.partition: self._due(each, events_left) for each in wanted if each.partition in self._held}, gone

    def _due(self, wanted: LabelsWanted, events_left: Mapping[int, int]) -> Sequence[Record]:
        held = list(islice(self._held[wanted.partition], LABELS_MAX))
        return due_labels(held, wanted.moment_ms, events_left[wanted.partition])

    def _move(self, partition: int, next_label: int) -> None:
        """Hold the labels of a partition from an offset on."""
        if partition not in self._held or next_label < self._begin[partition]:
            if not self._held:
                # This makes the client learn where the partitions are; otherwise its first read waits for a timer.
                partition_count(self._consumer, self._topic, self._config, self._sink)
            self._let_go([partition])
            place = TopicPartition(self._topic, partition, next_label or OFFSET_BEGINNING)
            self._consumer.incremental_assign([place])
            self._held[partition] = deque()
        self._begin[partition] = next_label
        held = self._held[partition]
        while held and held[0].offset < next_label:
            held.popleft()
        self._maybe_resume(partition)

    def _let_go(self, partitions: Sequence[int]) -> None:
        known = [partition for partition in partitions if partition in self._held]
        if known:
            self._consumer.incremental_unassign([TopicPartition(self._topic, partition) for partition in known])
        for partition in known:
            del self._held[partition], self._begin[partition]
            self._at_end.discard(partition)
            self._paused.discard(partition)

    def _fill(self, wanted: Sequence[LabelsWanted], events_left: Mapping[int, int]) -> None:
        """Take what has come, and wait a moment for what a partition that lags must have first."""
        self._take(self._consumer.consume(_TAKE, 0.0))
        deadline = time.monotonic() + _WAIT_S
        lagging = [each for each in wanted if events_left[each.partition] > NEAR_END]
        while any(self._is_open(each) for each in lagging) and (left_s := deadline - time.monotonic()) > 0:
            messages = self._consumer.consume(1, min(_SLICE_S, left_s))
            self._take(messages + self._consumer.consume(_TAKE, 0.0) if messages else messages)

    def _is_open(self, wanted: LabelsWanted) -> bool:
        """Whether a label that is not younger than the batch may still come."""
        held = self._held.get(wanted.partition)
        if held is None or wanted.partition in self._at_end or wanted.partition in self._gone:
            return False
        return len(held) < LABELS_MAX and not (held and held[-1].timestamp_ms > wanted.moment_ms)

    def _take(self, messages: Sequence[Message]) -> None:
        for message, headers in zip(messages, headers_of(messages), strict=True):
            partition, error = message.partition(), message.error()
            if error is not None:
                self._note(error, partition)
                continue
            record = record_of(message, headers)
            held = self._held.get(-1 if partition is None else partition)
            if held is None or partition is None or record.offset < self._begin[partition]:
                continue
            self._at_end.discard(partition)
            held.append(record)
            if len(held) >= 2 * LABELS_MAX and partition not in self._paused:
                self._paused.add(partition)
                self._consumer.pause([TopicPartition(self._topic, partition)])

    def _maybe_resume(self, partition: int) -> None:
        if partition in self._paused and len(self._held[partition]) < LABELS_MAX:
            self._paused.discard(partition)
            self._consumer.resume([TopicPartition(self._topic, partition)])

    def _note(self, error: KafkaError, partition: int | None) -> None:
        if error.code() == KafkaError._PARTITION_EOF and partition is not None:
            self._at_end.add(partition)
        elif partition in self._held and speaks_of_partition(error):
            assert partition is not None
            self._gone[partition] = self._problem(partition, error)
        elif is_passing(error) or error.code() == KafkaError._PARTITION_EOF:
            self._logger.warning("kafka label reader: %s: %s", error.name(), error.str())
        else:
            raise translate(error, f"reading labels from {self._topic!r}", self._config)

    def _problem(self, partition: int, error: KafkaError) -> StateCorrupt:
        held = self._held[partition]
        at = held[-1].offset + 1 if held else self._begin[partition]
        return StateCorrupt(
            f"{self._topic}/{partition}: the labels from offset {at} on cannot be read ({error.str()}): they were "
            "deleted before they were learned, or the topic was deleted and created again. Go on with those that are "
            f"left by `npstream reset --partition {partition} --to OFFSET --keep-model --execute`, with the committed "
            "offset, which `npstream lag` shows; then raise the retention of the labels topic"
        )

    def close(self, timeout_s: float) -> None:
        """Let go of the connection. Never raises."""
        close_quietly("label-reader", self._consumer.close, timeout_s)
