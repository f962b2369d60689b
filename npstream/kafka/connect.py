"""Connecting to a cluster: is it reachable, do the topics exist, do they have enough partitions."""

from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from npstream.errors import Fatal, NpstreamError, Retryable
from npstream.kafka.clients import Sink
from npstream.kafka.config import KafkaConfig
from npstream.kafka.errors import translate
from npstream.kafka.group import described

_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})


class Client(Protocol):
    """Any of the library's clients: each can ask for metadata, and remembers it."""

    def list_topics(self, topic: str, timeout: float) -> Any:
        """The metadata of one topic."""

    def poll(self, timeout: float) -> Any:
        """Let the client say what went wrong in the meantime."""


def partition_counts(client: Client, config: KafkaConfig, sink: Sink) -> list[int]:
    """Partition counts of the topics, in the order of `Channel`; the errors of `partition_count`."""
    return [partition_count(client, name, config, sink) for name in config.topics.names()]


def partition_count(client: Client, topic: str, config: KafkaConfig, sink: Sink) -> int:
    """Partition count of one topic.

    Raises `Retryable` when no broker responds within `connect_timeout_ms` or the
    login is refused, `Fatal` when the topic is forbidden or does not exist.
    """
    try:
        found = client.list_topics(topic, timeout=config.connect_timeout_ms / 1000).topics[topic]
    except KafkaException as error:
        client.poll(0)
        raise unreachable(error, config, sink) from error
    if found.error is None:
        return len(found.partitions)
    if found.error.code() in _MISSING:
        raise Fatal(f"topic {topic!r} does not exist: run `npstream init`, or correct topics")
    raise translate(found.error, f"looking at topic {topic!r}", config)


def topic_id(admin: AdminClient, topic: str, config: KafkaConfig, sink: Sink) -> str:
    """The id of one of the topics, empty where brokers have none; raises as `partition_count` does."""
    try:
        return described(admin, config.topics, config.connect_timeout_ms / 1000)[topic][0]
    except (KafkaException, TimeoutError) as error:
        raise translate(sink.login_error or error, "asking for the topics' ids", config) from error


def unreachable(error: KafkaException, config: KafkaConfig, sink: Sink) -> NpstreamError:
    """The error for a cluster that gave no metadata: a refused login when there was one."""
    if sink.login_error is not None:
        return translate(sink.login_error, "connecting", config)
    return Retryable(
        f"cannot reach brokers at {config.bootstrap} within {config.connect_timeout_ms / 1000:g} s: check "
        f"kafka.bootstrap, that the brokers run, and kafka.security.protocol ({error.args[0].str()})"
    )
