"""The doctor on an embedded log, and its judgement of what a cluster says of itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npstream import client
from npstream.doctor import cluster_checks as cluster
from npstream.doctor.findings import Finding
from npstream.kafka import KafkaConfig
from npstream.kafka.admin import GroupMember, GroupState
from npstream.kafka.topics import TopicState
from npstream.records import Channel, Topics
from npstream.testing import Stage
from tests.embedded import retention
from tests.history.stages import as_json, mixed, stage, tamper, tool

TOPICS = Topics("in", "out", "dead", "state")
CONFIG = KafkaConfig("localhost:1", "g", "s", TOPICS)
HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """A group in good health."""
    found = stage(tmp_path, partitions=2, events={"dead_letter_cap": 0.5})
    found.send([message for message in mixed(300) if not message.value.startswith(b"rubbish")])
    found.run()
    return found


def findings(folder: Path, *arguments: str) -> list[tuple[str, str, str, str]]:
    """What the doctor finds, notes left out; the exit code must say whether there is any."""
    result = tool(folder, "doctor", *arguments, "--json")
    found = [
        (item["level"], item["subject"], item["problem"], item["fix"])
        for item in as_json(result)["findings"]
        if item["level"] != "note"
    ]
    assert result.exit_code == (1 if found else 0)
    assert all(fix for _, _, _, fix in found)
    return found


def test_a_healthy_group_has_no_findings(made: Stage, tmp_path: Path) -> None:
    """Nothing to do, exit code 0, and the words say so."""
    assert findings(tmp_path) == []
    result = tool(tmp_path, "doctor")
    assert result.exit_code == 0
    assert "no findings" in result.stdout


def test_a_group_that_never_ran_is_healthy(tmp_path: Path) -> None:
    """No state yet is a note, not a finding."""
    made = stage(tmp_path)
    made.send([client.event(1, [1.0, 2.0, 3.0])])

    assert findings(tmp_path) == []
    assert "has no state yet" in tool(tmp_path, "doctor").stdout


def trim(made: Stage, before: int) -> None:
    """Retention takes events of partition 0."""
    log = made.log()
    retention.trim(log, Channel.EVENTS, 0, before)
    log.close()


def hurt(made: Stage, how: str) -> None:
    """Do one of the things that happen."""
    position = "UPDATE positions SET {} WHERE partition = 0"
    newest = made.records(Channel.CHECKPOINTS, 0)[-1]
    match how:
        case "metadata":
            tamper(made, position.format("metadata = 'xyz'"))
        case "lost":
            tamper(made, "DELETE FROM positions WHERE partition = 0")
        case "beyond":
            tamper(made, position.format("next_offset = 99999"))
        case "snapshot":
            assert newest.value is not None
            tamper(
                made,
                "UPDATE records SET value = ? WHERE value = ?",
                newest.value[:-9] + b"?" + newest.value[-8:],
                newest.value,
            )
        case "trimmed":
            made.send([client.event(i, [1.0, 2.0, 3.0]) for i in range(20)], partition=0)
            trim(made, made.records(Channel.EVENTS, 0)[-1].offset)
        case "far away":
            made.send([client.Message(b"k", b"rubbish")] * 3, partition=0)
            made.send([client.event(i, [1.0, 2.0, 3.0]) for i in range(200)], partition=0)
        case "rubbish":
            made.send([client.Message(b"k", b"rubbish")] * 3, partition=0)
        case "wrong width":
            made.send([client.event(i, [1.0, 2.0]) for i in range(90)], partition=0)


@pytest.mark.parametrize(
    ("how", "level", "problem", "fix"),
    [
        ("metadata", "error", "its committed offset is unreadable", "npstream recover"),
        ("lost", "error", "its offsets were lost", "npstream recover"),
        ("beyond", "error", "it was deleted and created again", "npstream reset --to earliest"),
        ("snapshot", "error", "its checkpoint is unreadable", "npstream rollback"),
        ("far away", "warning", "3 of its next 100 events are bad: 3 not_json (at offset", "fix the producer"),
        ("trimmed", "error", "some were never decided", "--keep-model"),
        ("rubbish", "warning", "3 of its newest 100 events are bad: 3 not_json (at offset", "fix the producer"),
        ("wrong width", "error", "wrong_length (at offset", "model.d"),
    ],
)
def test_each_trouble_is_named_with_its_fix(
    made: Stage, tmp_path: Path, how: str, level: str, problem: str, fix: str
) -> None:
    """One finding for one trouble, on the partition that has it."""
    hurt(made, how)

    ((found_level, subject, found_problem, found_fix),) = findings(tmp_path)
    assert (found_level, subject) == (level, "events/0")
    assert problem in found_problem
    assert fix in found_fix


def test_settings_that_cannot_take_over_are_found_before_a_worker_starts(made: Stage, tmp_path: Path) -> None:
    """Another D is an error on every partition, another tau only a note."""
    refused = findings(tmp_path, "--set", "model.D=16")
    assert [(level, subject) for level, subject, _, _ in refused] == [("error", "events/0"), ("error", "events/1")]
    assert "D: 8 cannot become 16" in refused[0][2]
    assert findings(tmp_path, "--set", "model.tau=0.2") == []
    assert "settings will change at the next start: params" in tool(tmp_path, "doctor", "--set", "model.tau=0.2").stdout


def test_a_buffer_that_the_rate_of_the_topic_overflows_is_found(tmp_path: Path) -> None:
    """By the timestamps of the events there are, ten a second: an hour of them is 36,000."""
    late = {"buffer_max": 6000, "expire_seconds": 3600.0, "on_expiry": "negative"}
    made = stage(tmp_path, labels=late)
    made.send([client.event(i, [1.0, 2.0, 3.0], timestamp_ms=NOW_MS + 100 * i) for i in range(1201)])

    ((level, subject, problem, fix),) = findings(tmp_path)

    assert (level, subject) == ("warning", "events/0")
    assert "needs room for 36,030, and has it for 6,000: 83.3% of them will be learned as non-targets" in problem
    assert "within 10 minutes" in problem
    assert fix.startswith("raise it, shorten labels.expire_seconds")
    assert findings(tmp_path, "--set", "labels.buffer_max=40000", "--set", "model.control=alarm_rate") == []


def test_a_missing_partition_of_an_output_topic_is_found(tmp_path: Path) -> None:
    """Fewer partitions than the input has: `init` is named."""
    made = stage(tmp_path)
    tamper(made, "UPDATE topics SET partitions = 2 WHERE name = 'events'")
    tamper(made, "INSERT INTO spans SELECT topic, 1, 0, 0 FROM topics WHERE name = 'events'")

    found = findings(tmp_path)
    assert [subject for _, subject, problem, _ in found if "has 1 partition," in problem] == [
        *("events-decisions", "events-dead-letters", "events-checkpoints")
    ]


def test_a_log_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    """A missing file ends with one message and the code for brokers."""
    made = stage(tmp_path)
    made.path.unlink()
    result = tool(tmp_path, "doctor")

    assert result.exit_code == 4
    assert "npstream init" in result.stderr


def state(name: str, **config: str) -> TopicState:
    """A topic as a cluster describes it."""
    return TopicState(
        name, 4, 3, {"cleanup.policy": "delete", "retention.ms": "-1", "min.insync.replicas": "2"} | config
    )


def subjects(found: list[Finding]) -> list[tuple[str, str]]:
    """Level and subject of each."""
    return [(finding.level, finding.subject) for finding in found]


def test_timeouts_in_order_and_within_the_brokers_limits_are_fine() -> None:
    """The defaults give nothing to say."""
    broker = {"transaction.max.timeout.ms": "900000", "group.max.session.timeout.ms": "1800000"}

    assert cluster.check_timeouts(CONFIG, 20, broker | {"offsets.retention.minutes": "10080"}) == []


@pytest.mark.parametrize(
    ("changes", "broker", "level", "word"),
    [
        ({"transaction_timeout_ms": 60_000}, {}, "warning", "is not shorter than kafka.session_timeout_ms"),
        ({"session_timeout_ms": 400_000}, {}, "warning", "is not shorter than kafka.max_poll_interval_ms"),
        ({}, {"transaction.max.timeout.ms": "9000"}, "error", "transaction.max.timeout.ms=9000"),
        ({}, {"group.max.session.timeout.ms": "30000"}, "error", "group.max.session.timeout.ms=30000"),
        ({}, {"group.min.session.timeout.ms": "50000"}, "error", "group.min.session.timeout.ms=50000"),
        ({}, {"offsets.retention.minutes": "1440"}, "warning", "loses its offsets"),
    ],
)
def test_each_timeout_that_does_not_fit_is_found(
    changes: dict[str, Any], broker: dict[str, str], level: str, word: str
) -> None:
    """The chain and the brokers' limits, one finding each."""
    (found,) = cluster.check_timeouts(replace(CONFIG, **changes), 20, broker)

    assert found.level == level
    assert word in found.problem
    assert found.fix


