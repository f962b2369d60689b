"""The everyday tools on a real broker: what holds on the embedded log holds there too."""

import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from npstream import client
from npstream.backend import backend_of
from npstream.doctor.cluster_checks import check_stuck
from npstream.errors import Fatal
from npstream.history import find_decision
from npstream.kafka import KafkaLog
from npstream.kafka.admin import Admin
from npstream.kafka.topics import Alter
from npstream.records import Channel
from npstream.testing import FIRST_MS
from tests.broker import Kafka
from tests.contracts.builders import eventually, joined, settled
from tests.history.stages import SETTINGS, as_json, mixed
from tests.stage.stage import Stage, on_kafka, run_cli
from tests.system import oracle

NAMELESS = [client.Message(b"k%d" % i, b'{"x":[%d,0,1],"y":%d}' % (i % 5, i % 2)) for i in range(30)]


@pytest.fixture
def one(kafka: Kafka, topic_prefix: str, tmp_path: Path) -> Stage:
    """One partition."""
    return on_kafka(kafka.bootstrap, topic_prefix, tmp_path, 1)


@pytest.fixture
def two(kafka: Kafka, topic_prefix: str, tmp_path: Path) -> Stage:
    """Two partitions."""
    return on_kafka(kafka.bootstrap, topic_prefix, tmp_path, 2)


def test_topic_export_and_live_run_have_one_digest_and_the_group_stays_untouched(one: Stage, tmp_path: Path) -> None:
    """A backtest of the topic, and of its export, gives what the worker committed, through crashes."""
    one.send([*mixed(400), *NAMELESS], 0)
    assert one.run(crashes=[5, 11]).crashes == 2
    before = one.positions()
    file = tmp_path / "events.jsonl"
    assert one.tool("export", str(file)).exit_code == 0

    topic = as_json(one.tool("backtest", "--json"))[0]
    exported = as_json(run_cli("backtest", str(file), "--config", str(one.file), "--json"))[0]

    assert before[0] is not None
    assert topic["digest"] == exported["digest"]
    assert topic["partitions"][0]["chain"] == before[0].proof.chain
    assert one.positions() == before


def test_audit_reproduces_everything_after_failovers_and_a_change_of_tau(two: Stage) -> None:
    """All decisions and dead letters of both partitions, bit for bit, and the final state."""
    for partition in range(2):
        two.send(mixed(300, seed=partition), partition)
    assert two.run(crashes=[6, 12, 19]).crashes == 3
    two.configure(model={**SETTINGS["model"], "tau": 0.3})
    for partition in range(2):
        two.send(mixed(200, seed=9 + partition, first=300), partition)
    two.run(crashes=[7])

    result = two.tool("audit", "--json")
    found = as_json(result)
    counts = {
        channel: sum(len(two.records(channel, p)) for p in range(2))
        for channel in two.settings.topic_names().channels()
    }
    assert result.exit_code == 0, found
    assert (found["holds"], found["decisions"]) == (True, counts[Channel.DECISIONS])
    assert found["reproduced"] == counts[Channel.DECISIONS] + counts[Channel.DEAD_LETTERS]
    assert [(p["changes"], p["state_proven"]) for p in found["partitions"]] == [(1, True), (1, True)]


