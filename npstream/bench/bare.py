"""The least that exactly-once costs in Python: read each event, publish as many bytes, commit.

What an event brings (value, headers, key, time) is taken from the client, but
nothing is decoded, decided or learned. The clients, the batch size, the way of
waiting and the size of everything written are those of a worker, so that the
difference between the two is what npstream itself costs. The client is called as
its documentation shows, by keyword; by position, as a worker does it, this loop
would be about a tenth faster.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, Message, TopicPartition

from npstream.codec.envelope import OFFSET_HEADER
from npstream.errors import Retryable
from npstream.kafka.clients import Sink, close_quietly, new_consumer, new_producer
from npstream.kafka.config import KafkaConfig, member_settings, producer_settings
from npstream.kafka.member import GATHER_S
from npstream.records import Channel

_CALL_S = 10.0
_CLOSE_S = 10.0


@dataclass(frozen=True, slots=True)
class Replies:
    """What is written for an event, whatever it holds: values in turn, one header, one metadata string."""

    values: Sequence[bytes]
    offset: bytes
    metadata: str


class BareLoop:
    """Reads the events from their beginning and replies to each, one transaction per batch. Not restartable."""

    def __init__(self, config: KafkaConfig, replies: Replies, batch_max: int, poll_s: float) -> None:
        sink = Sink(logging.getLogger("npstream.kafka"))
        self._topics = config.topics.names()
        self._replies = replies
        self._batch_max = batch_max
        self._poll_s = poll_s
        self._consumer = new_consumer(member_settings(config), sink)
        self._producer = new_producer(producer_settings(config), sink)
        self._next: dict[int, int] = {}
        self.started: float | None = None
        self.ended = 0.0
        self.cpu_s = 0.0

    def run(self, ends: Mapping[int, int] | None, stop: threading.Event, clock: Callable[[], float]) -> None:
        """Reply until every partition is at its end, or `stop` is set. `started` is when the first batch was there."""
        self._producer.init_transactions(_CALL_S)
        self._consumer.subscribe([self._topics[Channel.EVENTS]], on_assign=_from_the_beginning)
        busy = 0.0
        try:
            while not stop.is_set() and not (ends and self._next == ends):
                messages = self._consume()
                if messages:
                    if self.started is None:
                        self.started, busy = clock(), time.process_time()
                    self._reply(messages)
                    self.ended, self.cpu_s = clock(), time.process_time() - busy
        finally:
            close_quietly("bare-producer", self._producer.close, _CLOSE_S)
            close_quietly("bare-consumer", self._consumer.close, _CLOSE_S)

    def _consume(self) -> list[Message]:
        """As `Member` does it: a batch when records are waiting, else the first to come and what is there with it."""
        deadline = time.monotonic() + self._poll_s
        messages = self._consumer.consume(self._batch_max, min(GATHER_S, self._poll_s))
        if messages:
            return messages
        messages = self._consumer.consume(1, max(0.0, deadline - time.monotonic()))
        return messages + self._consumer.consume(self._batch_max - 1, 0.0) if messages else messages

    def _reply(self, messages: list[Message]) -> None:
        produce, topic, values = self._producer.produce, self._topics[Channel.DECISIONS], self._replies.values
        headers: list[tuple[str, str | bytes | None]] = [(OFFSET_HEADER, self._replies.offset)]
        last: dict[int, int] = {}
        self._producer.begin_transaction()
        for index, message in enumerate(messages):
            if message.error() is not None:
                raise Retryable(f"the bare loop met an error and cannot be measured: {message.error()}")
            partition = message.partition() or 0
            last[partition] = message.offset() or 0
            message.value()
            message.headers()
            produce(
                topic,
                values[index % len(values)],
                message.key(),
                partition,
                timestamp=message.timestamp()[1],
                headers=headers,
            )
        self._next |= {partition: offset + 1 for partition, offset in last.items()}
        places = [self._place(partition) for partition in last]
        self._producer.send_offsets_to_transaction(places, self._consumer.consumer_group_metadata(), _CALL_S)
        self._producer.commit_transaction(_CALL_S)

    def _place(self, partition: int) -> TopicPartition:
        events = self._topics[Channel.EVENTS]
        return TopicPartition(events, partition, self._next[partition], self._replies.metadata)


def _from_the_beginning(consumer: Consumer, assigned: list[TopicPartition]) -> None:
    consumer.incremental_assign([TopicPartition(place.topic, place.partition, 0) for place in assigned])
