"""A probe: sends events at a steady rate and watches when their decisions can be read."""

import logging
import threading
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from npstream.bench.events import Event
from npstream.errors import Retryable
from npstream.kafka.clients import Sink, close_quietly, new_consumer, new_producer
from npstream.kafka.config import KafkaConfig, common_settings, reader_settings
from npstream.records import Channel

_CLOSE_S = 10.0
_TICK_S = 0.001


class Probe:
    """One sender and one read_committed reader of a loop that replies to each event under its key."""

    def __init__(self, config: KafkaConfig, partitions: int) -> None:
        sink = Sink(logging.getLogger("npstream.kafka"))
        self._partitions = partitions
        self._events = config.topics.names()[Channel.EVENTS]
        self._decisions = config.topics.names()[Channel.DECISIONS]
        plain = {**common_settings(config), "linger.ms": 0, "acks": "all"}
        self._producer: Producer = new_producer(plain, sink)
        quick = {**reader_settings(config), "client.id": "npstream-probe", "fetch.wait.max.ms": 500}
        self._consumer: Consumer = new_consumer({**quick, "enable.partition.eof": False}, sink)
        self._consumer.assign([TopicPartition(self._decisions, partition, 0) for partition in range(partitions)])
        self._sent_at: list[float] = []
        self._seen_at: dict[int, float] = {}

    def measure(self, events: Sequence[Event], per_second: float, seconds: float, patience_s: float) -> list[float]:
        """Seconds from sending to seeing for each event sent over `seconds`.

        One event goes ahead and is waited for, so that the loop is known to be
        there. Raises `Retryable` when a reply does not come within `patience_s`.
        """
        self._send(events[0])
        self._watch(1, patience_s)
        sender = threading.Thread(target=self._send_all, args=(events, per_second, seconds), daemon=True)
        sender.start()
        self._watch(1 + round(per_second * seconds), seconds + patience_s)
        sender.join(patience_s)
        return [self._seen_at[number] - sent for number, sent in enumerate(self._sent_at) if number]

    def _send_all(self, events: Sequence[Event], per_second: float, seconds: float) -> None:
        count, began = round(per_second * seconds), time.perf_counter()
        for number in range(count):
            while (ahead_s := began + number / per_second - time.perf_counter()) > 0:
                time.sleep(min(ahead_s, _TICK_S))
            self._send(events[number % len(events)])
        self._producer.flush(_CLOSE_S)

    def _send(self, event: Event) -> None:
        value, headers = event
        number = len(self._sent_at)
        self._sent_at.append(time.perf_counter())
        self._producer.produce(self._events, value, b"%d" % number, number % self._partitions, headers=list(headers))
        self._producer.poll(0)

    def _watch(self, count: int, timeout_s: float) -> None:
        """Note when each reply is there, until there are `count`."""
        deadline = time.perf_counter() + timeout_s
        while len(self._seen_at) < count:
            message = self._consumer.poll(0.1)
            now = time.perf_counter()
            if message is not None and message.error() is None:
                self._seen_at.setdefault(int(message.key() or b"-1"), now)
            elif now > deadline:
                raise Retryable(f"{count - len(self._seen_at)} of {count} replies did not come in {timeout_s:g} s")

    def close(self) -> None:
        """Let go of the connections. Never raises."""
        close_quietly("probe-producer", self._producer.close, _CLOSE_S)
        close_quietly("probe-consumer", self._consumer.close, _CLOSE_S)
