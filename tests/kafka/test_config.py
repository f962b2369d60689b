"""Client settings: what may be passed through, what may not, and what always wins."""

import logging

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from npstream.errors import Fatal
from npstream.kafka import KafkaBroker, KafkaConfig
from npstream.kafka.clients import client_problems
from npstream.kafka.config import (
    REFUSED,
    SECURITY,
    member_settings,
    option_problems,
    producer_settings,
    reader_settings,
)
from npstream.records import Topics

TOPICS = Topics("events", "decisions", "dead", "checkpoints")


def config(**changes: object) -> KafkaConfig:
    return KafkaConfig("localhost:9", "group", "worker", TOPICS, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", REFUSED)
def test_an_option_that_correctness_rests_on_is_refused_with_the_reason(option: str) -> None:
    """The message names the option and says why."""
    assert option_problems(["linger.ms", option]) == [f"{option}: cannot be changed: {REFUSED[option]}"]


@pytest.mark.parametrize("option", [name for name in REFUSED if name != "default.topic.config"])
def test_a_refused_option_is_one_the_library_knows(option: str) -> None:
    """A misspelt name in the list would refuse nothing."""
    said = ""
    try:
        Producer({option: "x"}, logger=logging.getLogger("test"))
    except (KafkaException, ValueError, TypeError) as refusal:
        said = str(refusal)

    assert "No such configuration property" not in said


def test_every_problem_is_reported_at_once() -> None:
    """Refused options and callbacks are in one list, in their order."""
    assert [problem.split(":")[0] for problem in option_problems(["stats_cb", "linger.ms", "acks"])] == [
        "stats_cb",
        "acks",
    ]


def test_the_defaults_have_no_problem() -> None:
    """The library takes them as they are."""
    assert client_problems(config()) == []


def test_what_the_library_refuses_is_a_problem_before_any_connection() -> None:
    """An unknown option, a wrong value and a missing key file are each said in the library's words."""
    (unknown,) = client_problems(config(options={"fetch.wait.max": 5}))
    assert 'No such configuration property: "fetch.wait.max"' in unknown
    (wrong,) = client_problems(config(options={"socket.timeout.ms": "soon"}))
    assert "socket.timeout.ms" in wrong
    (missing,) = client_problems(config(security={"protocol": "SSL", "ca_file": "/nowhere/ca.pem"}))
    assert "ca.pem" in missing or "ssl.ca.location" in missing
    with pytest.raises(Fatal, match="No such configuration property"):
        KafkaBroker(config(options={"fetch.wait.max": 5}))


def test_the_users_options_reach_every_client_and_ours_win() -> None:
    """A tuning option replaces our default; what exactly-once rests on stays whatever is passed."""
    tuned = config(options={"linger.ms": 50, "isolation.level": "read_uncommitted", "transactional.id": "x"})

    assert producer_settings(tuned)["linger.ms"] == 50
    assert producer_settings(tuned)["transactional.id"] == "group.worker"
    assert member_settings(tuned)["isolation.level"] == "read_committed"
    assert reader_settings(tuned)["isolation.level"] == "read_committed"


def test_what_exactly_once_rests_on_is_spelled_out() -> None:
    """The values themselves, so that a change is seen in review."""
    member, producer = member_settings(config()), producer_settings(config())

    assert {
        name: member[name]
        for name in (
            "group.id",
            "group.instance.id",
            "group.protocol",
            "partition.assignment.strategy",
            "isolation.level",
            "enable.auto.commit",
            "enable.auto.offset.store",
            "auto.offset.reset",
            "session.timeout.ms",
            "max.poll.interval.ms",
            "allow.auto.create.topics",
        )
    } == {
        "group.id": "group",
        "group.instance.id": "worker",
        "group.protocol": "classic",
        "partition.assignment.strategy": "cooperative-sticky",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "session.timeout.ms": 45_000,
        "max.poll.interval.ms": 300_000,
        "allow.auto.create.topics": False,
    }
    assert "group.instance.id" not in member_settings(config(static_membership=False))
    assert "group.instance.id" not in reader_settings(config())
    assert {
        name: producer[name]
        for name in ("transactional.id", "transaction.timeout.ms", "message.timeout.ms", "enable.idempotence", "acks")
    } == {
        "transactional.id": "group.worker",
        "transaction.timeout.ms": 15_000,
        "message.timeout.ms": 15_000,
        "enable.idempotence": True,
        "acks": "all",
    }
    assert producer["retry.backoff.ms"] == 10


def test_security_settings_reach_the_library_under_its_names() -> None:
    """Each of our names is one the library takes."""
    security = dict.fromkeys(SECURITY, "x") | {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512"}
    settings = reader_settings(config(security=security))

    assert {SECURITY[name]: value for name, value in security.items()}.items() <= settings.items()
    with pytest.raises(KafkaException) as refusal:
        Consumer({**settings, "bootstrap.servers": ""})
    assert "No such configuration property" not in str(refusal.value)


def test_secrets_do_not_show_when_a_config_is_printed() -> None:
    """A log line with the configuration gives nothing away."""
    assert "hunter2" not in repr(config(security={"password": "hunter2"}, options={"sasl.password": "hunter2"}))
