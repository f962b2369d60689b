"""The first words with a cluster: is it there, may we talk, are the topics as they must be."""

import logging

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from npstream.errors import Fatal, Retryable
from npstream.kafka.clients import Sink, new_admin
from npstream.kafka.config import KafkaConfig, common_settings
from npstream.kafka.errors import translate

_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})


def partition_counts(config: KafkaConfig, logger: logging.Logger) -> tuple[int, int, int, int]:
    """Partition counts of the four topics, in the order of `Channel`.

    Raises `Retryable` when no broker answers within `connect_timeout_ms`, `Fatal`
    when the login or a topic is refused or a topic does not exist.
    """
    sink = Sink(logger)
    admin = new_admin(common_settings(config), sink)
    events, decisions, dead_letters, checkpoints = (
        partition_count(admin, name, config, sink) for name in config.topics.names()
    )
    return events, decisions, dead_letters, checkpoints


def partition_count(admin: AdminClient, topic: str, config: KafkaConfig, sink: Sink) -> int:
    """Partition count of one topic; the same errors."""
    try:
        found = admin.list_topics(topic, timeout=config.connect_timeout_ms / 1000).topics[topic]
    except KafkaException as error:
        raise _unreachable(error, config, sink) from error
    if found.error is None:
        return len(found.partitions)
    if found.error.code() in _MISSING:
        raise Fatal(f"topic {topic!r} does not exist: run `npstream init`, or correct topics")
    raise translate(found.error, f"looking at topic {topic!r}", config)


def _unreachable(error: KafkaException, config: KafkaConfig, sink: Sink) -> Exception:
    if sink.login_error is not None:
        return translate(sink.login_error, "connecting", config)
    return Retryable(
        f"cannot reach brokers at {config.bootstrap} within {config.connect_timeout_ms / 1000:g} s: check "
        f"kafka.bootstrap, that the brokers run, and kafka.security.protocol ({error.args[0].str()})"
    )


def require_partitions(config: KafkaConfig, counts: tuple[int, int, int, int]) -> None:
    """Raise `Fatal` when an output topic has fewer partitions than the input."""
    for name, count in zip(config.topics.names(), counts, strict=True):
        if count < counts[0]:
            raise Fatal(
                f"topic {name!r} has {count} partitions, {config.topics.events!r} has {counts[0]}: run `npstream init`"
            )
