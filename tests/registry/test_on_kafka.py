"""The payments topic on a real broker: every format gives the same decisions; decisions in Avro; what doctor says."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from npstream.client import read_decision
from npstream.records import Channel
from tests.broker import Kafka
from tests.registry import Registry, StartRegistry
from tests.registry.equality import TOPICS, compare
from tests.registry.payments import EVENTS, avro_payments, messages, payments, plain
from tests.stage.stage import Stage, on_kafka

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("name", TOPICS)
def test_every_format_gives_the_same_decisions(
    name: str, kafka: Kafka, registry: Registry, topic_prefix: str, tmp_path: Path
) -> None:
    """JSON with spaces, JSON Schema, Avro and Protobuf, three versions of each in turn: equal to the byte.

    Payments as they are, and as rows in Debezium's envelope.
    """
    topic = TOPICS[name]

    found = compare(kafka.bootstrap, registry.url, f"{topic_prefix}{name}.", tmp_path, 3_000, topic)

    assert found.equal == dict.fromkeys(topic.writers, True)
    assert found.decisions == 3_000
    assert found.targets > 0


@pytest.fixture
def stage(kafka: Kafka, registry: Registry, topic_prefix: str, tmp_path: Path) -> Stage:
    """A group that reads Avro and writes Avro, before `init` has registered anything."""
    made = on_kafka(kafka.bootstrap, topic_prefix, tmp_path, partitions=1)
    made.configure(events=_events(registry.url), decisions={"format": "avro"}, model={"tau": 0.2})
    return made


def _events(url: str) -> dict[str, Any]:
    return {**EVENTS, "format": "avro", "registry": {"url": url}}


def test_decisions_in_avro(stage: Stage, registry: Registry, topic_prefix: str) -> None:
    """`init` registers their schema once; any reader of the registry, our client and the audit understand them."""
    topic = stage.settings.topic_names().decisions
    planned, made, again = (stage.tool("init", *more) for more in (["--dry-run"], [], ["--dry-run"]))
    stage.send(messages(payments(200), avro_payments(registry.url, f"{topic_prefix}events")))

    stage.run(crashes=[7, 15])

    assert f"would register the schema of decisions in {registry.url} under {topic}-value" in planned.output
    assert (made.exit_code, "nothing to do" in again.output) == (0, True)
    with closing(stage.log()) as log:
        values = [record.value for record in log.read(Channel.DECISIONS, 0, 0, log.ends(Channel.DECISIONS, 0).stable)]
    deserialize = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    context = SerializationContext(topic, MessageField.VALUE)
    theirs: list[Any] = [deserialize(value, context) for value in values]
    ours = [read_decision(value) for value in values]
    assert [(each["id"], each["decision"], each["score"], each["reason"]) for each in theirs] == [
        (each.id, each.decision, each.score, each.reason) for each in ours
    ]
    assert len(ours) == 200
    audit = stage.tool("audit", "--json")
    assert audit.exit_code == 0, audit.output
    verdict = json.loads(audit.stdout)
    assert (verdict["holds"], verdict["decisions"], verdict["reproduced"]) == (True, 200, 200)


def test_a_worker_without_its_schema_says_what_to_run(stage: Stage) -> None:
    """Nothing is published under an id that nobody has."""
    done = stage.tool("run", "--set", "http=off")

    assert done.exit_code == 4
    assert "has no schema of decisions under" in done.stderr
    assert "run `npstream init`" in done.stderr


def test_the_doctor_looks_at_registry_and_events(
    stage: Stage, start_registry: StartRegistry, topic_prefix: str
) -> None:
    """Nothing to say of a healthy topic; an unknown schema, and a registry that is away, are named."""
    server = start_registry()
    stage.configure(events=_events(server.url), decisions={"format": "json"})
    stage.send(messages(payments(30), avro_payments(server.url, f"{topic_prefix}events")))
    healthy = json.loads(stage.tool("doctor", "--json").stdout)["findings"]
    with closing(stage.log()) as log:
        log.append(Channel.EVENTS, 0, [(b"k", b"\0\0\0\0\x63a", [], 0)])

    unknown = json.loads(stage.tool("doctor", "--json").stdout)["findings"]
    server.stop()
    away = json.loads(stage.tool("doctor", "--json").stdout)["findings"]

    assert not [each for each in healthy if "schema" in each["problem"]]
    assert any("offset 30 is written with schema 99, which the registry" in each["problem"] for each in unknown)
    assert any(each["subject"] == "schema registry" and "cannot be reached" in each["problem"] for each in away)


def test_an_export_gives_the_backtest_of_the_topic(stage: Stage, registry: Registry, topic_prefix: str) -> None:
    """Exported values are read with their schemas again; lines of JSON are events of the same topic."""
    some = payments(150)
    stage.configure(decisions={"format": "json"})
    stage.send(messages(some, avro_payments(registry.url, f"{topic_prefix}events")))
    exported, lines = stage.file.with_name("exported.jsonl"), stage.file.with_name("lines.jsonl")
    lines.write_text("".join(json.dumps(plain(payment)) + "\n" for payment in some))
    assert stage.tool("export", str(exported)).exit_code == 0

    found = [stage.tool("backtest", *file, "--json") for file in ([], [str(exported)], [str(lines)])]

    assert [each.exit_code for each in found] == [0, 0, 0], [each.stderr for each in found]
    topic, export, plain_lines = (json.loads(each.stdout)[0] for each in found)
    assert (topic["events"], topic["digest"]) == (150, export["digest"])
    rates = ("events", "negatives", "positives", "false_positives", "true_positives", "tally", "quarters")
    assert [topic[name] for name in rates] == [plain_lines[name] for name in rates]
