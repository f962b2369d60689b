"""Where topics and a group live: in a file, on a Kafka broker, or in memory (`tests.simulation.place`).

A `Place` is four topics, or five with labels, and a group of its own. It hands out
brokers and logs and lets go of all of them at the end; its `settings` lead a worker to it.
"""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

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

QUIET = logging.getLogger("tests.stage")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

_QUICK_COMPACTION = {
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "200",
    "delete.retention.ms": "100",
}
"""What makes compaction visible within a test."""

QUICK: Mapping[str, Any] = {
    "session_timeout_ms": 10_000,
    "transaction_timeout_ms": 10_000,
    # Members learn of a rebalance with their next heartbeat, three seconds later by default.
    "options": {"heartbeat.interval.ms": 300},
}
"""Settings of a client that soon notices when another is gone."""


def topics_of(prefix: str) -> Topics:
    """Four topics under a prefix."""
    return Topics(*(prefix + name for name in ("events", "decisions", "dead", "checkpoints")))


class Place(Protocol):
    """Where the contract is tested."""

    topics: Topics
    group: str

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

    def settings(self, worker_name: str = "w") -> dict[str, Any]:
        """The sections of a settings file that say where the group lives."""
        return {"embedded": {"path": str(self.path), "group": self.group}, **_topics_section(self.topics)}

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
    client: Mapping[str, Any] = field(default_factory=lambda: QUICK)

    def create(self, partitions: int = PARTITIONS) -> "KafkaPlace":
        self.create_plain(partitions)
        quick = [Alter(self.topics.checkpoints, name, "", value) for name, value in _QUICK_COMPACTION.items()]
        Admin(self.config(), QUIET).prepare(quick)
        return self

    def create_plain(self, partitions: int, replication: int = 1) -> "KafkaPlace":
        """As `npstream init` makes the topics, with the compaction that operators get."""
        admin = Admin(self.config(), QUIET)
        admin.prepare(admin.plan(Wishes(partitions, replication)))
        return self

    def config(self, worker_name: str = "a", **changes: Any) -> KafkaConfig:
        return KafkaConfig(self.bootstrap, self.group, worker_name, self.topics, **{**self.client, **changes})

    def settings(self, worker_name: str = "w") -> dict[str, Any]:
        """The same."""
        section = {"bootstrap": self.bootstrap, "group": self.group, "worker_name": worker_name, **self.client}
        return {"kafka": section, **_topics_section(self.topics)}

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
        log = KafkaLog(self.config(), QUIET)
        self._stack.callback(log.close)
        return log

    def trim(self, partition: int, before: int, channel: Channel = Channel.EVENTS) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topic = self.topics.names()[channel]
        for deleted in admin.delete_records([TopicPartition(topic, partition, before)]).values():
            deleted.result(timeout=10)

    def with_topics(self, topics: Topics) -> "KafkaPlace":
        return KafkaPlace(self.bootstrap, topics, self.group, self._stack, self.client)

    def arguments(self) -> list[str]:
        """The same."""
        return ["kafka", self.bootstrap, self.group, *self.topics.names()]

    def leave(self) -> None:
        self._stack.close()


def _topics_section(topics: Topics) -> dict[str, Any]:
    named = {name: topic for name, topic in asdict(topics).items() if topic is not None and name != "labels"}
    return {"topics": named} if topics.labels is None else {"topics": named, "labels": {"topic": topics.labels}}


LastingPlace = EmbeddedPlace | KafkaPlace
"""What another process can come to, by its settings or `arguments`."""


def place_from(arguments: list[str]) -> LastingPlace:
    """The place another process described with `arguments()`."""
    kind, where, group, *names = arguments
    topics = Topics(*names)
    return EmbeddedPlace(Path(where), topics, group) if kind == "embedded" else KafkaPlace(where, topics, group)