def test_audit_after_retention_begins_at_an_archived_checkpoint_and_names_the_rest(one: Stage, kafka: Kafka) -> None:
    """Events below an archived checkpoint are deleted, tau changed, a rollback, kills between: covered or named."""
    one.configure(checkpoint={**SETTINGS["checkpoint"], "archive_events": 150})
    one.send(mixed(300), 0)
    assert one.run(crashes=[6, 12]).crashes == 2
    one.send(mixed(300, seed=1, first=300), 0)
    one.run(crashes=[7], settings={"model": {**SETTINGS["model"], "tau": 0.3}})
    assert one.tool("rollback", "--to", "500", "--execute").exit_code == 0
    one.send(mixed(300, seed=2, first=600), 0)
    one.run(crashes=[5])
    history = as_json(one.tool("inspect", "--partition", "0", "--history", "--json"))
    archived = [each["next_offset"] for each in history["snapshots"] if each["archived"]]
    ring = [each["next_offset"] for each in history["snapshots"] if not each["archived"]]
    assert archived[0] + 50 < ring[0]
    assert one.tool("audit").exit_code == 0

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    before = archived[0] - 20
    for deleted in admin.delete_records([TopicPartition(one.settings.topic_names().events, 0, before)]).values():
        deleted.result()
    result = one.tool("audit", "--json")
    (found,) = as_json(result)["partitions"]
    assert (result.exit_code, found["holds"], found["state_proven"], found["begin"]) == (1, True, True, archived[0])
    assert [(gap["cause"], gap["begin"], gap["end"]) for gap in found["gaps"]] == [
        ("events", 0, before),
        ("checkpoints", before, archived[0]),
    ]
    assert found["superseded"][0]["decisions"] > 0
    assert one.tool("audit", "--allow-partial").exit_code == 0


