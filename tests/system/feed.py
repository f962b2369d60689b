"""The throttled feed: a thread that writes events at a rate, and slowly beyond the share it is allowed."""

import threading
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, Producer

from tests.system.stream import Plain, is_label

_BURST_S = 0.1
_DRIP = 60
_FLUSH_S = 120.0


class Feed(threading.Thread):
    """Writes events in bursts of a tenth of a second.

    Beyond the allowed share it only drips, so that events still arrive while the
    faults of a run are being worked off, on a slow machine too.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        events: Sequence[tuple[int, Plain]],
        per_second: float,
        label_topic: str | None = None,
    ) -> None:
        """`label_topic` is where those go that are labels alone, on the partition given; None: with the others."""
        super().__init__(name="feed", daemon=True)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )
        self._topic = topic
        self._label_topic = label_topic or topic
        self._events = events
        self._burst = max(1, round(per_second * _BURST_S))
        self._allowed = 0.0
        self._finish = threading.Event()
        self._sent = 0
        self.failures: list[KafkaError] = []

    @property
    def fraction(self) -> float:
        """How much of the feed has been sent."""
        return self._sent / len(self._events)

    def allow(self, fraction: float) -> None:
        """Up to here at full rate."""
        self._allowed = fraction

    def finish(self) -> None:
        """Send what is left at once."""
        self._finish.set()

    def run(self) -> None:
        """Send everything; the thread ends when all is acknowledged."""
        while self._sent < len(self._events):
            size = self._burst if self.fraction < self._allowed else max(1, self._burst // _DRIP)
            for partition, event in self._events[self._sent : self._sent + size]:
                self._send(partition, event)
            self._sent += size
            self._producer.poll(0)
            self._finish.wait(_BURST_S)
        self._producer.flush(_FLUSH_S)

    def _send(self, partition: int, event: Plain) -> None:
        key, value, headers, timestamp_ms = event
        while True:
            try:
                self._producer.produce(
                    self._label_topic if is_label(event) else self._topic,
                    value,
                    key,
                    partition,
                    on_delivery=self._delivered,
                    timestamp=timestamp_ms,
                    headers=list(headers),
                )
                return
            except BufferError:
                self._producer.poll(_BURST_S)

    def _delivered(self, error: KafkaError | None, _: Any) -> None:
        if error is not None:
            self.failures.append(error)
