"""Stages for the tools' tests: a worker has run, crashed and changed settings, and a command looks at it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import Result

from npstream import client
from npstream.records import Channel, Record
from npstream.settings import from_mapping
from npstream.testing import Stage as FileStage
from tests.stage.stage import SECTIONS, D, Stage, on_file, run_cli

SETTINGS: dict[str, Any] = {"embedded": {"group": "g"}, "topics": {"events": "events"}, **SECTIONS}


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
    path = folder / "log.db"
    topics = from_mapping({**SETTINGS, **changes, "embedded": {"path": str(path)}}).topic_names()
    return on_file(path, partitions, topics, **changes)


def tool(folder: Path, *arguments: str) -> Result:
    """Run a command on a stage's folder; errors of ours become their exit code and message, as for a user."""
    return run_cli(*arguments, "--config", str(folder / "settings.yaml"))


def as_json(result: Result) -> Any:
    """The document a command printed."""
    return json.loads(result.stdout)


def tamper(made: FileStage, sql: str, *parameters: object) -> None:
    """Change the file behind everybody's back; exactly one record must change."""
    with sqlite3.connect(made.path) as db:
        assert db.execute(sql, parameters).rowcount == 1
    db.close()


def rewrite(made: FileStage, channel: Channel, record: Record, value: bytes) -> None:
    """Give one record of partition 0 another value."""
    name = made.settings.topic_names().names()[channel]
    tamper(
        made,
        "UPDATE records SET value = ? WHERE partition = 0 AND offset = ? "
        "AND topic = (SELECT topic FROM topics WHERE name = ?)",
        *(value, record.offset, name),
    )
