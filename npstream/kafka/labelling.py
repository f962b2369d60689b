"""Labels written to the events topic by a command: each call one transaction, beside the workers."""

import logging
import time
from collections.abc import Sequence

from confluent_kafka import KafkaException

from npstream.errors import Retryable
from npstream.kafka.config import KafkaConfig
from npstream.kafka.errors import kafka_error, translate
from npstream.kafka.log import KafkaLog
from npstream.kafka.tool_producer import ToolProducer
from npstream.records import Channel, Headers

PURPOSE = "label"
"""The end of its transactional id."""

_PAUSE_S = 0.05


class KafkaLabelling:
    """The `Labelling` of a Kafka cluster. Nothing is connected before it is opened."""

    def __init__(self, config: KafkaConfig, logger: logging.Logger) -> None:
        self._config = config
        self._topic = config.topics.events
        self._logger = logger
        self._producer: ToolProducer | None = None

    def open(self) -> None:
        """Fence an earlier command, and wait until everything that is in the topic by now can be read.

        Labels of an earlier command behind a transaction of somebody else would not be seen, and be written again.
        """
        self._producer = ToolProducer(self._config, PURPOSE, self._logger)
        count = self._producer.open(self._topic)
        log = KafkaLog(self._config, self._logger)
        places = [(Channel.EVENTS, partition) for partition in range(count)]
        deadline = time.monotonic() + self._config.stable_wait_s
        try:
            high = {place: ends.high for place, ends in log.all_ends(places).items()}
            while behind := [place for place, ends in log.all_ends(places).items() if ends.stable < high[place]]:
                if time.monotonic() > deadline:
                    raise Retryable(
                        f"{self._topic}/{behind[0][1]} is held back by an undecided transaction: wait, or run "
                        "`npstream doctor`, which names hanging ones and their remedy"
                    )
                time.sleep(_PAUSE_S)
        finally:
            log.close()

    def publish(self, partition: int, records: Sequence[tuple[bytes | None, bytes | None, Headers, int]]) -> None:
        """Write labels: all of them can be read when this returns."""
        assert self._producer is not None, "open before publish"
        try:
            self._producer.begin()
            for key, value, headers, timestamp_ms in records:
                self._producer.send(self._topic, partition, key, value, headers, timestamp_ms)
            self._producer.commit()
        except (KafkaException, BufferError) as error:
            doing = f"writing labels to {self._topic}/{partition}"
            raise translate(kafka_error(error) or error, doing, self._config) from error

    def close(self) -> None:
        """Let go of the connection. Never raises."""
        if self._producer is not None:
            self._producer.close()