def test_retention_is_judged_by_event_time() -> None:
    """Decisions of old events vanish at once where retention is short; undecided events are in danger."""
    states = {"in": state("in", **{"retention.ms": str(10 * HOUR_MS)}), "out": state("out")}
    old = NOW_MS - 9 * HOUR_MS

    assert cluster.check_retention(TOPICS, states, NOW_MS, None, old) == []
    assert subjects(cluster.check_retention(TOPICS, states, NOW_MS, old, NOW_MS)) == [("error", "in")]
    states["out"] = state("out", **{"retention.ms": str(HOUR_MS)})
    assert subjects(cluster.check_retention(TOPICS, states, NOW_MS, None, old)) == [("error", "out")]
    assert subjects(cluster.check_retention(TOPICS, states, NOW_MS, None, NOW_MS)) == []
    states["out"] = state("out", **{"retention.ms": str(HOUR_MS), "cleanup.policy": "compact"})
    assert cluster.check_retention(TOPICS, states, NOW_MS, None, old) == []
    assert subjects(cluster.check_cleanup(TOPICS, states)) == [("error", "out")]


def test_replicas_matter_where_there_are_brokers_for_them() -> None:
    """One broker cannot hold three replicas; three can."""
    states = {"in": replace(state("in"), replication=1), "out": state("out", **{"min.insync.replicas": "1"})}

    assert cluster.check_replicas(1, states, {}) == []
    assert subjects(cluster.check_replicas(3, states, {})) == [("warning", "in"), ("warning", "out")]
    weak = {"transaction.state.log.replication.factor": "1"}
    assert subjects(cluster.check_replicas(3, {"out": state("out")}, weak)) == [("warning", "brokers")]


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        (GroupState("Empty", ()), ["note"]),
        (GroupState("Stable", (GroupMember("a", "c", "h", (0, 1, 2, 3)),)), []),
        (GroupState("Stable", (GroupMember("a", "c", "h", (0, 1, 2)),)), ["error"]),
        (GroupState("PreparingRebalance", (GroupMember("a", "c", "h", ()),)), ["warning"]),
        (
            GroupState("Stable", (GroupMember("a", "c", "h", (0, 1, 2, 3)), GroupMember("b", "c", "h", ()))),
            ["note"],
        ),
    ],
)
def test_the_group_is_judged_by_who_owns_what(group: GroupState, wanted: list[str]) -> None:
    """Nobody there is a note; a partition without an owner is an error."""
    assert [finding.level for finding in cluster.check_group("g", group, 4)] == wanted


@pytest.mark.parametrize(
    ("options", "max_bytes", "topic", "broker", "wanted"),
    [
        ({}, 262_144, "1048588", {}, []),
        ({}, 262_144, "200000000", {}, [("error", "ev")]),
        ({"receive.message.max.bytes": 300_000_000}, 262_144, "200000000", {}, []),
        ({}, 2_000_000, "3000000", {}, [("note", "events.max_bytes")]),
        ({}, 262_144, "100000", {}, [("note", "ev")]),
        ({}, 262_144, "1048588", {"offset.metadata.max.bytes": "100"}, [("error", "brokers")]),
    ],
)
def test_sizes_that_do_not_fit_together_are_found(
    options: dict[str, int], max_bytes: int, topic: str, broker: dict[str, str], wanted: list[tuple[str, str]]
) -> None:
    """What the topic takes, what the client unpacks, what an event may have, what a position needs."""
    config = KafkaConfig("h:1", "g", "s", Topics("ev", "de", "dl", "cp"), options=options)
    states = {"ev": TopicState("ev", 1, 1, {"max.message.bytes": topic})}

    assert subjects(cluster.check_sizes(config, max_bytes, states, broker)) == wanted
