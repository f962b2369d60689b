"""Two of the three places where the contract holds, behind one face; `tests.simulation.place` is the third.

A `Place` is four topics in a broker, with a group of its own. It hands out
brokers and logs and lets go of all of them at the end.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from npstream.embedded import EmbeddedBroker, EmbeddedLog, EmbeddedStateReader, create_topics
from npstream.kafka import KafkaBroker, KafkaConfig, KafkaLog, KafkaStateReader
from npstream.kafka.admin import Admin
from npstream.kafka.topics import Alter, Wishes
from npstream.port import Broker, Log, StateReader
from npstream.records import Channel, Topics
from tests.embedded import retention

PARTITIONS = 3

_QUICK_COMPACTION = {
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "200",
    "delete.retention.ms": "100",
}
"""What makes compaction visible within a test."""


def topics_of(prefix: str) -> Topics:
    """Four topics under a prefix."""
    return Topics(*(prefix + name for name in ("events", "decisions", "dead", "checkpoints")))


class Place(Protocol):
    """Where the contract is tested."""

    topics: Topics

    def broker(self) -> Broker:
        """A worker's broker; one at a time unless the first was closed or abandoned."""

    def dynamic(self) -> Broker:
        """A worker's broker that is gone from the group when it is closed."""

    def tool(self) -> Broker:
        """A broker that leaves no ghost in the group."""

    def log(self) -> Log:
        """A plain reader and writer."""

    def state(self) -> StateReader:
        """The group seen from outside; close it."""

    def create(self, partitions: int = PARTITIONS) -> "Place":
        """Make the topics that are missing."""

    def trim(self, partition: int, before: int, channel: Channel = Channel.EVENTS) -> None:
        """Delete events, or labels, below an offset, as retention would."""

    def with_topics(self, topics: Topics) -> "Place":
        """The same place seen through other topic names."""

    def leave(self) -> None:
        """Let go of everything handed out."""


@dataclass
class EmbeddedPlace:
    """Topics in one SQLite file."""

    path: Path
    topics: Topics
    group: str
    _stack: ExitStack = field(default_factory=ExitStack)

    def create(self, partitions: int = PARTITIONS) -> "EmbeddedPlace":
        create_topics(self.path, self.topics, partitions)
        return self

    def broker(self) -> Broker:
        broker = EmbeddedBroker(self.path, self.topics, self.group)
        self._stack.callback(broker.abandon)
        return broker

    def dynamic(self) -> Broker:
        return self.broker()

    def tool(self) -> Broker:
        return self.broker()

    def state(self) -> StateReader:
        return EmbeddedStateReader(self.path, self.topics, self.group)

    def log(self) -> Log:
        log = EmbeddedLog(self.path, self.topics)
        self._stack.callback(log.close)
        return log

    def trim(self, partition: int, before: int, channel: Channel = Channel.EVENTS) -> None:
        with ExitStack() as stack:
            log = EmbeddedLog(self.path, self.topics)
            stack.callback(log.close)
            retention.trim(log, channel, partition, before)

    def with_topics(self, topics: Topics) -> "EmbeddedPlace":
        return EmbeddedPlace(self.path, topics, self.group, self._stack)

    def arguments(self) -> list[str]:
        """What another process needs to come to the same place; see `place_from`."""
        return ["embedded", str(self.path), self.group, *self.topics.names()]

    def leave(self) -> None:
        self._stack.close()


@dataclass
class KafkaPlace:
    """Topics on a real Kafka broker."""

    bootstrap: str
    topics: Topics
    group: str
    _stack: ExitStack = field(default_factory=ExitStack)

    def create(self, partitions: int = PARTITIONS) -> "KafkaPlace":
        admin = Admin(self.config())
        admin.prepare(admin.plan(Wishes(partitions)))
        admin.prepare([Alter(self.topics.checkpoints, name, "", value) for name, value in _QUICK_COMPACTION.items()])
        return self

    def config(self, worker_name: str = "a", **changes: object) -> KafkaConfig:
        # Members learn of a rebalance with their next heartbeat, three seconds later by default.
        options = {"heartbeat.interval.ms": 300}
        quick = {"session_timeout_ms": 10_000, "transaction_timeout_ms": 10_000, "options": options, **changes}
        return KafkaConfig(self.bootstrap, self.group, worker_name, self.topics, **quick)  # type: ignore[arg-type]

    def broker(self) -> Broker:
        return self.kafka_broker()

    def dynamic(self) -> Broker:
        return self.kafka_broker("a", static_membership=False)

    def tool(self) -> Broker:
        return self.kafka_broker("tool", static_membership=False)

    def state(self) -> StateReader:
        return KafkaStateReader(self.config("looking"))

    def kafka_broker(self, worker_name: str = "a", **changes: object) -> KafkaBroker:
        broker = KafkaBroker(self.config(worker_name, **changes))
        self._stack.callback(broker.abandon)
        return broker

    def log(self) -> KafkaLog:
        log = KafkaLog(self.config())
        self._stack.callback(log.close)
        return log

    def trim(self, partition: int, before: int, channel: Channel = Channel.EVENTS) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topic = self.topics.names()[channel]
        for deleted in admin.delete_records([TopicPartition(topic, partition, before)]).values():
            deleted.result(timeout=10)

    def with_topics(self, topics: Topics) -> "KafkaPlace":
        return KafkaPlace(self.bootstrap, topics, self.group, self._stack)

    def arguments(self) -> list[str]:
        """The same."""
        return ["kafka", self.bootstrap, self.group, *self.topics.names()]

    def leave(self) -> None:
        self._stack.close()


def place_from(arguments: list[str]) -> EmbeddedPlace | KafkaPlace:
    """The place another process described with `arguments()`."""
    kind, where, group, *names = arguments
    topics = Topics(*names)
    return EmbeddedPlace(Path(where), topics, group) if kind == "embedded" else KafkaPlace(where, topics, group)
