"""Wrong settings: every problem at once, each with path, value and what is allowed."""

from typing import Any

import pytest

from npstream.settings import from_mapping
from tests.settings.builders import mapping, problems


def test_all_problems_are_reported_at_once() -> None:
    """Independent mistakes in seven sections, unknown names included, are all in the one error."""
    raw = {
        "kafka": {"bootstrap": "", "grup": "g", "worker_name": "s", "session_timeout_ms": 5, "options": {"acks": 1}},
        "topics": {"events": "no/slash"},
        "events": {"format": "csv", "on_bad_event": 3},
        "model": {"tau": 2, "d": "many", "wat": 3},
        "labels": 3,
        "start": "yesterday",
        "worker": {"batch_max": 0, "poll_ms": "soon"},
        "logs": {},
    }

    assert problems(raw) == [
        "kafka.bootstrap: '' must not be empty",
        "kafka.group: missing; consumer group. Workers with one group share the partitions; another group learns "
        "from its own start.",
        "kafka.session_timeout_ms: 5 must be at least 6000",
        "kafka.options.acks: cannot be changed: exactly-once rests on it: transactions need all replicas",
        "kafka.grup: unknown setting; did you mean group?",
        "topics.events: 'no/slash' must have 1 to 249 of the characters a-z A-Z 0-9 . _ -",
        "events.format: 'csv' must be 'json', 'f32', 'avro', 'protobuf' or 'json_schema'",
        "events.on_bad_event: '3' must be 'none', '-1' or '1'",
        "model.wat: unknown setting; known are preset, d, D, tau, tiers, control, buckets, seed, eta, beta, g, kernel, "
        "input, lam, gamma_update, window, one_class, budget, charge, learning",
        "model.d: 'many' is not a whole number from 0 to 10000",
        "model.tau: 2 is not a number between 0 and 1, both excluded",
        "labels: 3 must be a mapping of settings",
        "start: 'yesterday' must be earliest, latest or a timestamp such as 2026-05-01T00:00:00Z",
        "worker.batch_max: 0 must be at least 1",
        "worker.poll_ms: 'soon' must be a whole number",
        "logs: unknown setting; did you mean log?",
    ]


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"kafka": None}, "kafka or embedded: missing"),
        ({"embedded": {"path": "a.db"}}, "kafka and embedded: both are given"),
        ({"labels": {"topic": "a"}, "topics": {"events": "a"}}, "labels.topic: 'a' is one of the four topics"),
        ({"labels": {"id": "payment.id"}}, "labels.id: is for records of labels.topic, which is not given"),
        ({"topics": {"events": "a", "decisions": "a"}}, "topics: 'a' is used for more than one topic"),
        ({"topics": {"events": "a", "checkpoints": "a-decisions"}}, "topics: 'a-decisions' is used for more than one"),
        ({"events": {"features": ["a", "b", "a"]}}, "events.features: 'a' is named twice"),
        ({"events": {"features": ["a", "b"]}}, "model.d: 3 given, 2 columns in events.features"),
        ({"events": {"features": []}, "model": {"d": 3}}, "events.features: a list must not be empty"),
        ({"events": {"format": "f32", "max_bytes": 11}}, "events.max_bytes: 11 is too small for 3 float32"),
        ({"model": {"preset": "external"}}, "model.d: 3 must be 0 with preset external"),
        ({"model": {"tua": 0.1}}, "model.tua: unknown setting; did you mean tau?"),
        ({"model": [1]}, "model: must be a mapping of parameters"),
        ({"labels": {"buffer_max": 0}}, "labels.buffer_max: 0 must be at least 1"),
        ({"labels": {"expire_seconds": "long"}}, "labels.expire_seconds: 'long' must be a number"),
        ({"checkpoint": {"keep": 1}}, "checkpoint.keep: 1 must be at least 2"),
        ({"start": "2026-05-01"}, "start: '2026-05-01' must name its time zone, for instance 2026-05-01T00:00:00Z"),
        ({"start": "{now}"}, "start: '{now}' must be earliest, latest or a timestamp"),
        ({"start": 2026}, "start: 2026 must be text; put it in quotes"),
        ({"http": {"port": 65536}}, "http.port: 65536 must be at most 65535"),
        ({"log": {"level": "loud"}}, "log.level: 'loud' must be 'debug', 'info', 'warning' or 'error'"),
        ({"kafka": {"static_membership": "perhaps"}}, "kafka.static_membership: 'perhaps' must be true or false"),
        ({"events": {"format": "avro"}}, "events.registry: missing; format avro needs the url"),
        ({"decisions": {"format": "avro"}}, "events.registry: missing; decisions.format avro needs the url"),
        ({"events": {"registry": {"url": "host:8081"}}}, "events.registry.url: must begin with http://"),
        (
            {"events": {"registry": {"url": "http://h", "username": "u"}}},
            "events.registry: username and password: one without",
        ),
        ({"events": {"registry": {"url": "http://h", "ca_file": "c"}}}, "events.registry.ca_file: needs a url that"),
        ({"kafka": {"security": {"protocol": "SASL_SSL"}}}, "kafka.security.mechanism: missing; protocol SASL_SSL"),
        ({"kafka": {"security": {"username": "u"}}}, "kafka.security.username: needs protocol SASL_SSL"),
        ({"kafka": {"security": {"token_url": "u"}}}, "kafka.security.token_url: needs protocol SASL_SSL"),
        (
            {"kafka": {"security": {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u"}}},
            "kafka.security.password: missing; mechanism PLAIN needs it",
        ),
        (
            {"kafka": {"security": {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "client_id": "c"}}},
            "kafka.security.token_url: missing; mechanism OAUTHBEARER needs it",
        ),
        (
            {"kafka": {"security": {"protocol": "SASL_SSL", "mechanism": "AWS_MSK_IAM", "username": "u"}}},
            "kafka.security.username: has no effect with mechanism AWS_MSK_IAM",
        ),
        (
            {"kafka": {"security": {"protocol": "SASL_PLAINTEXT", "mechanism": "AWS_MSK_IAM", "aws_region": "r"}}},
            "kafka.security.protocol: mechanism AWS_MSK_IAM needs SASL_SSL",
        ),
        ({"kafka": {"security": {"ca_file": "ca"}}}, "kafka.security.ca_file: needs protocol SSL or SASL_SSL"),
        ({"kafka": {"security": {"protocol": "SSL", "cert_file": "c"}}}, "one without the other"),
        ({"kafka": {"transaction_timeout_ms": 400_000}}, "kafka.transaction_timeout_ms: 400000 is longer than"),
        ({"kafka": {"session_timeout_ms": 400_000}}, "kafka.session_timeout_ms: 400000 is longer than"),
        (
            {"kafka": {"transaction_timeout_ms": 1000}, "worker": {"poll_ms": 1000}},
            "worker.poll_ms: 1000 must be below",
        ),
    ],
)
def test_each_mistake_is_named_by_its_path(sections: dict[str, Any], expected: str) -> None:
    """One mistake in otherwise good settings leads to problems that begin with its path."""
    found = problems(mapping(**sections))

    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize(
    "option",
    ["isolation.level", "enable.auto.commit", "transactional.id", "group.instance.id", "auto.offset.reset", "error_cb"],
)
def test_options_that_correctness_rests_on_are_refused(option: str) -> None:
    """Exactly-once cannot be switched off by passing an option through."""
    (problem,) = problems(mapping(kafka={"options": {option: "x", "linger.ms": 1}}))

    assert problem.startswith(f"kafka.options.{option}: cannot be changed: ")


def test_secrets_stay_out_of_messages() -> None:
    """Neither a wrong secret nor a section that holds one is repeated in a problem."""
    raw = mapping(
        kafka={
            "security": {
                "protocol": "SASL_SSL",
                "mechanism": "PLAIN",
                "password": 31415926,
                "key_password": [31415926],
                "client_secret": 31415926,
            },
            "options": {"sasl.oauthbearer.client.secret": {"nested": 31415926}},
            "securty": {"password": 31415926},
        },
        events={"registry": {"url": "http://ada:31415926@registry", "username": "ada", "password": 31415926}},
    )

    found = problems(raw)

    assert len(found) >= 6
    assert "31415926" not in "".join(found)


def test_a_login_in_the_address_of_a_broker_is_refused_and_not_repeated() -> None:
    """Brokers' addresses are printed in messages and logs: a password has a place of its own."""
    (problem,) = problems(mapping(kafka={"bootstrap": "safe:9092,ada:hunter2@broker:9092"}))

    assert problem.startswith("kafka.bootstrap: ")
    assert "kafka.security.username" in problem
    assert "kafka.security.password" in problem
    assert "ada" not in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize(("name", "value"), [("budget", 5), ("budget", 20.0), ("charge", "issue")])
def test_what_has_no_effect_with_a_preset_is_refused(name: str, value: object) -> None:
    """Preset paper has no false-alarm budget; nobody may believe that it has one."""
    (problem,) = problems(mapping(model={"preset": "paper", name: value}))

    assert problem.startswith(f"model.{name}: has no effect with preset paper")
    assert from_mapping(mapping(model={"preset": "paper", name: None})).model.preset == "paper"


def test_features_count_themselves() -> None:
    """Named features set the model's width; with preset external neither is needed."""
    named = from_mapping(mapping(events={"features": ["a", "b"]}) | {"model": {"tau": 0.1}})
    external = from_mapping(mapping() | {"model": {"preset": "external"}})

    assert (named.model.d, named.partition_config().events.features) == (2, ("a", "b"))
    assert (external.model.d, external.partition_config().events.external) == (0, True)
