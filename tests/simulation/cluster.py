"""A Kafka cluster in memory: topics, groups, transactions, and what time does to them."""

from npstream.errors import Fatal, Retryable
from npstream.records import Headers
from tests.simulation.clock import Clock
from tests.simulation.group import Group
from tests.simulation.partition_log import PartitionLog
from tests.simulation.transactions import Transaction, Transactions

SESSION_TIMEOUT_S = 10.0
TRANSACTION_TIMEOUT_S = 15.0


class Cluster:
    """Every request begins with `turn`, in which the coordinators do what is due."""

    def __init__(self, clock: Clock, compact_every: int = 50) -> None:
        self.clock = clock
        self.transactions = Transactions(TRANSACTION_TIMEOUT_S)
        self._topics: dict[str, list[PartitionLog]] = {}
        self._groups: dict[str, Group] = {}
        self._compact_every = compact_every
        self._dirty: dict[str, int] = {}
        """Records written to each compacted topic since it was compacted."""
        self._down_until: float | None = None

    def create(self, name: str, partitions: int, *, compacted: bool = False) -> None:
        """Make a topic, unless it is there."""
        self._topics.setdefault(name, [PartitionLog() for _ in range(partitions)])
        if compacted:
            self._dirty.setdefault(name, 0)

    def topic(self, name: str) -> list[PartitionLog]:
        """The partitions of a topic. Raises `Fatal` when there is none of this name."""
        if name not in self._topics:
            raise Fatal(f"topic {name!r} does not exist: run `npstream init`, or correct topics")
        return self._topics[name]

    def partition(self, name: str, partition: int) -> PartitionLog:
        """One of them. Raises `Retryable` when there are fewer, as for a client that has not heard of a new one."""
        logs = self.topic(name)
        if partition >= len(logs):
            raise Retryable(f"{name}/{partition} does not exist")
        return logs[partition]

    def group(self, name: str, partitions: int) -> Group:
        """A group, made when it is first asked for."""
        return self._groups.setdefault(name, Group(partitions, SESSION_TIMEOUT_S))

    def write(
        self,
        transaction: Transaction,
        name: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp_ms: int = 1,
    ) -> int:
        """Write a record in a transaction; return its offset."""
        log, writer = self.partition(name, partition), transaction.number
        offset = log.append(key, value, headers, timestamp_ms, writer)
        transaction.participants.setdefault(
            (name, partition), lambda committed: log.decide(writer, committed=committed)
        )
        if name in self._dirty:
            self._dirty[name] += 1
        return offset

    def restart(self, away_s: float) -> None:
        """The brokers go away for a while; what they hold is on their disks."""
        self._down_until = self.clock() + away_s

    @property
    def is_down(self) -> bool:
        """Whether nobody responds now."""
        return self._down_until is not None and self.clock() < self._down_until

    def turn(self) -> None:
        """What is due now: heartbeats, timeouts, rebalances, markers, compaction."""
        if self.is_down:
            return
        now = self.clock()
        if self._down_until is not None:
            self._down_until = None
            for group in self._groups.values():
                group.forgive(now)
        self.transactions.turn(now)
        for group in self._groups.values():
            group.turn(now)
        for name, written in self._dirty.items():
            if written >= self._compact_every:
                self._compact(name)

    def _compact(self, name: str) -> None:
        self._dirty[name] = 0
        for log in self._topics[name]:
            log.compact()
