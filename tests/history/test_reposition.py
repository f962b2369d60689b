"""Rollback, reset and recover: what is planned, what is done, and that a worker goes on rightly from there."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from npstream import app, client
from npstream.partition import PartitionProcessor
from npstream.records import Channel, Record
from npstream.testing import Stage
from tests.embedded import retention
from tests.history.stages import SETTINGS, as_json, mixed, stage, tamper, tool

OTHER = {"model": {**SETTINGS["model"], "tau": 0.3}}


def decisions(made: Stage, partition: int = 0) -> list[tuple[int, bytes | None]]:
    """(input offset, value) of everything published."""
    return [(client.input_offset(r.headers), r.value) for r in made.records(Channel.DECISIONS, partition)]


def kept(folder: Path, partition: int = 0) -> list[int]:
    """The kept checkpoints by input offset."""
    found = as_json(tool(folder, "inspect", "--partition", str(partition), "--history", "--json"))
    return sorted({item["next_offset"] for item in found["snapshots"]})


def expected(made: Stage, records: list[Record], begin: int = 0) -> list[tuple[int, bytes | None]]:
    """What an undisturbed processor with the first settings publishes from a cold start at `begin`."""
    config = Stage(made.mapping, made.path.parent / "aside").settings.partition_config()
    processor = PartitionProcessor.cold(config, "g", "events", 0, begin, None)
    outputs = processor.process([record for record in records if record.offset >= begin]).outputs
    return [(client.input_offset(o.headers), o.value) for o in outputs if o.channel == Channel.DECISIONS]


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """700 events decided through crashes, checkpoints at several offsets."""
    (tmp_path / "aside").mkdir()
    found = stage(tmp_path)
    found.send(mixed(700))
    found.run(crashes=[5, 9, 20])
    return found


def test_a_plan_changes_nothing_and_says_what_readers_will_see(made: Stage, tmp_path: Path) -> None:
    """Without --execute the file stays as it is, and the words warn of decisions published twice."""
    before = made.path.read_bytes()
    to = kept(tmp_path)[0]
    result = tool(tmp_path, "rollback", "--to-checkpoint", str(to))

    assert result.exit_code == 0
    assert "readers see both" in result.stdout
    assert "dry run: nothing was changed" in result.stdout
    assert made.path.read_bytes() == before


def test_a_rollback_to_a_kept_checkpoint_repeats_the_same_decisions(made: Stage, tmp_path: Path) -> None:
    """With the same settings the events from there on are decided again, byte for byte, and audit agrees."""
    once = decisions(made)
    to = kept(tmp_path)[1]
    found = as_json(tool(tmp_path, "rollback", "--to-checkpoint", str(to), "--why", "a test", "--execute", "--json"))
    assert found["executed"]
    assert [(m["from"], m["to"], m["decided_again"]) for m in found["partitions"]] == [(700, to, 700 - to)]

    made.send(mixed(100, seed=3, first=700))
    made.run(crashes=[4, 8])

    again = [item for item in decisions(made)[: 2 * len(once)] if to <= item[0] < 700]
    assert decisions(made)[: len(once)] == once
    assert again == 2 * [item for item in once if item[0] >= to]
    audited = as_json(tool(tmp_path, "audit", "--json"))
    assert audited["holds"]
    assert audited["partitions"][0]["state_proven"]
    assert audited["decisions"] == len({offset for offset, _ in decisions(made)})


def test_a_rollback_to_any_offset_is_the_state_that_was_there(made: Stage, tmp_path: Path) -> None:
    """Between checkpoints the state is replayed in silence: the decisions after it are the oracle's."""
    once = decisions(made)
    tool(tmp_path, "rollback", "--to", "640", "--execute")
    made.run()

    assert decisions(made)[len(once) :] == [item for item in once if item[0] >= 640]


def test_a_rollback_to_a_time_takes_the_first_event_at_or_after_it(made: Stage, tmp_path: Path) -> None:
    """A timestamp is turned into an offset of each partition."""
    found = as_json(tool(tmp_path, "rollback", "--to", "2023-11-14T22:13:20.650Z", "--json"))

    assert found["partitions"][0]["to"] == 650
    assert not found["executed"]


def test_other_settings_after_a_rollback_are_audited_as_such(made: Stage, tmp_path: Path) -> None:
    """A change of tau made in the life that was given up no longer counts; the one made after it does."""
    made.send(mixed(150, seed=5, first=700))
    made.run(settings=OTHER)
    to = [offset for offset in kept(tmp_path) if offset < 850][-2]
    tool(tmp_path, "rollback", "--to-checkpoint", str(to), "--execute")
    made.send(mixed(50, seed=6, first=850))
    made.run(settings={"model": {**SETTINGS["model"], "tau": 0.05}})

    audited = as_json(tool(tmp_path, "audit", "--json"))
    assert audited["holds"]
    history = as_json(tool(tmp_path, "inspect", "--partition", "0", "--history", "--json"))
    assert [(item["from"], item["to"], item["how"]) for item in history["resets"]] == [(850, to, "rollback")]
    assert history["changes"][-1]["settings"]["params.tau"][1] == 0.05


