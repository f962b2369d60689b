"""How topics must look, and what is done to get there."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from npstream.kafka.admin import Admin
from npstream.kafka.config import KafkaConfig
from npstream.kafka.topics import Alter, Create, Grow, TopicState, Wishes, plan
from npstream.records import Topics
from tests.broker import JarKafka, Kafka, create_topics
from tests.stage.places import KafkaPlace

TOPICS = Topics("events", "decisions", "dead", "checkpoints")
FOREVER = str(2**63 - 1)


def test_missing_topics_are_created_with_what_they_need() -> None:
    """Partition counts follow the wish, outputs keep event time forever, checkpoints are compacted."""
    events, decisions, dead, checkpoints = plan(TOPICS, {}, set(), Wishes(partitions=6, replication=3))

    assert all(isinstance(action, Create) for action in (events, decisions, dead, checkpoints))
    assert isinstance(decisions, Create)
    assert isinstance(checkpoints, Create)
    assert (decisions.topic, decisions.partitions, decisions.replication) == ("decisions", 6, 3)
    assert decisions.config == {
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": FOREVER,
        "message.timestamp.after.max.ms": FOREVER,
        "max.message.bytes": "1048588",
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "min.insync.replicas": "2",
    }
    assert checkpoints.config["cleanup.policy"] == "compact"
    assert "retention.ms" not in checkpoints.config


def test_outputs_follow_an_existing_events_topic() -> None:
    """Its partition count counts, not the wish; how large its records may be is of no consequence to the outputs."""
    found = {"events": TopicState("events", 12, 1, {"max.message.bytes": "5000000"})}

    decisions, dead, checkpoints = plan(TOPICS, found, set(), Wishes(partitions=3))

    assert isinstance(dead, Create)
    assert [action.partitions for action in (decisions, dead, checkpoints) if isinstance(action, Create)] == [12] * 3
    assert dead.config["max.message.bytes"] == "1048588"


def test_existing_topics_are_repaired_where_they_must_be_and_left_alone_elsewhere() -> None:
    """Too few partitions and settings that would break the worker are changed; retention is the operator's."""
    good = {
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": FOREVER,
        "message.timestamp.after.max.ms": FOREVER,
        "max.message.bytes": "9000000",
        "retention.ms": "604800000",
    }
    found = {
        "events": TopicState("events", 4, 1, {}),
        "decisions": TopicState("decisions", 2, 1, good | {"message.timestamp.after.max.ms": "3600000"}),
        "dead": TopicState("dead", 8, 1, good),
        "checkpoints": TopicState(
            "checkpoints",
            4,
            1,
            {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime", "max.message.bytes": "500000"},
        ),
    }

    assert plan(TOPICS, found, set(), Wishes()) == [
        Grow("decisions", 2, 4),
        Alter("decisions", "message.timestamp.after.max.ms", "3600000", FOREVER),
        Alter("checkpoints", "max.message.bytes", "500000", "1048588"),
        Alter("checkpoints", "cleanup.policy", "delete", "compact"),
    ]


def test_settings_that_an_old_cluster_does_not_know_are_left_out() -> None:
    """Brokers before 3.6 lack the timestamp limits, and their settings."""
    (_, decisions, _, _) = plan(TOPICS, {}, {"message.timestamp.type", "retention.ms"}, Wishes())

    assert isinstance(decisions, Create)
    assert decisions.config == {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}


@pytest.fixture
def config(kafka: Kafka, topic_prefix: str) -> KafkaConfig:
    """Four topics that do not exist yet."""
    topics = Topics(*(topic_prefix + name for name in TOPICS.names()))
    return KafkaConfig(kafka.bootstrap, topic_prefix + "group", "a", topics)


def test_what_is_planned_is_done_and_then_nothing_is_left_to_do(config: KafkaConfig) -> None:
    """A real cluster takes every action; planning again finds it as it must be."""
    admin = Admin(config)
    create_topics(config.bootstrap, {config.topics.events: 3})
    create_topics(config.bootstrap, {config.topics.decisions: 1, config.topics.checkpoints: 3})

    actions = admin.plan(Wishes())
    kinds = {(type(action).__name__, action.topic.rsplit(".", 1)[1]) for action in actions}
    admin.prepare(actions)

    assert {("Grow", "decisions"), ("Alter", "decisions"), ("Create", "dead"), ("Alter", "checkpoints")} <= kinds
    assert admin.plan(Wishes()) == []
    states = admin.describe()
    assert [states[name].partitions for name in config.topics.names()] == [3, 3, 3, 3]
    assert states[config.topics.checkpoints].config["cleanup.policy"] == "compact"
    assert states[config.topics.dead_letters].config["message.timestamp.after.max.ms"] == FOREVER


def test_creating_topics_has_more_time_than_reaching_brokers(private_kafka: JarKafka) -> None:
    """A cluster that was reached and then takes long over its topics is waited for."""
    admin = Admin(KafkaConfig(private_kafka.bootstrap, "group", "a", TOPICS, connect_timeout_ms=2_000))
    actions = admin.plan(Wishes(partitions=3))
    with ThreadPoolExecutor(1) as pool:
        private_kafka.suspend()
        try:
            preparing = pool.submit(admin.prepare, actions)
            # More than the client allows itself for one request at a time, and for the future of its result.
            with pytest.raises(TimeoutError):
                preparing.result(6.0)
        finally:
            private_kafka.resume()
        preparing.result(120.0)

    assert admin.plan(Wishes(partitions=3)) == []


def test_the_cluster_can_be_looked_at(place: KafkaPlace) -> None:
    """Broker addresses, broker settings and an empty group."""
    admin = Admin(place.config())

    assert admin.brokers() == [place.bootstrap]
    assert int(admin.broker_config()["transaction.max.timeout.ms"]) > 0
    assert admin.group().members == ()
