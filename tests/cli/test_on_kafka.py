"""The replaying commands on a real broker: what they read, and that they leave no trace."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from npstream.cli.exits import OK
from tests.broker import Kafka
from tests.cli.lines import npstream, settings_file
from tests.replay.data import event_lines, write_lines

COUNT = len(event_lines(400))


@pytest.fixture
def config(kafka: Kafka, topic_prefix: str, tmp_path: Path) -> Path:
    """Settings whose events topic holds a stream with late labels, on one partition."""
    connection = {"bootstrap": kafka.bootstrap, "group": f"{topic_prefix}g", "worker_name": "w"}
    path = settings_file(tmp_path, embedded=None, kafka=connection, topics={"events": f"{topic_prefix}events"})
    lines = write_lines(tmp_path / "events.jsonl", event_lines(400))
    for words in (["init", "--partitions", "1"], ["produce", str(lines)]):
        done = npstream(*words, "--config", path)
        assert done.code == OK, done.err
    return path


def json_of(*arguments: str | Path) -> Any:
    """The document a command printed."""
    done = npstream(*arguments, "--json")
    assert done.code == OK, done.err
    return json.loads(done.out)


def groups(kafka: Kafka) -> set[str]:
    """Every consumer group the broker knows."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    return {group.group_id for group in admin.list_consumer_groups().result(30).valid}


@pytest.mark.slow
def test_replays_of_a_topic_leave_no_trace(kafka: Kafka, config: Path, tmp_path: Path) -> None:
    """A topic and its export give one digest; training and tuning read the same; no group comes into being."""
    before = groups(kafka)
    exported = tmp_path / "exported.jsonl"

    (topic,) = json_of("backtest", "--config", config)
    json_of("export", exported, "--config", config)
    (file,) = json_of("backtest", exported, "--config", config)
    (part,) = json_of("backtest", "--config", config, "--from", "100", "--to", "150")
    trained = json_of("train", "--config", config, "--out", tmp_path / "model.npstream")
    tuned = json_of("tune", "--config", config, "--trials", "1", "--jobs", "1", "--out", tmp_path / "best.yaml")

    assert topic["events"] == file["events"] == trained["events"] == COUNT
    assert topic["digest"] == file["digest"] == tuned["base"]["digest"]
    assert part["events"] == 50
    assert groups(kafka) <= before


def test_a_future_range_of_a_topic_is_refused(config: Path) -> None:
    """The message says what the topic holds."""
    done = npstream("backtest", "--config", config, "--from", "2099-01-01T00:00:00Z")

    assert (done.code, done.out) == (2, "")
    assert f"it holds offsets 0 to {COUNT - 1} in partition 0" in done.err