def test_a_doubled_decision_is_still_found_after_a_rollback(made: Stage, tmp_path: Path) -> None:
    """A reset explains what comes again because of it, and nothing else."""
    tool(tmp_path, "rollback", "--to", "640", "--execute")
    made.run()
    assert tool(tmp_path, "audit").exit_code == 0
    log = made.log()
    record = made.records(Channel.DECISIONS, 0)[-1]
    log.append(Channel.DECISIONS, 0, [(record.key, record.value, record.headers, record.timestamp_ms)])
    log.close()

    assert tool(tmp_path, "audit", "--from", "640").exit_code == 1


def test_a_fresh_start_is_a_cold_one_at_that_place(made: Stage, tmp_path: Path) -> None:
    """What comes after is what a new group would have decided from there."""
    before = len(decisions(made))
    result = tool(tmp_path, "reset", "--to", "500", "--execute")
    assert "start over at offset 500" in result.stdout
    made.run()

    assert decisions(made)[before:] == expected(made, made.records(Channel.EVENTS, 0), begin=500)
    audited = as_json(tool(tmp_path, "audit", "--json"))
    assert audited["holds"]
    assert audited["partitions"][0]["begin"] == 500
    assert tool(tmp_path, "audit", "--from", "100").exit_code == 1


def test_a_fresh_start_from_a_model_file_knows_what_it_knew(made: Stage, tmp_path: Path) -> None:
    """A model that was exported is given to a partition that starts over."""
    file = tmp_path / "model.npstream"
    tool(tmp_path, "inspect", "--partition", "0", "--export", str(file))
    learned = app.read_model(file).t
    tool(tmp_path, "reset", "--to", "latest", "--start-from", str(file), "--execute")
    made.send(mixed(20, seed=8))
    made.run()

    first = client.read_decision(next(value for offset, value in decisions(made) if offset >= 700))
    assert first.t == learned


def test_a_kept_model_skips_events_and_remembers_the_rest(made: Stage, tmp_path: Path) -> None:
    """The events in between are neither decided nor learned; the model is the one from before them."""
    learned = as_json(tool(tmp_path, "inspect", "--partition", "0", "--json"))["learned"]
    made.send(mixed(60, seed=9))
    result = tool(tmp_path, "reset", "--to", "latest", "--keep-model", "--execute")
    assert "60 offsets are skipped" in result.stdout
    made.send([client.event("after", [0.1, 0.2, 0.3], target=False)])
    made.run()

    assert [offset for offset, _ in decisions(made) if offset >= 700] == [760]
    assert client.read_decision(decisions(made)[-1][1]).t == learned
    assert as_json(tool(tmp_path, "audit", "--json"))["holds"]
    assert tool(tmp_path, "reset", "--to", "10", "--keep-model").exit_code == 2


def test_events_that_retention_took_can_be_skipped_without_losing_the_model(made: Stage, tmp_path: Path) -> None:
    """A partition whose events are gone goes on at the first that is there, as far as its checkpoint knew."""
    made.send(mixed(60, seed=9))
    log = made.log()
    retention.trim(log, Channel.EVENTS, 0, 730)
    log.close()
    with pytest.raises(Exception, match="trimmed before they were read"):
        made.run()

    tool(tmp_path, "reset", "--to", "earliest", "--keep-model", "--execute")
    made.run()
    assert min(offset for offset, _ in decisions(made) if offset >= 700) >= 730


def test_an_unreadable_position_can_be_reset(made: Stage, tmp_path: Path) -> None:
    """A committed offset that another program wrote does not lock the operator out."""
    tamper(made, "UPDATE positions SET metadata = 'somebody else'")
    assert tool(tmp_path, "rollback", "--to", "640", "--execute").exit_code == 0
    made.run()

    assert as_json(tool(tmp_path, "audit", "--json"))["holds"]


HOLD = """
import sys, threading
from pathlib import Path
from npstream.embedded import EmbeddedBroker
from npstream.records import Topics
broker = EmbeddedBroker(Path(sys.argv[1]), Topics("events", "events-decisions", "events-dead-letters",
                                                  "events-checkpoints"), "g")
print("held", flush=True)
sys.stdin.read()
"""


