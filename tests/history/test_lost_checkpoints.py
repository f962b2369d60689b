"""Every checkpoint is lost and the events are there: the state is rebuilt from the first event, and proven."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from npstream.errors import Fatal
from npstream.records import Channel
from npstream.testing import Stage
from tests.embedded import retention
from tests.history.stages import SETTINGS, as_json, mixed, stage, tamper, tool

OTHER = {"model": {**SETTINGS["model"], "tau": 0.3}}


def lose_checkpoints(made: Stage, folder: Path) -> None:
    """Delete the checkpoint topic and make it again, as an operator would."""
    name = made.settings.topic_names().checkpoints
    with sqlite3.connect(made.path) as db:
        for table in ("records", "spans", "topics"):
            db.execute(f"DELETE FROM {table} WHERE topic = (SELECT topic FROM topics WHERE name = ?)", (name,))
    db.close()
    assert tool(folder, "init").exit_code == 0
    assert made.records(Channel.CHECKPOINTS, 0) == []


def trim(made: Stage, before: int) -> None:
    """Retention takes the first events."""
    with closing(made.log()) as log:
        retention.trim(log, Channel.EVENTS, 0, before)


@pytest.mark.parametrize("start", ["earliest", "2023-11-14T22:13:20.100Z"])
@pytest.mark.parametrize("crashes", [[], [9, 30]], ids=["after a clean stop", "after crashes"])
def test_recovery_rebuilds_the_state_from_the_first_event(tmp_path: Path, crashes: list[int], start: str) -> None:
    """A worker refuses and names the command; afterwards decisions go on as if nothing had happened."""
    (tmp_path / "calm").mkdir()
    calm, made = Stage({**SETTINGS, "start": start}, tmp_path / "calm"), stage(tmp_path, start=start)
    for each in (calm, made):
        each.send(mixed(500))
    calm.run()
    made.run(crashes=crashes)
    lose_checkpoints(made, tmp_path)
    before = made.path.read_bytes()
    with pytest.raises(Fatal, match="run `npstream recover`"):
        made.run()
    assert "npstream recover" in tool(tmp_path, "doctor").stdout

    plan = tool(tmp_path, "recover")
    assert plan.exit_code == 0, plan.stderr
    assert "no checkpoint is left" in plan.stdout
    assert "dry run: nothing was changed" in plan.stdout
    assert made.path.read_bytes() == before
    result = as_json(tool(tmp_path, "recover", "--execute", "--json"))
    first = 0 if start == "earliest" else 100
    assert [(m["how"], m["to"], m["replayed"]) for m in result["partitions"]] == [("recover", 500, 500 - first)]

    for each in (calm, made):
        each.send(mixed(300, seed=2, first=500))
    assert made.run() == calm.run()
    audited = as_json(tool(tmp_path, "audit", "--json"))
    assert audited["holds"]
    assert audited["decisions"] == len(made.records(Channel.DECISIONS, 0))
    assert as_json(tool(tmp_path, "recover", "--json"))["partitions"] == []


def test_a_partition_that_began_with_a_model_file_needs_it_again(tmp_path: Path) -> None:
    """The seed is part of the beginning: with it the state is proven, without it refused."""
    teacher = stage(tmp_path / "teacher")
    teacher.send(mixed(300, seed=7))
    teacher.run()
    file = tmp_path / "model.npstream"
    tool(tmp_path / "teacher", "inspect", "--partition", "0", "--export", str(file))
    made = stage(tmp_path, start_from=str(file))
    made.send(mixed(200))
    made.run()
    lose_checkpoints(made, tmp_path)

    assert tool(tmp_path, "recover", "--execute").exit_code == 0
    lose_checkpoints(made, tmp_path)
    stage(tmp_path)
    refused = tool(tmp_path, "recover", "--execute")
    assert refused.exit_code == 5
    assert "start_from" in refused.stderr


def test_positions_and_checkpoints_lost_together_are_found_from_what_was_published(tmp_path: Path) -> None:
    """Without a proof everything published is compared; the beginning is on record again, so audit covers all."""
    made = stage(tmp_path)
    made.send(mixed(300))
    made.run()
    lose_checkpoints(made, tmp_path)
    tamper(made, "DELETE FROM positions")

    assert tool(tmp_path, "recover", "--execute").exit_code == 0
    made.send(mixed(50, seed=1, first=300))
    made.run()
    audited = as_json(tool(tmp_path, "audit", "--json"))
    assert (audited["holds"], audited["partitions"][0]["begin"]) == (True, 0)


@pytest.mark.parametrize("positions", [True, False], ids=["positions kept", "positions lost"])
def test_trimmed_events_are_named_with_the_ways_that_work(tmp_path: Path, positions: bool) -> None:
    """Nothing is guessed; the command that the message names lets the worker go on."""
    made = stage(tmp_path)
    made.send(mixed(300))
    made.run()
    lose_checkpoints(made, tmp_path)
    trim(made, 100)
    if not positions:
        tamper(made, "DELETE FROM positions")

    result = tool(tmp_path, "recover", "--execute")
    assert result.exit_code == 2
    assert "events are kept from offset 100 on" in result.stderr
    assert "npstream train" in result.stderr
    assert "npstream reset --to 300 --start-from" in result.stderr
    assert "`npstream reset --to 300`" in result.stderr

    assert tool(tmp_path, "reset", "--to", "300", "--execute").exit_code == 0
    made.send(mixed(50, seed=1, first=300))
    made.run()
    assert as_json(tool(tmp_path, "audit", "--json"))["holds"]


def test_settings_that_changed_on_the_way_cannot_be_known_any_more(tmp_path: Path) -> None:
    """The record of the change is lost too: the proof does not hold, and the message says from where on."""
    made = stage(tmp_path)
    made.send(mixed(200))
    made.run()
    made.send(mixed(100, seed=1, first=200))
    made.run(settings=OTHER)
    changed = as_json(tool(tmp_path, "inspect", "--partition", "0", "--history", "--json"))["changes"][-1]["offset"]
    made.configure(model=SETTINGS["model"])  # what the first of them were
    lose_checkpoints(made, tmp_path)

    result = tool(tmp_path, "recover", "--execute")
    assert result.exit_code == 5
    assert "do not lead to the committed state" in result.stderr
    assert "npstream reset --to 300" in result.stderr
    named = int(result.stderr.split("input offset ")[1].split()[0])
    assert changed <= named < changed + 10


def test_the_settings_that_decided_can_be_given_on_the_command_line(tmp_path: Path) -> None:
    """A file that was edited after the stop is not what the partition was decided with."""
    made = stage(tmp_path, model=OTHER["model"])
    made.send(mixed(200))
    made.run()
    lose_checkpoints(made, tmp_path)
    stage(tmp_path)

    assert tool(tmp_path, "recover").exit_code == 5
    assert tool(tmp_path, "recover", "--set", "model.tau=0.3", "--execute").exit_code == 0
    assert tool(tmp_path, "audit").exit_code == 0


def test_a_partition_with_an_older_checkpoint_is_left_alone(tmp_path: Path) -> None:
    """A worker finds the older one by itself."""
    made = stage(tmp_path)
    made.send(mixed(300))
    made.run()
    newest = [r for r in made.records(Channel.CHECKPOINTS, 0) if b"/change/" not in (r.key or b"")][-1]
    tamper(made, "DELETE FROM records WHERE key = ? AND offset = ?", newest.key, newest.offset)

    assert as_json(tool(tmp_path, "recover", "--json"))["partitions"] == []
    made.run()
