"""Looking at a cluster and preparing its topics, for `init` and `doctor`."""

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from npstream.errors import Retryable
from npstream.kafka.clients import Sink, new_admin
from npstream.kafka.config import KafkaConfig, common_settings
from npstream.kafka.connect import unreachable
from npstream.kafka.errors import kafka_error, translate
from npstream.kafka.group import assigned_partitions, find_group
from npstream.kafka.topics import Action, Alter, Create, Grow, TopicState, Wishes, done, plan

_T = TypeVar("_T")
_LOOK_AGAIN_S = 0.05
_PREPARE_S = 120.0
"""Time for a change of topics: hundreds of partitions take a busy cluster far longer than the first word with it."""
_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
_MOVING = frozenset({"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "_WAIT_COORD"})
_MOVING_S = 0.2


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One worker in the group, with the input partitions it owns."""

    worker_name: str | None
    client: str
    host: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupState:
    """The group as its coordinator sees it; `state` is Stable, Empty, Dead, PreparingRebalance and so on."""

    state: str
    members: tuple[GroupMember, ...]


class Admin:
    """Questions to and changes of one cluster. A question waits at most `connect_timeout_ms`, a change two minutes."""

    def __init__(self, config: KafkaConfig, logger: logging.Logger | None = None) -> None:
        self._config = config
        self._timeout_s = config.connect_timeout_ms / 1000
        self._sink = Sink(logger or logging.getLogger("npstream.kafka"))
        self._client = new_admin(common_settings(config), self._sink)

    def brokers(self) -> list[str]:
        """The addresses of the cluster's brokers; raises `Retryable` or `Fatal` when none responds."""
        return [f"{broker.host}:{broker.port}" for _, broker in sorted(self._metadata().brokers.items())]

    def _metadata(self, topic: str | None = None) -> ClusterMetadata:
        try:
            return self._client.list_topics(topic, timeout=self._timeout_s)
        except KafkaException as error:
            self._client.poll(0)
            raise unreachable(error, self._config, self._sink) from error

    def describe(self) -> dict[str, TopicState]:
        """Those of the four topics that exist, by name."""
        self.brokers()
        found = {name: self._describe(name) for name in self._config.topics.names()}
        return {name: state for name, state in found.items() if state is not None}

    def _describe(self, topic: str) -> TopicState | None:
        found = self._metadata(topic).topics[topic]
        if found.error is not None:
            if found.error.code() in _MISSING:
                return None
            raise translate(found.error, f"looking at topic {topic!r}", self._config)
        replication = min(len(partition.replicas) for partition in found.partitions.values())
        return TopicState(topic, len(found.partitions), replication, self._configs(ResourceType.TOPIC, topic))

    def broker_config(self) -> dict[str, str]:
        """The settings of one broker, where we may see them."""
        return self._configs(ResourceType.BROKER, str(min(self._metadata().brokers)))

    def _configs(self, kind: ResourceType, name: str) -> dict[str, str]:
        futures = self._client.describe_configs([ConfigResource(kind, name)], request_timeout=self._timeout_s)
        entries = self._settled(futures, f"reading the settings of {name!r}")[0]
        return {entry.name: entry.value for entry in entries.values() if entry.value is not None}

    def group(self) -> GroupState:
        """Who is in the group, and who owns what; waits for a coordinator that is moving or loading."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                found = find_group(self._client, self._config.group, self._timeout_s)
                members = () if found is None else tuple(map(self._member, found.members))
                return GroupState("Dead" if found is None else found.state, members)
            except (KafkaException, ValueError) as error:
                problem = translate(
                    self._sink.login_error or error, f"looking at group {self._config.group!r}", self._config
                )
                if problem.cause not in _MOVING or time.monotonic() > deadline:
                    raise problem from error
            time.sleep(_MOVING_S)

    def _member(self, found: Any) -> GroupMember:
        """Brokers make a member's id of its own name, where it has one, else of its client id, and a UUID."""
        name = found.id[: -len("-00000000-0000-0000-0000-000000000000")]
        worker_name = name if name and name != found.client_id else None
        owned = assigned_partitions(found.assignment or b"", self._config.topics.events)
        return GroupMember(worker_name, found.client_id, found.client_host, tuple(sorted(owned)))

    def plan(self, wishes: Wishes) -> list[Action]:
        """What `prepare` would do, in order; nothing is changed."""
        found = self.describe()
        known = {name for state in found.values() for name in state.config}
        return plan(self._config.topics, found, known, wishes)

    def prepare(self, actions: Sequence[Action]) -> None:
        """Do what was planned and return when it can be seen.

        Stops at the first refusal; doing it again finishes the rest.
        """
        for action in actions:
            self._settled(self._start(action), str(action), _PREPARE_S)
        deadline = time.monotonic() + _PREPARE_S
        missing = list(actions)
        while missing := self._not_visible(missing, deadline):
            if time.monotonic() > deadline:
                raise Retryable(f"accepted, but not visible yet: {missing[0]}: look again with `npstream doctor`")
            time.sleep(_LOOK_AGAIN_S)

    def _not_visible(self, actions: list[Action], deadline: float) -> list[Action]:
        """Those whose result the cluster does not show; all while it is too busy with them to say."""
        try:
            found = {name: self._describe(name) for name in {action.topic for action in actions}}
        except Retryable:
            if time.monotonic() > deadline:
                raise
            return actions
        states = {name: state for name, state in found.items() if state is not None}
        return [action for action in actions if not done(action, states)]

    def _start(self, action: Action) -> Mapping[Any, Future[Any]]:
        match action:
            case Create(topic, partitions, replication, config):
                new = NewTopic(topic, partitions, replication, config=dict(config))
                return self._client.create_topics([new], operation_timeout=_PREPARE_S, request_timeout=_PREPARE_S)
            case Grow(topic, _, partitions):
                more = NewPartitions(topic, partitions)
                return self._client.create_partitions([more], operation_timeout=_PREPARE_S, request_timeout=_PREPARE_S)
            case Alter(topic, name, _, value):
                entry = ConfigEntry(
                    name,
                    value,
                    source=ConfigSource.DYNAMIC_TOPIC_CONFIG,
                    incremental_operation=AlterConfigOpType.SET,
                )
                resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
                return self._client.incremental_alter_configs([resource], request_timeout=_PREPARE_S)

    def _settled(self, futures: Mapping[Any, Future[_T]], doing: str, timeout_s: float | None = None) -> list[_T]:
        """The results; the futures' own time is that of their request, here only should a client forget it."""
        try:
            return [future.result(timeout=2 * (timeout_s or self._timeout_s)) for future in futures.values()]
        except (KafkaException, TimeoutError) as error:
            raise translate(self._sink.login_error or kafka_error(error) or error, doing, self._config) from error
