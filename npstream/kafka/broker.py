"""Exactly-once access to the four topics of a Kafka cluster for one worker."""

import logging
import time
from collections.abc import Callable, Sequence

from npstream.kafka.config import KafkaConfig
from npstream.kafka.connect import partition_counts, require_partitions
from npstream.kafka.member import Member
from npstream.kafka.restore import StateReader
from npstream.kafka.transaction import Publisher
from npstream.port import Heartbeat, Listener
from npstream.records import Batch, KeyValue, Pointer, Position, Share

_ABANDON_S = 2.0
"""How long `abandon` waits for each client to go; what takes longer goes on in the background."""


class KafkaBroker:
    """The `Broker` of a Kafka cluster: a group member, a transactional producer, a state reader.

    Building one opens no connection that anything waits for; `subscribe` does.
    A transaction never spans a `poll`.
    """

    def __init__(
        self,
        config: KafkaConfig,
        heartbeat: Heartbeat = lambda: None,
        logger: logging.Logger | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._config = config
        self._logger = logger or logging.getLogger("npstream.kafka")
        self._member = Member(config, self._logger)
        self._publisher = Publisher(config, self._logger, heartbeat)
        self._reader = StateReader(config, self._logger, heartbeat, stopping)

    def subscribe(self, listener: Listener) -> None:
        """Check the topics, end what this slot's former life left open, join the group."""
        require_partitions(self._config, partition_counts(self._config, self._logger))
        self._publisher.open(self._config.connect_timeout_ms / 1000)
        self._member.subscribe(listener)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Wait for records of owned partitions, at most `timeout_s`; may call the listener."""
        return self._member.poll(max_records, timeout_s)

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        """Publish all shares in one transaction, or nothing."""
        return self._publisher.publish(shares, self._member.group_metadata)

    def committed(self, partition: int) -> Position | None:
        """The stable committed position; waits for undecided transactions."""
        return self._reader.committed(partition)

    def read_checkpoint(self, partition: int, pointer: Pointer) -> list[KeyValue]:
        """The records of one snapshot; waits until they are stable."""
        return self._reader.read_checkpoint(partition, pointer)

    def pause(self, partition: int) -> None:
        """Hand out nothing of an owned partition until it is assigned anew."""
        self._member.pause(partition)

    def close(self, timeout_s: float) -> None:
        """Leave politely: the listener lets go of its partitions, then the clients end."""
        deadline = time.monotonic() + timeout_s
        try:
            self._member.close(timeout_s)
        finally:
            left_s = max(_ABANDON_S, deadline - time.monotonic())
            self._publisher.close(left_s)
            self._reader.close(left_s)

    def abandon(self) -> None:
        """Drop everything at once; no listener call, no commit. Never raises."""
        self._publisher.close(_ABANDON_S)
        self._member.abandon(_ABANDON_S)
        self._reader.close(_ABANDON_S)
