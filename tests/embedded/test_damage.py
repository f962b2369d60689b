"""A damaged file: every command says so with a documented exit code, and the doctor finds what audit finds."""

import random
import re
import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from npstream.cli.exits import FAILED, FATAL, OK, STATE, USAGE
from npstream.errors import NpstreamError
from npstream.records import Channel
from npstream.testing import Stage
from tests.cli.lines import Done, npstream
from tests.history.stages import SETTINGS, mixed, stage, tamper

SEEDS = range(48)
MARKS = [b"npstream-offset", b"traceparent", b'"chain"', b"NPCK", b'"params"', b"/change/", b"CREATE TABLE"]
"""Where headers, positions, checkpoints, changes and tables are; beside them a flipped byte hurts most."""
COMMANDS = {
    "audit": ["audit"],
    "doctor": ["doctor"],
    "inspect": ["inspect"],
    "history": ["inspect", "--partition", "0", "--history"],
    "explain": ["explain", "--partition", "0", "--offset", "100"],
    "lag": ["lag"],
    "export": ["export", "exported.jsonl"],
    "dlq": ["dlq", "list"],
    "recover": ["recover"],
    "rollback": ["rollback", "--to", "90"],
    "reset": ["reset", "--to", "earliest"],
    "backtest": ["backtest"],
}
DOCUMENTED = {OK, FAILED, USAGE, FATAL, STATE}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Two partitions with decisions, dead letters, checkpoints and a change of settings."""
    made = stage(tmp_path_factory.mktemp("healthy"), partitions=2)
    made.send([replace(message, headers=[("traceparent", b"00-1")]) for message in mixed(300)])
    made.run(crashes=[7])
    made.send([message for message in mixed(300, seed=1, first=300) if not message.value.startswith(b"rubbish")])
    made.run(settings={"model": {**SETTINGS["model"], "tau": 0.2}})
    return made


@pytest.fixture
def made(healthy: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A copy to damage, in the working folder."""
    monkeypatch.chdir(tmp_path)
    found = stage(tmp_path, partitions=2, model={**SETTINGS["model"], "tau": 0.2})
    found.path.write_bytes(healthy.path.read_bytes())
    return found


def said(name: str) -> Done:
    """Run a command in the working folder."""
    done = npstream(*COMMANDS[name], "--config", "settings.yaml")
    Path("exported.jsonl").unlink(missing_ok=True)
    return done


def test_a_healthy_file_gives_no_reason_to_complain(made: Stage) -> None:
    """Every command of the list ends well: what follows is the damage's doing."""
    for name in COMMANDS:
        done = said(name)
        assert done.code == OK, (name, done)


def flip(path: Path, chance: random.Random, *, aimed: bool) -> None:
    """Flip a few bits, anywhere that is in use or beside one of the marks."""
    data = bytearray(path.read_bytes())
    used = [at for at, byte in enumerate(data) if byte]
    if aimed:
        places = [found.start() for found in re.finditer(re.escape(chance.choice(MARKS)), data)]
        used = [place + step for place in places for step in range(-8, 40) if 0 <= place + step < len(data)]
    for at in chance.sample(used, chance.randint(1, 4)):
        data[at] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_damage_ends_a_command_in_a_traceback(made: Stage, seed: int) -> None:
    """Bytes flipped anywhere in the file: one of the documented exit codes, whatever the command.

    A worker decides the events that follow, pauses partitions or ends with an error of ours.
    """
    flip(made.path, random.Random(seed), aimed=bool(seed % 2))

    found = {name: said(name) for name in COMMANDS}

    assert {name: done for name, done in found.items() if done.code not in DOCUMENTED} == {}
    if found["audit"].code in (STATE, FATAL):
        assert found["doctor"].code != OK, found
    with suppress(NpstreamError):
        made.send(mixed(20, seed=2, first=600))
        made.run()


IN_TOPIC = "partition = 0 AND offset = ? AND topic = (SELECT topic FROM topics WHERE name = ?)"


@pytest.mark.parametrize(
    ("topic", "damage"),
    [
        ("events", "headers = x'ff00'"),
        ("events", "headers = x'0300616263ffffff7f'"),
        ("events", "value = 'text'"),
        ("events", "ts = 'yesterday'"),
        ("events", "offset = 1000000"),
        ("events-decisions", "headers = x'0100ff00000000'"),
        ("events-dead-letters", "key = 1.5"),
    ],
)
def test_a_damaged_record_is_named_and_only_its_partition_pauses(made: Stage, topic: str, damage: str) -> None:
    """Audit and doctor name topic, partition and offset; a worker that must read it pauses that partition alone."""
    damaged = 8 if topic == "events" else 2
    tamper(made, f"UPDATE records SET {damage} WHERE {IN_TOPIC}", damaged, topic)
    tamper(made, "DELETE FROM positions WHERE partition = 0")

    audited, examined = said("audit"), said("doctor")

    named = f"{topic}/0: the record at offset {damaged} "
    assert (audited.code, examined.code) == (STATE, FAILED), (audited, examined)
    assert named in audited.err
    assert named in examined.out
    if topic == "events":
        assert said("export").code == STATE
        tamper_all(made, "DELETE FROM records WHERE partition = 0 AND topic > 1")
        tamper_all(made, "UPDATE spans SET begin = 0, next = 0 WHERE partition = 0 AND topic > 1")
        made.send(mixed(20, seed=2, first=600), partition=1)
        outcome = made.run()
        assert list(outcome.paused) == [0]
        assert named in outcome.paused[0]
        assert outcome.decisions


def tamper_all(made: Stage, sql: str) -> None:
    """Change any number of rows behind everybody's back."""
    with sqlite3.connect(made.path) as db:
        db.execute(sql)
    db.close()


def test_a_missing_record_is_found_by_the_doctor(made: Stage) -> None:
    """Among the outputs too, where audit calls it a difference."""
    tamper(made, f"DELETE FROM records WHERE {IN_TOPIC}", 20, "events-decisions")

    assert said("audit").code == FAILED
    examined = said("doctor")
    assert examined.code == FAILED
    assert "events-decisions/0: 1 of " in examined.out


def test_a_damaged_older_checkpoint_is_found_though_no_worker_needs_it(made: Stage) -> None:
    """Each place of the ring is looked at, the one the position points to and the others."""
    kept = [record for record in made.records(Channel.CHECKPOINTS, 0) if (record.key or b"").count(b"/change/") == 0]
    for record in kept:
        assert record.value is not None
        tamper(made, f"UPDATE records SET value = ? WHERE {IN_TOPIC}", b"?", record.offset, "events-checkpoints")

    examined = said("doctor")
    assert examined.code == FAILED
    assert examined.out.count("error    events/0:") == len({record.key for record in kept})
