"""Stages for the tools' tests: a worker has run, crashed and changed settings, and a command looks at it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from click.testing import CliRunner, Result

from npstream import client
from npstream.cli import cli
from npstream.cli.exits import code_of
from npstream.errors import NpstreamError
from npstream.records import Channel, Record
from npstream.testing import Stage

D = 3

SETTINGS: dict[str, Any] = {
    "embedded": {"group": "g"},
    "topics": {"events": "events"},
    "model": {"d": D, "D": 8, "tau": 0.1, "budget": 5},
    "labels": {"buffer_max": 50, "expire_events": 200},
    "checkpoint": {"every_events": 100, "every_seconds": 1000, "keep": 4},
    "worker": {"batch_max": 40},
}


def mixed(count: int, seed: int = 0, first: int = 0) -> list[client.Message]:
    """Events with their label, without, labels that come later, and bad ones; ids count from `first`."""
    rng = np.random.default_rng(seed)
    waiting: list[tuple[str, bool]] = []
    found: list[client.Message] = []
    while len(found) < count:
        i = first + len(found)
        roll, target = rng.random(), bool(rng.random() < 0.3)
        x = [round(float(v), 4) for v in rng.normal(1.0 if target else 0.0, 1.0, D)]
        if roll < 0.4:
            found.append(client.event(f"e{i}", x, target=target))
        elif roll < 0.7:
            found.append(client.event(f"e{i}", x))
            waiting.append((f"e{i}", target))
        elif roll < 0.95 and waiting:
            identity, target = waiting.pop(int(rng.integers(len(waiting))))
            found.append(client.label(identity, target=target))
        else:
            found.append(client.Message(b"bad%d" % i, b"rubbish %d" % i, [("traceparent", b"00-%d" % i)]))
    return found


def stage(folder: Path, partitions: int = 1, **changes: Any) -> Stage:
    """An empty log under the small settings; `changes` replace whole sections."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Stage({**SETTINGS, **changes}, folder, partitions)
    (folder / "settings.yaml").write_text(yaml.safe_dump(made.mapping, sort_keys=False))
    return made


def tool(folder: Path, *arguments: str) -> Result:
    """Run a command on a stage's folder; errors of ours become their exit code and message, as for a user."""
    return run_cli(*arguments, "--config", str(folder / "settings.yaml"))


def run_cli(*arguments: str) -> Result:
    """Run a command line."""
    result = CliRunner().invoke(cli, list(arguments))
    if isinstance(result.exception, NpstreamError):
        result.exit_code = code_of(result.exception)
        result.stderr_bytes = f"npstream: {result.exception}".encode()
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def as_json(result: Result) -> Any:
    """The document a command printed."""
    return json.loads(result.stdout)


def tamper(made: Stage, sql: str, *parameters: object) -> None:
    """Change the file behind everybody's back; exactly one record must change."""
    with sqlite3.connect(made.path) as db:
        assert db.execute(sql, parameters).rowcount == 1
    db.close()


def rewrite(made: Stage, channel: Channel, record: Record, value: bytes) -> None:
    """Give one record of partition 0 another value."""
    name = made.settings.topic_names().names()[channel]
    tamper(
        made,
        "UPDATE records SET value = ? WHERE partition = 0 AND offset = ? "
        "AND topic = (SELECT topic FROM topics WHERE name = ?)",
        *(value, record.offset, name),
    )
