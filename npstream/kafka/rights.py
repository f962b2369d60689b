"""What a worker must be allowed to do with its topics, and which of it is missing.

Asked before anything is read: a right that is needed for the first dead letter
only would otherwise be missed weeks later. Rights on the group and on the
transactional id cannot be asked for; the brokers refuse those at the start anyway.
"""

import logging
from collections.abc import Collection, Mapping

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from npstream.errors import Fatal
from npstream.kafka.clients import Sink, new_admin
from npstream.kafka.config import KafkaConfig, common_settings
from npstream.kafka.connect import unreachable
from npstream.kafka.errors import kafka_error, translate
from npstream.records import Channel

NEEDED: Mapping[Channel, tuple[str, ...]] = {
    Channel.EVENTS: ("READ",),
    Channel.DECISIONS: ("WRITE",),
    Channel.DEAD_LETTERS: ("WRITE",),
    Channel.CHECKPOINTS: ("READ", "WRITE"),
    Channel.LABELS: ("READ",),
}
"""The least that a worker can work with. Each of them brings DESCRIBE along."""

_MISSING_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
CAUSE = "TOPIC_AUTHORIZATION_FAILED"


def require_rights(config: KafkaConfig, logger: logging.Logger) -> None:
    """Raise `Fatal` naming every missing right on the four topics.

    Waits at most twice `connect_timeout_ms`; raises as `connect.partition_count`
    does when the brokers cannot be asked. A topic that is not there is not judged here.
    """
    sink = Sink(logger)
    client = new_admin(common_settings(config), sink)
    granted = _granted(client, config, sink)
    lacks = [
        f"{' and '.join(lacking)} on topic {name!r}"
        for channel, name in zip(config.topics.channels(), config.topics.names(), strict=True)
        if name in granted and (lacking := [right for right in NEEDED[channel] if right not in granted[name]])
    ]
    if lacks:
        error = Fatal(f"rights are missing: grant {', '.join(lacks)} to {_user(config)} (each includes DESCRIBE)")
        error.cause = CAUSE
        raise error


def _granted(client: AdminClient, config: KafkaConfig, sink: Sink) -> dict[str, Collection[str]]:
    """What may be done with each topic; without those that do not exist or whose rights the brokers do not report."""
    timeout_s = config.connect_timeout_ms / 1000
    try:
        # Connect first: a request of a client without a broker waits for a timer.
        client.list_topics(config.topics.events, timeout=timeout_s)
    except KafkaException as error:
        client.poll(0)
        raise unreachable(error, config, sink) from error
    names = TopicCollection(list(config.topics.names()))
    try:
        results = client.describe_topics(names, include_authorized_operations=True, request_timeout=timeout_s)
    except KafkaException as error:
        raise translate(error, "asking for the rights on the topics", config) from error
    granted: dict[str, Collection[str]] = {}
    for name, result in results.items():
        try:
            operations = result.result(timeout=2 * timeout_s).authorized_operations
        except KafkaException as error:
            found = kafka_error(error)
            code = None if found is None else found.code()
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                granted[name] = ()
            elif code not in _MISSING_TOPIC:
                raise translate(
                    sink.login_error or error, f"asking for the rights on topic {name!r}", config
                ) from error
        else:
            if operations:
                granted[name] = {operation.name for operation in operations}
    return granted


def _user(config: KafkaConfig) -> str:
    name = config.security.get("username")
    return "this client's user" if name is None else f"user {name!r}"
