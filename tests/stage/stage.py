"""A group in a place, workers of it in this process, and what they left behind."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from npstream import client
from npstream.backend import backend_of
from npstream.cli import cli
from npstream.cli.exits import code_of
from npstream.errors import NpstreamError, Retryable
from npstream.observe import Observer
from npstream.partition import PartitionConfig
from npstream.port import Broker, FinishCommit, StateReader
from npstream.records import Channel, Headers, Position, Record, Share, Topics
from npstream.settings import from_mapping
from npstream.testing import FIRST_MS, MortalBroker, RunResult, Watch
from npstream.testing import Stage as FileStage
from npstream.worker import Cadence, Limits, Origin, Worker
from tests.contracts.builders import eventually
from tests.stage.places import EmbeddedPlace, KafkaPlace, LastingPlace, topics_of

TOPICS = Topics("events", "decisions", "dead", "checkpoints")
Published = list[tuple[bytes | None, bytes | None, Headers, int]]
Wrap = Callable[[Broker], Broker]

D = 3
SECTIONS: dict[str, Any] = {
    "model": {"d": D, "D": 8, "tau": 0.1, "budget": 5},
    "labels": {"buffer_max": 50, "expire_events": 200},
    "checkpoint": {"every_events": 100, "every_seconds": 1000, "keep": 4},
    "worker": {"batch_max": 40},
}
"""Small settings."""

_OF_TOOLS: Mapping[str, Any] = {
    "static_membership": False,
    "session_timeout_ms": 6000,
    "transaction_timeout_ms": 5000,
    "options": {"heartbeat.interval.ms": 500},
}
"""Tools wait until the last worker is forgotten."""


class Plan:
    """Counts calls over all sessions of one run."""

    def __init__(self, fail_at: Sequence[int]) -> None:
        self._fail_at = set(fail_at)
        self.calls = 0

    def step(self) -> None:
        """Count a call. Raises `Retryable` when it is one that fails."""
        self.calls += 1
        if self.calls in self._fail_at:
            raise Retryable(f"injected at call {self.calls}")


class Impatient(threading.Event):
    """The stop of a worker that need not sit out the pause before its next session."""

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once whether it is set."""
        return self.is_set()


