"""For your own tests: your settings and events through a real worker that dies where you say.

    from npstream import client
    from npstream.testing import run

    SETTINGS = {"topics": {"events": "orders"}, "model": {"d": 2, "tau": 0.1}, "worker": {"batch_max": 20}}
    EVENTS = [client.event(i, [i % 7, i % 3], target=i % 7 > 5) for i in range(500)]

    def test_crashes_leave_no_trace():
        calm = run(SETTINGS, EVENTS)
        assert run(SETTINGS, EVENTS, crashes=[4, 9, 30]) == calm
        assert calm.decisions[-1].fpr < 0.2

No Kafka is needed: the worker is the one of `npstream run`, on an embedded log in
a folder that is removed at the end. A crash is an end without any farewell: no
checkpoint, no commit; the next worker finds what is on the disk.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from npstream import app
from npstream.backend import backend_of
from npstream.client import Decision, Message, partition_for, read_decision
from npstream.codec.dead_letters import DeadLetter, read_dead_letter
from npstream.embedded import create_topics
from npstream.errors import StateCorrupt
from npstream.observe import Observer
from npstream.port import Broker, FinishCommit, Listener, Log, StateReader
from npstream.records import Batch, Channel, Headers, KeyValue, LabelsWanted, Pointer, Position, Record, Share
from npstream.settings import Settings, from_mapping
from npstream.settings.source import read_yaml
from npstream.worker import Worker

__all__ = ["RunResult", "Stage", "run"]

FIRST_MS = 1_700_000_000_000
"""Time of the first event that says none; each later one comes a millisecond after."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run, partition after partition. Equal outcomes are equal to the last byte and timestamp."""

    published: tuple[tuple[str, int, Record], ...] = field(repr=False)
    """(topic, partition, record) of every decision and dead letter."""
    decisions: tuple[Decision, ...]
    dead_letters: tuple[DeadLetter, ...]
    paused: Mapping[int, str]
    """Paused partitions, with the reason."""
    crashes: int = field(compare=False)
    """How many of the crashes asked for were met."""
    replayed: int = field(compare=False)
    """Events that were replayed in silence after them."""


def run(
    settings: Mapping[str, Any] | Path,
    events: Sequence[Message],
    *,
    crashes: Sequence[int] = (),
    partitions: int = 1,
) -> RunResult:
    """Send the events, decide them all, and return what was published.

    `settings` is what a settings file holds, or the file; its `kafka` section is
    not used. The worker dies at those calls of its broker that `crashes` numbers,
    counted from 1 over all its lives: joining, polls, reads of state, and twice
    for each commit, before and after it took effect. Raises `SettingsError`, and
    `Fatal` when every partition is paused.
    """
    with TemporaryDirectory(prefix="npstream-") as folder:
        stage = Stage(settings, Path(folder), partitions)
        stage.send(events)
        return stage.run(crashes)


class Stage:
    """Settings on an embedded log in a folder: send, run, look, send again."""

    def __init__(self, settings: Mapping[str, Any] | Path, folder: Path, partitions: int = 1) -> None:
        given = read_yaml(settings) if isinstance(settings, Path) else dict(settings)
        given.pop("kafka", None)
        given["embedded"] = {**(given.get("embedded") or {}), "path": str(folder / "log.db"), "partitions": partitions}
        self.mapping = given
        self.partitions = partitions
        self.settings: Settings = from_mapping(given)
        self.path = folder / "log.db"
        self._sent = 0
        create_topics(self.path, self.settings.topic_names(), partitions)

    def log(self) -> Log:
        """A reader and writer of the log; close it."""
        return backend_of(self.settings).open_log()

    def send(self, events: Sequence[Message], partition: int | None = None) -> None:
        """Append events, each to the partition of its key unless one is given."""
        placed: dict[int, list[tuple[bytes, bytes, Headers, int]]] = {}
        for event in events:
            place = partition_for(event.key, self.partitions) if partition is None else partition
            timestamp_ms = event.timestamp_ms or FIRST_MS + self._sent
            placed.setdefault(place, []).append((event.key, event.value, event.headers, timestamp_ms))
            self._sent += 1
        with closing(self.log()) as log:
            for place, records in placed.items():
                log.append(Channel.EVENTS, place, records)

    def run(self, crashes: Sequence[int] = (), settings: Mapping[str, Any] | None = None) -> RunResult:
        """Let workers decide everything that was sent, each dying at its crash; the last one stops politely.

        `settings` are used instead of the stage's own from now on.
        """
        if settings is not None:
            self.settings = from_mapping({**self.mapping, **settings, "embedded": self.mapping["embedded"]})
        deaths = _Deaths(crashes)
        watch = self._watch()
        while not watch.done:
            try:
                self._worker(watch, deaths).run()
            except _PowerCut:
                watch.died()
        return self._outcome(watch, deaths)

    def _watch(self) -> "Watch":
        with closing(self.log()) as log:
            ends = {p: log.ends(Channel.EVENTS, p).stable for p in range(self.partitions)}
        return Watch({partition: end for partition, end in ends.items() if end})

    def _worker(self, watch: "Watch", deaths: "_Deaths") -> Worker:
        backend, stop = backend_of(self.settings), watch.stop

        def connect() -> tuple[Broker, Log]:
            return MortalBroker(backend.open_broker(stop, watch), deaths.step), backend.open_log()

        limits = self.settings.worker.limits()
        return Worker(connect, app.origin_of(self.settings), limits, time.monotonic, stop, watch)

    def records(self, channel: Channel, partition: int) -> list[Record]:
        """Everything committed on one partition of a topic."""
        with closing(self.log()) as log:
            ends = log.ends(channel, partition)
            return list(log.read(channel, partition, ends.begin, ends.stable))

    def _outcome(self, watch: "Watch", deaths: "_Deaths") -> RunResult:
        found = {
            channel: [(p, record) for p in range(self.partitions) for record in self.records(channel, p)]
            for channel in (Channel.DECISIONS, Channel.DEAD_LETTERS)
        }
        names = self.settings.topic_names().names()
        return RunResult(
            published=tuple((names[channel], p, record) for channel, items in found.items() for p, record in items),
            decisions=tuple(read_decision(record.value) for _, record in found[Channel.DECISIONS]),
            dead_letters=tuple(read_dead_letter(record) for _, record in found[Channel.DEAD_LETTERS]),
            paused=dict(watch.pauses),
            crashes=deaths.met,
            replayed=watch.replayed,
        )


