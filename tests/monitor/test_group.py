"""A whole group, seen from outside of its workers."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from npstream import app, client
from npstream.history.inspect import describe
from npstream.monitor.group import GroupWatch
from npstream.records import Channel
from npstream.state import committed_snapshot
from tests.history.stages import as_json, mixed, stage, tamper, tool
from tests.stage.stage import Stage


@contextmanager
def watched(made: Stage) -> Iterator[GroupWatch]:
    """A watch of a stage's group, looked at by hand."""
    watch = app.build_group_watch(made.settings)
    with closing(watch):
        yield watch


def look(watch: GroupWatch) -> list[dict[str, Any]]:
    """The partitions after another look."""
    watch.look()
    partitions: list[dict[str, Any]] = watch.document()["partitions"]
    return partitions


def described(made: Stage, partition: int) -> dict[str, Any]:
    """What `inspect` says of the newest checkpoint."""
    position = made.positions()[partition]
    assert position is not None
    with closing(made.state()) as state, closing(made.log()) as log:
        return describe(committed_snapshot(state, log, "g", "events", partition, position))


def test_every_partition_is_shown_as_it_is_committed(tmp_path: Path) -> None:
    """Rates, counts and thresholds are those of `inspect`, positions and lags those of `lag`, whoever worked there."""
    made = stage(tmp_path, partitions=3)
    made.send(mixed(250), partition=0)
    made.send(mixed(120, seed=1), partition=1)
    made.run()
    made.send(mixed(30, seed=2), partition=1)
    with watched(made) as watch:
        found = look(watch)
    lags = as_json(tool(tmp_path, "lag", "--json"))["partitions"]

    assert [p["phase"] for p in found] == ["committed"] * 3
    for partition, shown in enumerate(found):
        inspected = described(made, partition)
        assert {name: shown[name] for name in ("tau", "threshold", "gamma", "warming_up", "learned")} == {
            name: inspected[name] for name in ("tau", "threshold", "gamma", "warming_up", "learned")
        }
        assert shown["pending"] == inspected["pending_labels"]
        assert shown["fpr"]["lifetime"]["value"] == inspected["fpr"]["lifetime"]
        assert (shown["next_offset"], shown["lag_records"]) == (
            lags[partition]["committed"],
            lags[partition]["records"],
        )


def test_it_follows_a_group_that_goes_on(tmp_path: Path) -> None:
    """A newer snapshot is read, and what was decided since then counts by its position."""
    made = stage(tmp_path)
    with watched(made) as watch:
        before = look(watch)
        made.send(mixed(150))
        made.run()
        first = look(watch)
        made.send(mixed(120, seed=1))
        made.run()
        second = look(watch)

    assert [p["phase"] for p in before] == ["not_started"]
    assert [p["next_offset"] for p in (first[0], second[0])] == [150, 270]
    assert second[0]["learned"] > first[0]["learned"] > 0


def test_what_waits_in_segments_is_counted_and_not_read(tmp_path: Path) -> None:
    """Thousands of observations wait: how many comes from the snapshot alone."""
    made = stage(
        tmp_path, labels={"buffer_max": 5000, "corrections": True}, checkpoint={"every_events": 500, "keep": 2}
    )
    made.send([message for message in mixed(3000) if b"rubbish" not in message.value])
    made.send([client.event(f"w{i}", [0.1, 0.2, 0.3]) for i in range(3000)])
    made.run()
    position = made.positions()[0]
    assert position is not None
    with watched(made) as watch:
        shown = look(watch)[0]
    inspected = described(made, 0)

    assert shown["pending"] == inspected["pending_labels"] > 3000
    assert shown["threshold"] == inspected["threshold"]


def test_nothing_is_written_and_nobody_joins(tmp_path: Path) -> None:
    """Every topic and every position is as before."""
    made = stage(tmp_path, partitions=2)
    made.send(mixed(90), partition=1)
    made.run()

    def everything() -> Any:
        with closing(made.log()) as log:
            return made.positions(), [log.ends(channel, p) for channel in list(Channel)[:4] for p in range(2)]

    before = everything()
    with watched(made) as watch:
        look(watch)
        look(watch)

    assert everything() == before


def test_a_damaged_checkpoint_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    """One flipped byte: that partition says so, with what to do."""
    made = stage(tmp_path, partitions=2)
    for partition in range(2):
        made.send(mixed(150, seed=partition), partition=partition)
    made.run()
    position = made.positions()[1]
    assert position is not None
    name = made.settings.topic_names().checkpoints
    where = "topic = (SELECT topic FROM topics WHERE name = ?) AND partition = 1 AND offset = ?"
    tamper(made, f"UPDATE records SET value = zeroblob(length(value)) WHERE {where}", name, position.pointer.offset)
    with watched(made) as watch:
        whole, damaged = look(watch)

    assert whole["phase"] == "committed"
    assert damaged["phase"] == "unreadable"
    assert "checkpoint" in damaged["reason"]
    assert "events" not in damaged


@pytest.mark.slow
def test_the_command_serves_the_page_from_the_moment_it_says_where(tmp_path: Path) -> None:
    """The address responds as soon as it is printed; one signal ends it with 0; `--json` shows the same once."""
    made = stage(tmp_path, partitions=2)
    made.send(mixed(150))
    made.run()
    command = [sys.executable, "-m", "npstream", "monitor", "--config", str(made.file), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"http://\S+", line)
        assert match is not None, line
        with urllib.request.urlopen(match.group() + "status", timeout=10) as response:
            served = json.load(response)
        with urllib.request.urlopen(match.group(), timeout=10) as response:
            page = response.read().decode()
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    finally:
        process.kill()
        process.stdout.close()  # type: ignore[union-attr]
    once = as_json(tool(tmp_path, "monitor", "--json"))

    assert (served["source"], served["group"], code) == ("group", "g", 0)
    assert "<title>npstream</title>" in page
    assert [p["phase"] for p in once["partitions"]] == ["committed"] * 2
    assert sum(p["events"] for p in once["partitions"]) == 150