def test_nothing_is_moved_while_a_worker_is_active(made: Stage, tmp_path: Path) -> None:
    """The refusal names the worker; a plan is still possible."""
    before = decisions(made)
    worker = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(made.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "held\n"
        for command in (["rollback", "--to", "640"], ["reset", "--to", "earliest"], ["recover"]):
            result = tool(tmp_path, *command, "--execute")
            assert result.exit_code == 2
            assert f"process {worker.pid}" in result.stderr
            assert tool(tmp_path, *command).exit_code == 0
    finally:
        worker.communicate(timeout=30)
    assert decisions(made) == before


def lose_offsets(made: Stage) -> None:
    """What an expired group or a careless operator does."""
    tamper(made, "DELETE FROM positions")


@pytest.mark.parametrize("crashes", [[], [30]], ids=["after a clean stop", "after a crash"])
def test_recovery_finds_the_place_again(tmp_path: Path, crashes: list[int]) -> None:
    """Decisions after a recovery continue those before the loss as if nothing had happened."""
    (tmp_path / "calm").mkdir()
    calm, made = Stage(SETTINGS, tmp_path / "calm"), stage(tmp_path)
    for each in (calm, made):
        each.send(mixed(500))
    calm.run()
    made.run(crashes=crashes)
    lose_offsets(made)
    with pytest.raises(Exception, match="npstream recover"):
        made.run()

    plan = tool(tmp_path, "recover")
    assert "dry run" in plan.stdout
    result = as_json(tool(tmp_path, "recover", "--execute", "--json"))
    assert [move["how"] for move in result["partitions"]] == ["recover"]

    for each in (calm, made):
        each.send(mixed(300, seed=2, first=500))
    assert made.run() == calm.run()
    assert as_json(tool(tmp_path, "audit", "--json"))["holds"]
    assert as_json(tool(tmp_path, "recover", "--json"))["partitions"] == []


def test_recovery_after_a_crash_replays_from_the_newest_checkpoint(tmp_path: Path) -> None:
    """Events decided since the checkpoint are replayed in silence and compared with what was published."""
    made = stage(tmp_path, checkpoint={"every_events": 10_000, "every_seconds": 1000})
    made.send(mixed(300))
    made.run(crashes=[5])
    lose_offsets(made)
    drop_newest_checkpoint(made)

    found = as_json(tool(tmp_path, "recover", "--execute", "--json"))["partitions"][0]
    assert found["replayed"] > 0
    assert "were reproduced on the way" in found["note"]
    made.send(mixed(50, seed=1, first=300))
    made.run()
    assert as_json(tool(tmp_path, "audit", "--json"))["holds"]


def drop_newest_checkpoint(made: Stage) -> None:
    """The snapshot of the graceful stop is lost, the first one is left."""
    newest = [r for r in made.records(Channel.CHECKPOINTS, 0) if b"/change/" not in (r.key or b"")][-1]
    tamper(
        made,
        "DELETE FROM records WHERE offset = ? AND partition = 0 AND topic = "
        "(SELECT topic FROM topics WHERE name = 'events-checkpoints')",
        newest.offset,
    )


def test_recovery_without_any_checkpoint_recomputes_from_the_first_event(made: Stage, tmp_path: Path) -> None:
    """Even the checkpoint topic may be lost, as long as the events and the settings are there."""
    log = made.log()
    retention.trim(log, Channel.CHECKPOINTS, 0, 10**6)
    log.close()
    lose_offsets(made)
    before = decisions(made)

    assert tool(tmp_path, "recover", "--execute").exit_code == 0
    made.send(mixed(50, seed=1, first=700))
    made.run()
    assert decisions(made) == expected(made, made.records(Channel.EVENTS, 0))
    assert decisions(made)[: len(before)] == before


def test_recovery_refuses_what_it_cannot_reproduce(made: Stage, tmp_path: Path) -> None:
    """With other settings than those that decided, and no checkpoint to show it, nothing is guessed."""
    log = made.log()
    retention.trim(log, Channel.CHECKPOINTS, 0, 10**6)
    log.close()
    lose_offsets(made)

    result = tool(tmp_path, "recover", "--execute", "--set", "model.tau=0.3")
    assert result.exit_code == 5
    assert "cannot be computed from what was published" in result.stderr
    assert "input offset" in result.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["rollback"], "say where to"),
        (["rollback", "--to", "5", "--to-checkpoint", "5"], "one of them"),
        (["rollback", "--to-checkpoint", "3"], "kept are those at"),
        (["rollback", "--to", "9999"], "is not decided yet"),
        (["rollback", "--to", "2"], "can be recomputed"),
        (["reset", "--to", "9999"], "is not there"),
        (["reset", "--to", "soon"], "neither an offset nor a timestamp"),
        (["reset", "--to", "earliest", "--keep-model", "--start-from", "x"], "one of them"),
        (["reset", "--to", "earliest", "--start-from", "nowhere.npstream"], "nowhere.npstream"),
        (["recover", "--partition", "4"], "partition 4 does not exist"),
    ],
)
def test_what_cannot_be_done_is_refused(made: Stage, tmp_path: Path, command: list[str], message: str) -> None:
    """One clear message and exit code 2."""
    if command == ["rollback", "--to", "2"]:
        log = made.log()
        retention.trim(log, Channel.EVENTS, 0, 100)
        log.close()
    result = tool(tmp_path, *command)

    assert result.exit_code == 2
    assert message in result.stderr


def test_a_group_that_never_ran_has_nothing_to_move(tmp_path: Path) -> None:
    """Recover and rollback find nothing to do."""
    made: Any = stage(tmp_path)
    made.send(mixed(5))

    assert tool(tmp_path, "recover", "--execute").stdout == "nothing to do\n"
    assert tool(tmp_path, "rollback", "--to", "0").stdout == "nothing to do\n"