class _PowerCut(BaseException):
    """Not an Exception: nothing on the way out may take it for an error it can handle."""


class _Deaths:
    """Counts calls over all sessions and ends one where it should."""

    def __init__(self, at: Sequence[int]) -> None:
        self._at = set(at)
        self._calls = 0
        self.met = 0

    def step(self) -> None:
        self._calls += 1
        if self._calls in self._at:
            self.met += 1
            raise _PowerCut


class MortalBroker:
    """A broker that passes everything on, and calls `step` before each call and after each commit; `step` may raise."""

    def __init__(self, broker: Broker, step: Callable[[], None]) -> None:
        self._broker = broker
        self._step = step
        self.state = _MortalStateReader(broker.state, step)

    def subscribe(self, listener: Listener) -> None:
        self._step()
        self._broker.subscribe(listener)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        self._step()
        return self._broker.poll(max_records, timeout_s)

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        return self.start_commit(shares)()

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        self._step()
        finish = self._broker.start_commit(shares)
        return lambda: self._finished(finish)

    def _finished(self, finish: FinishCommit) -> dict[int, Pointer]:
        pointers = finish()
        self._step()
        return pointers

    def read_labels(self, wanted: Sequence[LabelsWanted]) -> dict[int, Sequence[Record]]:
        self._step()
        return self._broker.read_labels(wanted)

    def close(self, timeout_s: float) -> None:
        self._broker.close(timeout_s)

    def abandon(self) -> None:
        self._broker.abandon()


class _MortalStateReader:
    """The same for a state reader."""

    def __init__(self, state: StateReader, step: Callable[[], None]) -> None:
        self._state = state
        self._step = step
        self.members, self.close = state.members, state.close

    def committed(self, partition: int) -> Position | None:
        self._step()
        return self._state.committed(partition)

    def all_committed(self, partitions: Sequence[int]) -> dict[int, Position | StateCorrupt | None]:
        self._step()
        return self._state.all_committed(partitions)

    def read_checkpoints(self, pointers: Mapping[int, Pointer]) -> Iterator[tuple[int, list[KeyValue] | StateCorrupt]]:
        self._step()
        return self._state.read_checkpoints(pointers)


class Watch(Observer):
    """Stops the worker when every event that was there at the start is committed, or its partition is paused."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        self.stop = threading.Event()
        self.pauses: dict[int, str] = {}
        self.replayed = 0
        self.done = not ends
        self._left = dict(ends)
        self._goal: dict[int, int] = {}

    def died(self) -> None:
        """A life has ended; whether all was done will be seen by the next."""
        self.stop.clear()
        self.done = False

    def committed(self, shares: list[Share], seconds: float) -> None:
        """Strike out what has reached its end."""
        for share in shares:
            self._strike(share.partition, share.position.next_offset)

    def assigned(self, partition: int, seconds: float, replay_from: int, replay_to: int) -> None:
        """A restored partition may have nothing left to do."""
        self._goal[partition] = replay_to
        if replay_from == replay_to:
            self._strike(partition, replay_to)

    def went_live(self, partition: int, replayed: int) -> None:
        """A replay has ended."""
        self.replayed += replayed
        self._strike(partition, self._goal[partition])

    def paused(self, partition: int, reason: str) -> None:
        """A paused partition will not reach its end."""
        self.pauses[partition] = reason
        self._left.pop(partition, None)
        self._maybe_stop()

    def _strike(self, partition: int, next_offset: int) -> None:
        if next_offset >= self._left.get(partition, 0):
            self._left.pop(partition, None)
        self._maybe_stop()

    def _maybe_stop(self) -> None:
        if not self._left:
            self.done = True
            self.stop.set()
