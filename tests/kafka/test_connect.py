"""The first words with a cluster: each obstacle has one clear message."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from npstream.errors import Fatal, Retryable
from npstream.kafka import KafkaBroker, KafkaConfig, KafkaLog
from npstream.kafka.admin import Admin
from npstream.kafka.topics import Wishes
from npstream.records import Channel, Topics
from tests.broker import JarKafka, create_topics
from tests.contracts.builders import chunks, decision, events, eventually, joined, read_checkpoint, settled, share

_USERS = {name: f"{name}-secret" for name in ("full", "blind", "groupless", "idless", "mute")}
_READ, _WRITE, _DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
Grant = tuple[ResourceType, str, AclOperation]


@pytest.fixture(scope="module")
def secured(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JarKafka]:
    """A broker with a listener that asks for a password, and rights that must be granted."""
    users = " ".join(f'user_{name}="{password}"' for name, password in _USERS.items())
    login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
    broker = JarKafka(
        kafka_jars,
        tmp_path_factory.mktemp("secured"),
        listeners={"SECURE": "SASL_PLAINTEXT"},
        properties={
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": login,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )
    try:
        broker.start()
        _prepare(broker)
        yield broker
    finally:
        broker.close()


TOPICS = Topics("events", "decisions", "dead", "checkpoints")


def _prepare(broker: JarKafka) -> None:
    """Topics, and what each user may do."""
    admin = Admin(KafkaConfig(broker.bootstrap, "group", "a", TOPICS))
    admin.prepare(admin.plan(Wishes()))
    topic, group, transaction = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
    see: list[Grant] = [(topic, name, _DESCRIBE) for name in TOPICS.names()]
    read: list[Grant] = [(topic, name, _READ) for name in ("events", "checkpoints")]
    write: list[Grant] = [(topic, name, _WRITE) for name in ("decisions", "dead", "checkpoints")]
    member: list[Grant] = [(group, "group", _READ)]
    identity: list[Grant] = [(transaction, "group.", _WRITE), (transaction, "group.", _DESCRIBE)]
    rights = {
        "full": see + read + write + member + identity,
        "blind": member + identity,
        "groupless": see + read + write + identity,
        "idless": see + read + write + member,
        "mute": see + read + member + identity,
    }
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    bindings = [_binding(user, grant) for user, grants in rights.items() for grant in grants]
    for created in client.create_acls(bindings, request_timeout=10).values():
        created.result(timeout=10)


def _binding(user: str, grant: Grant) -> AclBinding:
    kind, name, operation = grant
    pattern = ResourcePatternType.PREFIXED if name.endswith(".") else ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def config(broker: JarKafka, user: str, password: str | None = None) -> KafkaConfig:
    """How that user connects."""
    security = {
        "protocol": "SASL_PLAINTEXT",
        "mechanism": "PLAIN",
        "username": user,
        "password": password or _USERS[user],
    }
    return KafkaConfig(broker.address("SECURE"), "group", "a", TOPICS, connect_timeout_ms=5000, security=security)


def work(config: KafkaConfig) -> None:
    """Everything a worker does, once."""
    broker = KafkaBroker(config)
    try:
        joined(broker)
        broker.commit([share(0, 1, [decision(b"d")], chunks(1))])
        broker.close(5.0)
    finally:
        broker.abandon()


def test_the_documented_rights_are_enough(secured: JarKafka) -> None:
    """A user with exactly these rights can run a worker."""
    log = KafkaLog(KafkaConfig(secured.bootstrap, "group", "a", TOPICS))
    log.append(Channel.EVENTS, 0, events(1))
    log.close()

    work(config(secured, "full"))


def test_a_refused_login_says_so(secured: JarKafka) -> None:
    """A wrong password is not mistaken for a broker that is down."""
    with pytest.raises(Retryable, match=r"connecting: brokers at .* refused the login: check kafka\.security"):
        work(config(secured, "full", "wrong"))
    with pytest.raises(Retryable, match=r"refused the login"):
        KafkaLog(config(secured, "full", "wrong")).partitions(Channel.EVENTS)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("blind", r"rights are missing: grant READ on topic 'events', WRITE on topic 'decisions'.* to user 'blind'"),
        ("groupless", r"a group right is missing: grant READ on group 'group'"),
        ("idless", r"a transaction right is missing: grant WRITE and DESCRIBE on transactional id 'group\.a'"),
        ("mute", r"rights are missing: grant WRITE on topic 'decisions', WRITE on topic 'dead'.* to user 'mute'"),
    ],
)
def test_a_missing_right_is_named(secured: JarKafka, user: str, message: str) -> None:
    """Which right, on what."""
    with pytest.raises(Fatal, match=message):
        work(config(secured, user))


def test_too_few_partitions_stop_a_first_start(secured: JarKafka) -> None:
    """The topic that is too small is named with the remedy."""
    create_topics(secured.bootstrap, {"wide": 4, "narrow": 2})
    topics = Topics("wide", "narrow", "dead", "checkpoints")

    with pytest.raises(Fatal, match=r"topic 'narrow' has 2 partitions, 'wide' has 4: run `npstream init`"):
        KafkaBroker(KafkaConfig(secured.bootstrap, "group", "a", topics))


@pytest.mark.slow
def test_an_unreachable_broker_is_named_with_what_to_check(topic_prefix: str) -> None:
    """Nobody listens: one message, after the connect timeout at the latest."""
    nobody = KafkaConfig("127.0.0.1:1", topic_prefix, "a", TOPICS, connect_timeout_ms=1000)

    for connect in (
        lambda: KafkaBroker(nobody),
        lambda: KafkaLog(nobody).partitions(Channel.EVENTS),
        lambda: Admin(nobody).plan(Wishes()),
    ):
        with pytest.raises(Retryable, match=r"cannot reach brokers at 127\.0\.0\.1:1 within 1 s: check kafka\.boot"):
            connect()


def test_the_wrong_protocol_is_named(secured: JarKafka) -> None:
    """TLS towards a plain listener is distinguished from a broker that is down."""
    wrong = KafkaConfig(secured.bootstrap, "group", "a", TOPICS, connect_timeout_ms=3000, security={"protocol": "SSL"})
    with pytest.raises((Fatal, Retryable), match=r"kafka\.security"):
        KafkaBroker(wrong)


def test_a_broken_logger_costs_no_records(secured: JarKafka) -> None:
    """What is raised while the client logs stays outside the client, which would lose records otherwise."""

    class Broken(logging.Logger):
        calls = 0

        def log(self, *_: object, **__: object) -> None:
            Broken.calls += 1
            raise OSError("disk full")

        warning = log

    plain = KafkaConfig(secured.bootstrap, "logging", "a", TOPICS, options={"debug": "cgrp,fetch"})
    log = KafkaLog(plain)
    first = log.ends(Channel.EVENTS, 0).stable
    log.append(Channel.EVENTS, 0, events(2000))
    broker = KafkaBroker(plain, logger=Broken("broken"))
    owner = joined(broker, starts={0: first})

    got = owner.collect(2000, max_records=10)

    assert [record.offset for record in got[0]] == list(range(first, first + 2000))
    assert Broken.calls > 0
    broker.abandon()
    log.close()


def test_a_full_send_queue_is_waited_for(secured: JarKafka) -> None:
    """A commit larger than the client's queue is published whole."""
    small = KafkaConfig(secured.bootstrap, "queue", "a", TOPICS, options={"queue.buffering.max.messages": 10})
    broker = KafkaBroker(small)
    joined(broker)
    log = KafkaLog(small)
    before = log.ends(Channel.DECISIONS, 0).stable

    broker.commit([share(0, 1, [decision(b"%d" % n) for n in range(1000)], chunks(1))])

    read_checkpoint(broker.state, 0, broker.state.committed(0).pointer)  # type: ignore[union-attr]
    eventually(lambda: settled(log, [(Channel.DECISIONS, 0)]))
    written = [record.value for record in log.read(Channel.DECISIONS, 0, before, 2**40)]
    assert written == [b"%d" % n for n in range(1000)]
    broker.abandon()
    log.close()