class StopAtEnd(Watch):
    """Stops the worker at the end of its input, and counts how it came there."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        super().__init__(ends)
        self.stop = Impatient()
        self.replays: list[int] = []
        self.restarts = 0

    def went_live(self, partition: int, replayed: int) -> None:
        """Remember how far each replay went."""
        self.replays.append(replayed)
        super().went_live(partition, replayed)

    def session_ended(self, cause: str) -> None:
        """Count restarts."""
        self.restarts += 1


class PowerCut(MortalBroker):
    """Dies after the `commits`-th transaction took effect."""

    def __init__(self, broker: Broker, commits: int) -> None:
        super().__init__(broker, lambda: None)
        self._left = commits

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        """Publish, then maybe die."""
        finish = super().start_commit(shares)
        self._left -= 1
        if self._left == 0:
            raise RuntimeError("power cut")
        return finish


class Stage(FileStage):
    """
    By its settings: `send`, `run` through crashes, and `tool` for what a user would type.
    By what a test gives: `feed`, and a `worker` that is run here, or to its end by `decide`.
    """

    def __init__(self, place: LastingPlace, folder: Path, partitions: int = 1, **sections: Any) -> None:
        self.place = place
        self.partitions = partitions
        self.file = folder / "settings.yaml"
        if isinstance(place, EmbeddedPlace):
            self.path = place.path
        where = place.settings()
        labels = {**SECTIONS["labels"], **where.pop("labels", {})}
        self.mapping: dict[str, Any] = {**SECTIONS, "labels": labels, **where, **sections}
        self._sent = 0
        self.first_ms = FIRST_MS
        self.configure()

    def configure(self, **changes: Any) -> None:
        """Use these sections from now on."""
        self.mapping |= changes
        self.file.write_text(yaml.safe_dump(self.mapping, sort_keys=False))
        self.settings = from_mapping(self.mapping)

    def tool(self, *arguments: str) -> Result:
        """Run a command on the settings file."""
        return run_cli(*arguments, "--config", str(self.file))

    def send(self, events: Sequence[client.Message], partition: int | None = None, age_ms: int = 0) -> None:
        """Append events, each to the partition of its key unless one is given, or older ones."""
        first_ms = self.first_ms + self._sent - age_ms
        super().send([replace(m, timestamp_ms=m.timestamp_ms or first_ms + i) for i, m in enumerate(events)], partition)

    def run(self, crashes: Sequence[int] = (), settings: Mapping[str, Any] | None = None) -> RunResult:
        """Let workers decide everything that was sent, and wait until the group knows that the last one left."""
        self.configure(**(settings or {}))
        outcome = super().run(crashes)
        self.wait_alone()
        return outcome

    def wait_alone(self) -> None:
        """Wait until nobody is in the group."""
        with closing(self.state()) as state:
            eventually(lambda: state.members() == [])

    def state(self) -> StateReader:
        """A look at the group; close it."""
        return backend_of(self.settings).open_state()

    def positions(self) -> dict[int, Position | None]:
        """What is committed."""
        with closing(self.state()) as state:
            return {partition: state.committed(partition) for partition in range(self.partitions)}

    def feed(self, partition: int, records: Sequence[Record], channel: Channel = Channel.EVENTS) -> None:
        """Append events, or labels; their offsets are the log's own."""
        with closing(self.log()) as log:
            log.append(channel, partition, [(r.key, r.value, r.headers, r.timestamp_ms) for r in records])

    def worker(
        self,
        config: PartitionConfig,
        stop: threading.Event,
        observer: Observer,
        limits: Limits,
        *,
        cadence: Cadence,
        wrap: Wrap = lambda broker: broker,
        origin: Callable[[Origin], Origin] = lambda origin: origin,
        clock: Callable[[], float] = time.monotonic,
    ) -> Worker:
        """A worker of the group, with the broker as `wrap` makes it; nothing is connected yet."""
        backend = backend_of(self.settings)
        base = Origin(self.settings.group, self.settings.topic_names().events, config, cadence)
        return Worker(
            connect=lambda: (wrap(backend.open_broker(stop, observer)), backend.open_log()),
            origin=origin(base),
            limits=limits,
            clock=clock,
            stop=stop,
            observer=observer,
        )

    def decide(
        self,
        config: PartitionConfig,
        *,
        wrap: Wrap = lambda broker: broker,
        cadence: Cadence | None = None,
        batch_max: int = 100,
        origin: Callable[[Origin], Origin] = lambda origin: origin,
        clock: Callable[[], float] = time.monotonic,
    ) -> StopAtEnd:
        """Run one worker until everything is decided, then stop it politely."""
        with closing(self.log()) as log:
            ends = {p: log.ends(Channel.EVENTS, p).stable for p in range(self.partitions)}
        observer = StopAtEnd({p: end for p, end in ends.items() if end})
        limits = Limits(batch_max=batch_max, poll_s=0.01, recover_s=30.0)
        cadence = cadence or Cadence(every_events=250, every_seconds=1e9)
        self.worker(
            config, observer.stop, observer, limits, cadence=cadence, wrap=wrap, origin=origin, clock=clock
        ).run()
        return observer

    def published(self, channel: Channel, partition: int = 0) -> Published:
        """Everything committed on a topic, without offsets."""
        return [(r.key, r.value, r.headers, r.timestamp_ms) for r in self.records(channel, partition)]


def on_file(path: Path, partitions: int = 1, topics: Topics = TOPICS, **sections: Any) -> Stage:
    """Topics in a new file, with its settings beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return Stage(EmbeddedPlace(path, topics, "g").create(partitions), path.parent, partitions, **sections)


def on_kafka(bootstrap: str, prefix: str, folder: Path, partitions: int) -> Stage:
    """Topics on a broker, made by `npstream init`."""
    place = KafkaPlace(bootstrap, topics_of(prefix), prefix + "group", client=_OF_TOOLS)
    made = Stage(place, folder, partitions)
    # Older events than the topic keeps may vanish at any moment.
    made.first_ms = int(time.time() * 1000)
    done = made.tool("init", "--partitions", str(partitions))
    assert done.exit_code == 0, done.stderr
    return made


def run_cli(*arguments: str) -> Result:
    """Run a command line; errors of ours become their exit code and message, as for a user."""
    result = CliRunner().invoke(cli, list(arguments))
    if isinstance(result.exception, NpstreamError):
        result.exit_code = code_of(result.exception)
        result.stderr_bytes = f"npstream: {result.exception}".encode()
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
