"""How fast `npstream label` goes through a large topic: the command itself, in a process of its own, run twice."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np
import orjson

from npstream.bench.scratch import make_topics, try_remove
from npstream.embedded import EmbeddedLog
from npstream.embedded.store import create_topics
from npstream.errors import Retryable
from npstream.kafka import KafkaConfig, KafkaLog
from npstream.port import Log
from npstream.records import Channel, Topics

LabelledShape = Literal["compact", "payment"]
"""`compact`: {"id":…,"x":[29 numbers]}; `payment`: nested, with spaces and names of its own, 9 of 24 members read."""

_PARTITIONS = 4
_CHUNK = 20_000
_PATTERN = 20_000
"""Different events; they come again and again under other ids."""
_NUMBERS = tuple(f"feature_{k:02}" for k in range(20))
_READ = ("payment.amount", *(f"signals.{name}" for name in _NUMBERS[:8]))
_LOG = "log.db"
_COMMAND = "label labels.csv --config settings.yaml --id id --json"


@dataclass(frozen=True, slots=True)
class LabelBench:
    """How many events and labels; which broker, or None: the topic is then in an embedded log."""

    events: int = 1_000_000
    ids: int = 5_000
    bootstrap: str | None = None


def bench_label(bench: LabelBench, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each shape and run: `seconds` of the pass through the topic, `whole_s` with start and publishing.

    `cpu_s` is processor time of the whole command with its processes. Raises `Retryable` when the command fails.
    """
    return [row for shape in get_args(LabelledShape) for row in _two_runs(bench, shape, progress)]


def _two_runs(bench: LabelBench, shape: LabelledShape, progress: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    name = f"npstream-bench-label-{uuid.uuid4().hex[:8]}"
    topics = Topics(*(f"{name}-{kind}" for kind in ("events", "decisions", "dead-letters", "checkpoints")))
    kafka = None
    if bench.bootstrap is not None:
        kafka = KafkaConfig(bench.bootstrap, name, "bench", topics, static_membership=False)
    with TemporaryDirectory() as folder:
        _write_files(Path(folder), bench, name, topics.events, shape)
        try:
            if kafka is None:
                create_topics(Path(folder, _LOG), topics, _PARTITIONS)
            else:
                make_topics(kafka, _PARTITIONS)
            with closing(EmbeddedLog(Path(folder, _LOG), topics) if kafka is None else KafkaLog(kafka)) as log:
                _fill(log, bench.events, shape)
            progress(f"{shape}: {bench.events:,} events are written")
            for run in (1, 2):
                yield {"shape": shape, "run": run, **_run(Path(folder))}
        finally:
            if kafka is not None:
                try_remove(kafka, topics.names(), name)


def _write_files(folder: Path, bench: LabelBench, group: str, topic: str, shape: LabelledShape) -> None:
    """Settings, and labels for events that lie evenly in the topic."""
    place = {"embedded": {"path": _LOG}}
    if bench.bootstrap is not None:
        place = {"kafka": {"bootstrap": bench.bootstrap, "group": group}}
    (folder / "settings.yaml").write_text(json.dumps(place | _settings(topic, shape)))
    ids = range(0, bench.events, max(bench.events // bench.ids, 1))[: bench.ids]
    (folder / "labels.csv").write_text("id,y\n" + "".join(f"p-{number},1\n" for number in ids))


def _settings(topic: str, shape: LabelledShape) -> dict[str, Any]:
    if shape == "compact":
        return {"topics": {"events": topic}, "model": {"d": 29}}
    features = {path.rpartition(".")[2]: {"number": path} for path in _READ}
    return {"topics": {"events": topic}, "events": {"id": "payment.id", "features": features}}


def _fill(log: Log, events: int, shape: LabelledShape) -> None:
    """The same share of the events in each partition, ids p-0, p-1, ..."""
    head, tails = _pattern(shape)
    now = int(1000 * time.time()) - events
    for begin in range(0, events, _CHUNK):
        for partition in range(_PARTITIONS):
            numbers = range(begin + partition, min(begin + _CHUNK, events), _PARTITIONS)
            own = [(b"%d" % i, b"%bp-%d%b" % (head, i, tails[i % _PATTERN]), (), now + i) for i in numbers]
            log.append(Channel.EVENTS, partition, own)


def _pattern(shape: LabelledShape) -> tuple[bytes, list[bytes]]:
    """What is before the id, and what is behind it, event by event."""
    x = np.random.default_rng(0).normal(size=(_PATTERN, 29)).round(6).tolist()
    if shape == "compact":
        return b'{"id":"', [b'","x":%b}' % orjson.dumps(row) for row in x]
    return b'{"payment": {"id": "', [
        b'", "amount": %.2f, "currency": "EUR", "at": "2026-01-31T10:00:00Z"}, "signals": %b}'
        % (abs(row[0]) * 100, json.dumps(dict(zip(_NUMBERS, row, strict=False))).encode())
        for row in x
    ]


def _run(folder: Path) -> dict[str, Any]:
    # The package may have been found beside the folder that this runs in.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "npstream", *_COMMAND.split()]
    began, used = time.perf_counter(), _used()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    whole, cpu = time.perf_counter() - began, _used() - used
    if done.returncode:
        raise Retryable(f"npstream label ended with exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    found = json.loads(done.stdout)
    return {
        "events": found["events"],
        "seconds": round(found["seconds"], 2),
        "events_per_s": round(found["events"] / found["seconds"]),
        "whole_s": round(whole, 2),
        "cpu_s": round(cpu, 2),
        "published": found["published"],
        "skipped": found["known"],
    }


def _used() -> float:
    """Processor seconds of all children that have ended."""
    times = os.times()
    return times.children_user + times.children_system