def test_a_decision_is_found_by_its_time_however_late_it_was_made(one: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits stand in the topic at the time they were made: a search by time must not end at the first of them."""
    monkeypatch.setattr(find_decision, "LATE_MAX", 20)
    one.configure(worker={"batch_max": 25})
    one.send([client.event(f"e{i}", [i % 5, 0.0, 1.0], timestamp_ms=FIRST_MS + 1000 * i) for i in range(300)], 0)
    one.run()

    times = [datetime.fromtimestamp(FIRST_MS / 1000 + at, UTC).isoformat() for at in (240, 260)]
    found = as_json(one.tool("explain", "--id", "e250", "--since", times[0], "--until", times[1], "--json"))
    assert (found["offset"], found["published"], found["other_decisions"]) == (250, True, 0)


def test_inspect_explain_lag_and_dlq_beside_each_other(one: Stage) -> None:
    """Each command reads the broker, and a dead letter goes back to where it came from."""
    bad = client.Message(b"bad", b"rubbish", [("trace", b"1")], one.first_ms + 777)
    one.send([*mixed(150), bad], 0)
    one.run()
    position = one.positions()[0]
    assert position is not None

    card = as_json(one.tool("inspect", "--partition", "0", "--json"))
    assert card["next_offset"] == card["committed_offset"] == position.next_offset
    record = one.records(Channel.DECISIONS, 0)[-1]
    offset = client.input_offset(record.headers)
    explained = as_json(one.tool("explain", "--partition", "0", "--offset", str(offset), "--json"))
    assert explained["published"] is True
    assert as_json(one.tool("lag", "--json"))["records"] == 0

    dead_letters = as_json(one.tool("dlq", "list", "--json"))
    assert dead_letters["total"] == len(one.records(Channel.DEAD_LETTERS, 0))
    only = ["--from", "150", "--to", "151"]
    assert as_json(one.tool("dlq", "redrive", *only, "--json"))["sent"] == 1
    last = one.records(Channel.EVENTS, 0)[-1]
    assert (last.key, last.value, list(last.headers), last.timestamp_ms) == (
        *(b"bad", b"rubbish", [("trace", b"1")]),
        one.first_ms + 777,
    )
    assert as_json(one.tool("lag", "--json"))["records"] == 1


def delete_offsets(stage: Stage, bootstrap: str) -> None:
    """What an expired group or a careless operator does."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_consumer_groups([stage.settings.group], request_timeout=10).values():
        deleted.result(timeout=20)


def test_a_group_whose_offsets_were_deleted_recovers_to_the_oracles_decisions(two: Stage, kafka: Kafka) -> None:
    """A worker refuses to guess; after `npstream recover` the topics are those of an undisturbed run."""
    for partition in range(2):
        two.send(mixed(300, seed=partition), partition)
    two.run(crashes=[9])
    delete_offsets(two, kafka.bootstrap)
    assert set(two.positions().values()) == {None}
    with pytest.raises(Fatal, match="npstream recover"):
        two.run()
    two.wait_alone()

    assert "dry run" in two.tool("recover").stdout
    assert set(two.positions().values()) == {None}
    result = two.tool("recover", "--execute", "--json")
    assert result.exit_code == 0, result.stderr
    assert [move["how"] for move in as_json(result)["partitions"]] == ["recover", "recover"]
    two.wait_alone()
    for partition in range(2):
        two.send(mixed(200, seed=5 + partition, first=300), partition)
    two.run()

    config, topic = two.settings.partition_config(), two.settings.topic_names().events
    plain: oracle.Changes = [(0, config)]
    with closing(backend_of(two.settings).open_log()) as log:
        assert oracle.compare(log, dict.fromkeys(range(2), plain), two.settings.group, topic) > 500
    assert as_json(two.tool("audit", "--json"))["holds"]


def delete_checkpoints(stage: Stage, bootstrap: str) -> None:
    """Delete the checkpoint topic and make it again, as an operator would."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    name = stage.settings.topic_names().checkpoints
    for deleted in admin.delete_topics([name], operation_timeout=20).values():
        deleted.result(timeout=30)
    eventually(lambda: name not in admin.list_topics(timeout=10).topics)
    made = stage.tool("init", "--partitions", str(stage.partitions))
    assert made.exit_code == 0, made.stderr


def test_a_group_whose_checkpoints_were_deleted_recovers_to_the_oracles_decisions(two: Stage, kafka: Kafka) -> None:
    """The worker names the command; the state rebuilt from the first event is the committed one, and goes on."""
    for partition in range(2):
        two.send(mixed(300, seed=partition), partition)
    two.run(crashes=[9])
    before = two.positions()
    delete_checkpoints(two, kafka.bootstrap)
    with pytest.raises(Fatal, match="run `npstream recover`"):
        two.run()
    two.wait_alone()

    findings = as_json(two.tool("doctor", "--json"))["findings"]
    assert ["npstream recover --execute" in found["fix"] for found in findings if found["level"] == "error"] == [
        True
    ] * 2
    assert "no checkpoint is left" in two.tool("recover").stdout
    assert two.positions() == before
    result = two.tool("recover", "--execute", "--json")
    assert result.exit_code == 0, result.stderr
    assert [(move["how"], move["replayed"]) for move in as_json(result)["partitions"]] == [("recover", 300)] * 2
    two.wait_alone()
    assert [at and at.proof for at in two.positions().values()] == [at and at.proof for at in before.values()]
    for partition in range(2):
        two.send(mixed(200, seed=5 + partition, first=300), partition)
    two.run()

    plain: oracle.Changes = [(0, two.settings.partition_config())]
    with closing(backend_of(two.settings).open_log()) as log:
        names = two.settings.topic_names()
        assert oracle.compare(log, dict.fromkeys(range(2), plain), two.settings.group, names.events) > 500
    assert as_json(two.tool("audit", "--json"))["holds"]


def test_a_rollback_on_kafka_is_refused_beside_a_worker_and_repeats_without(one: Stage) -> None:
    """The members are named; once they are gone the events are decided again, and audit agrees."""
    one.send(mixed(300), 0)
    one.run()
    once = [r.value for r in one.records(Channel.DECISIONS, 0)]
    history = as_json(one.tool("inspect", "--partition", "0", "--history", "--json"))
    to = history["snapshots"][0]["next_offset"]
    broker = backend_of(one.settings).open_sole_member()
    try:
        joined(broker, {0: None})
        refused = one.tool("rollback", "--to-checkpoint", str(to), "--execute")
        assert refused.exit_code == 2
        assert "active members" in refused.stderr
    finally:
        broker.abandon()
    one.wait_alone()

    result = one.tool("rollback", "--to-checkpoint", str(to), "--execute", "--json")
    assert result.exit_code == 0, result.stderr
    one.wait_alone()
    one.run()

    again = [r.value for r in one.records(Channel.DECISIONS, 0)]
    assert again[: len(once)] == once
    assert again[len(once) :] == once[-(len(again) - len(once)) :]
    assert len(again) > len(once)
    assert as_json(one.tool("audit", "--json"))["holds"]


def test_the_doctor_finds_a_healthy_cluster_healthy(one: Stage) -> None:
    """Topics made by `init` and decided events leave nothing to do."""
    one.send([client.event(i, [0.1, 0.2, 0.3], target=bool(i % 2)) for i in range(50)], 0)
    one.run()

    result = one.tool("doctor", "--json")
    assert [f for f in as_json(result)["findings"] if f["level"] != "note"] == []
    assert result.exit_code == 0


def test_the_doctor_names_what_is_wrong_with_topics_and_retention(one: Stage) -> None:
    """A setting npstream cannot work with, compaction where it loses events, retention below the events' age."""
    names = one.settings.topic_names()
    assert one.settings.kafka is not None
    Admin(one.settings.kafka.config(names)).prepare(
        [
            Alter(names.checkpoints, "cleanup.policy", "compact", "delete"),
            Alter(names.dead_letters, "cleanup.policy", "delete", "compact"),
            Alter(names.decisions, "retention.ms", "-1", "3600000"),
        ]
    )
    one.send(mixed(20), 0, age_ms=5 * 3_600_000)

    result = one.tool("doctor", "--json")
    found = {(f["subject"], f["fix"].split()[0]): f["problem"] for f in as_json(result)["findings"] if f["fix"]}
    assert result.exit_code == 1
    assert "cleanup.policy=delete, needed is compact" in found[names.checkpoints, "run"]
    assert "would vanish" in found[names.dead_letters, "set"]
    assert "deleted at the next pass" in found[names.decisions, "set"]


def test_the_doctor_names_missing_topics_and_stops_there(one: Stage) -> None:
    """What `init` would create is reported, topic by topic."""
    one.configure(topics={**one.mapping["topics"], "decisions": "nowhere-to-be-found"})
    result = one.tool("doctor", "--json")

    assert result.exit_code == 1
    (found,) = [f for f in as_json(result)["findings"] if f["level"] == "error"]
    assert (found["subject"], found["fix"]) == ("nowhere-to-be-found", "run `npstream init`, which does it")


def test_the_doctor_distinguishes_a_stuck_transaction_from_a_slow_one(
    one: Stage, kafka: Kafka, topic_prefix: str
) -> None:
    """A gap that stays for longer than a transaction may last is an error with its remedy."""
    assert one.settings.kafka is not None
    config = one.settings.kafka.config(one.settings.topic_names())
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "transactional.id": topic_prefix + "hangs",
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(config.topics.events, b"open", b"k", 0)
    assert producer.flush(30) == 0
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += 5 * seconds

    with closing(KafkaLog(config)) as log:
        (slow,) = check_stuck(log, config, 1, lambda: now, sleep, wait=False)
        (stuck,) = check_stuck(log, config, 1, lambda: now, sleep)
        producer.abort_transaction(30)
        eventually(lambda: settled(log, [(Channel.EVENTS, 0)]))
        after = check_stuck(log, config, 1, lambda: now, sleep)

    assert slow.level == "note"
    assert (stuck.level, stuck.subject) == ("error", f"{config.topics.events}/0")
    assert "kafka-transactions.sh" in stuck.problem
    assert [finding.level for finding in after if finding.level == "error"] == []
    assert now > 15


def test_a_reader_that_is_busy_gets_no_error_of_silence(one: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that a tool spends on the records it got, compiling for instance, is not the broker's silence."""
    one.send([client.event(i, [0.1, 0.2, 0.3]) for i in range(20)], 0)
    monkeypatch.setattr("npstream.kafka.log._PAGE", 1)
    clock, busy_s = time.monotonic, 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock() + busy_s)
    with closing(backend_of(one.settings).open_log()) as log:
        records = log.read(Channel.EVENTS, 0, 0, 20)
        first = next(records)
        busy_s = 3600.0

        assert [first.offset, *(record.offset for record in records)] == list(range(20))
