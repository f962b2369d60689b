"""Exactly-once access to the topics of a Kafka cluster for one worker."""

import logging
import time
from collections.abc import Callable, Sequence

from npstream.errors import Fatal
from npstream.kafka.config import KafkaConfig
from npstream.kafka.labels import LabelReader
from npstream.kafka.login import LoginWatch
from npstream.kafka.member import Member
from npstream.kafka.orphans import OrphanWatch
from npstream.kafka.rights import require_rights
from npstream.kafka.state import KafkaStateReader
from npstream.kafka.transaction import Publisher
from npstream.port import FinishCommit, Heartbeat, Listener
from npstream.records import Batch, Channel, LabelsWanted, Pointer, Record, Share

_ABANDON_S = 2.0
"""How long `abandon` waits for each client to go; what takes longer goes on in the background."""


class KafkaBroker:
    """The `Broker` of a Kafka cluster: a group member and a transactional producer.

    A transaction never spans a `poll`.
    """

    def __init__(
        self,
        config: KafkaConfig,
        heartbeat: Heartbeat = lambda: None,
        logger: logging.Logger | None = None,
        stopping: Callable[[], bool] = lambda: False,
        orphans: OrphanWatch | None = None,
    ) -> None:
        """Look at the rights and the topics. Waits at most `connect_timeout_ms` for a broker.

        Raises `Retryable` when none responds or the login is refused, `Fatal` when
        settings, rights or topics do not allow it.
        """
        self._config = config
        self._login = LoginWatch(config)
        self._logger = logger or logging.getLogger("npstream.kafka")
        require_rights(config, self._logger)
        heartbeat()
        self.state = KafkaStateReader(config, self._logger, heartbeat, stopping)
        try:
            self._check_topics()
            self._member = Member(config, self._logger, self._served, orphans or OrphanWatch())
            self._publisher = Publisher(config, self._logger, heartbeat)
            labels = config.topics.labels
            self._labels = None if labels is None else LabelReader(config, labels, self._logger)
        except BaseException:
            self.state.close()
            raise

    def _check_topics(self) -> None:
        """Too few partitions of an output topic stop a first start; later, only new ones wait."""
        counts = self.state.partition_counts()
        topics = self._config.topics
        if problem := topics.misplaced_labels(counts):
            raise Fatal(problem)
        narrow = topics.too_narrow(counts)
        if narrow and not self.state.has_history(counts[Channel.EVENTS]):
            name, problem = narrow[0]
            raise Fatal(f"topic {name!r} {problem}: run `npstream init`, which adds the missing ones")

    def _served(self) -> int:
        """How many input partitions all output topics have room for, after both clients have looked again.

        What they know may be minutes old, and older than a partition that is assigned now.
        """
        return min(*self.state.partition_counts(), *self._publisher.partition_counts())

    @property
    def produce_s(self) -> float:
        """Seconds spent so far on handing records to the client; the rest of each commit is waiting."""
        return self._publisher.produce_s

    def subscribe(self, listener: Listener) -> None:
        """End the transaction that an earlier process of this worker left open, then join the group."""
        self._publisher.open(self._config.connect_timeout_ms / 1000)
        self._member.subscribe(listener)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Wait for records of owned partitions, at most `timeout_s`; may call the listener."""
        self._login.look(self._member.login_error or self._publisher.login_error or self.state.login_error)
        return self._member.poll(max_records, timeout_s)

    def read_labels(self, wanted: Sequence[LabelsWanted]) -> dict[int, Sequence[Record]]:
        """Labels that come before a batch of each partition; may call the listener."""
        if self._labels is None or not wanted:
            return {}
        left = {each.partition: self._member.events_left(each.partition) for each in wanted}
        found, gone = self._labels.read(wanted, left, self._member.owned)
        for partition, problem in gone.items():
            self._member.fail(partition, problem)
        return found

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        """Publish all shares in one transaction, or nothing."""
        return self.start_commit(shares)()

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        """Begin such a transaction; what it returns waits for its end."""
        return self._publisher.start(shares, self._member.group_metadata)

    def close(self, timeout_s: float) -> None:
        """Leave politely: the listener lets go of its partitions, then the clients end."""
        deadline = time.monotonic() + timeout_s
        try:
            self._member.close(timeout_s)
        finally:
            left_s = max(_ABANDON_S, deadline - time.monotonic())
            self._publisher.close(left_s)
            self._close_readers()

    def abandon(self) -> None:
        """Drop everything at once; no listener call, no commit. Never raises."""
        self._publisher.close(_ABANDON_S)
        self._member.abandon(_ABANDON_S)
        self._close_readers()

    def _close_readers(self) -> None:
        if self._labels is not None:
            self._labels.close(_ABANDON_S)
        self.state.close()
