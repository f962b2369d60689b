"""A worker on an embedded log, run to the end of its input, and what it left behind."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from npstream.embedded import EmbeddedBroker, EmbeddedLog, create_topics
from npstream.errors import Retryable
from npstream.partition import PartitionConfig
from npstream.port import Broker, FinishCommit, Log
from npstream.records import Channel, Headers, Record, Share, Topics
from npstream.testing import MortalBroker, Watch
from npstream.worker import Cadence, Limits, Origin, Worker

TOPICS = Topics("events", "decisions", "dead", "checkpoints")
Published = list[tuple[bytes | None, bytes | None, Headers, int]]


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


@dataclass
class Bench:
    """One embedded log with events in it."""

    path: Path
    partitions: int = 1
    topics: Topics = TOPICS

    def __post_init__(self) -> None:
        create_topics(self.path, self.topics, self.partitions)

    def log(self) -> EmbeddedLog:
        """A reader and writer of the log; close it."""
        return EmbeddedLog(self.path, self.topics)

    def connect(self, wrap: Callable[[Broker], Broker] = lambda broker: broker) -> tuple[Broker, Log]:
        """The clients of a worker, the broker as `wrap` makes it."""
        return wrap(EmbeddedBroker(self.path, self.topics, "g")), self.log()

    def feed(self, partition: int, records: Sequence[Record], channel: Channel = Channel.EVENTS) -> None:
        """Append events, or labels; their offsets are the log's own."""
        with closing(self.log()) as log:
            log.append(channel, partition, [(r.key, r.value, r.headers, r.timestamp_ms) for r in records])

    def run(
        self,
        config: PartitionConfig,
        *,
        wrap: Callable[[Broker], Broker] = lambda broker: broker,
        cadence: Cadence | None = None,
        batch_max: int = 100,
        origin: Callable[[Origin], Origin] = lambda origin: origin,
        clock: Callable[[], float] = time.monotonic,
    ) -> StopAtEnd:
        """Run one worker until everything is decided, then stop it politely."""
        with closing(self.log()) as log:
            ends = {p: log.ends(Channel.EVENTS, p).stable for p in range(self.partitions)}
        observer = StopAtEnd({p: end for p, end in ends.items() if end})
        base = Origin("g", TOPICS.events, config, cadence or Cadence(every_events=250, every_seconds=1e9))
        limits = Limits(batch_max=batch_max, poll_s=0.01, recover_s=30.0)
        Worker(lambda: self.connect(wrap), origin(base), limits, clock, observer.stop, observer).run()
        return observer

    def published(self, channel: Channel, partition: int = 0) -> Published:
        """Everything committed on a topic, without offsets."""
        with closing(self.log()) as log:
            records = log.read(channel, partition, 0, log.ends(channel, partition).stable)
            return [(r.key, r.value, r.headers, r.timestamp_ms) for r in records]
