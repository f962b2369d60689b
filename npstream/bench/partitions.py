"""Many partitions on one worker: how long after a crash until all are restored, and what a turn costs then.

Two lives of a worker, each in a process of its own. The first starts every
partition, decides some events of each and is killed; the second restores them
all, stands idle, then receives one event of each partition at a time.
"""

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import structlog

from npstream.bench.events import bench_config, bench_events
from npstream.bench.memory import resident_bytes
from npstream.bench.scratch import fill, make_topics, scatter, try_remove
from npstream.errors import NpstreamError, Retryable
from npstream.kafka import KafkaBroker, KafkaConfig, KafkaLog
from npstream.monitor.recorder import Recorder
from npstream.monitor.status import Identity
from npstream.port import Broker, Log
from npstream.records import Phase, Reading, Topics
from npstream.worker import Cadence, Limits, Origin, Worker
from npstream.worker.warm import warm_up

_PATIENCE_S = 300.0
_EVENTS = 20
"""Of each partition before the crash: they are decided after its first checkpoint, so all are replayed."""


@dataclass(frozen=True, slots=True)
class PartitionsBench:
    """What to measure."""

    bootstrap: str
    count: int = 300
    idle_s: float = 5.0
    rounds: int = 10
    """Events that each partition receives, one at a time, for the cost of such an event."""


def bench_partitions(bench: PartitionsBench) -> dict[str, Any]:
    """Both lives. Raises `Retryable` or `Fatal` when the broker cannot be used or a worker fails."""
    name = f"npstream-bench-partitions-{uuid.uuid4().hex[:8]}"
    topics = Topics(*(f"{name}.{kind}" for kind in ("events", "decisions", "dead", "checkpoints")))
    # A first transaction of a thousand partitions may take long on a broker on the same machine.
    kafka = KafkaConfig(bench.bootstrap, name, "bench", topics, transaction_timeout_ms=60_000)
    try:
        make_topics(kafka, bench.count)
        events = bench_events(_EVENTS * bench.count, "compact", bench.count)
        ends = fill(kafka, bench.count, events, int(1000 * time.time()))
        first = _life(bench, kafka, ends, is_first=True)
        second = _life(bench, kafka, ends, is_first=False)
        return {"partitions": bench.count, "first_start_s": first["live_s"], **second}
    finally:
        try_remove(kafka, topics.names(), name)


def _life(bench: PartitionsBench, kafka: KafkaConfig, ends: Mapping[int, int], *, is_first: bool) -> dict[str, Any]:
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(bench, kafka, ends, theirs, is_first), daemon=True)
    process.start()
    try:
        if not ours.poll(_PATIENCE_S):
            raise Retryable(f"the worker did not end within {_PATIENCE_S:g} s: measure fewer partitions")
        found = ours.recv()
    finally:
        process.join(10.0)
        process.kill()
    if isinstance(found, str):
        raise Retryable(f"the measured worker failed: {found}")
    assert isinstance(found, dict)
    return found


def _serve(
    bench: PartitionsBench, kafka: KafkaConfig, ends: Mapping[int, int], pipe: Connection, is_first: bool
) -> None:
    """A life of the worker, in its process; the first ends as by a kill."""
    logging.getLogger("npstream.kafka").setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    config = bench_config("compact")
    warm_up(config)
    watch = _Watch(kafka)
    stop = threading.Event()

    def connect() -> tuple[Broker, Log]:
        return KafkaBroker(kafka, heartbeat=watch.turned, stopping=stop.is_set), KafkaLog(kafka, heartbeat=watch.turned)

    origin = Origin(kafka.group, kafka.topics.events, config, Cadence(every_seconds=3600.0))
    worker = Worker(connect, origin, Limits(), time.monotonic, stop, watch)
    try:
        found = _start(worker, watch, ends)
        if is_first:
            pipe.send(found)
            os._exit(1)
        found |= _turns(bench, worker, watch, kafka, ends)
        pipe.send(found)
        worker.leave()
    except NpstreamError as error:
        pipe.send(str(error))


class _Watch(Recorder):
    """All that a worker with a dashboard records, and when its partitions were assigned, restored and live."""

    def __init__(self, kafka: KafkaConfig) -> None:
        super().__init__(Identity(kafka.group, kafka.topics.events, "bench", "", 0), time.monotonic)
        self.assigned_at = self.restored_at = self.live_at = 0.0
        self.restore_cpu_s = 0.0
        """Processor time that this process has used from the assignment on: what is left of it is waiting."""
        self._cpu_at = 0.0
        self.silent_s = 0.0
        """The longest time between two signs of life that the liveness probe would see."""
        self.next_offsets: dict[int, int] = {}
        self._live: set[int] = set()
        self._alive_at = time.monotonic()

    def has_reached(self, ends: Mapping[int, int]) -> bool:
        """Whether every partition is live and committed up to here."""
        return len(self._live) == len(ends) and self.next_offsets == ends

    def turned(self) -> None:
        super().turned()
        self._beat()

    def _beat(self) -> None:
        now = time.monotonic()
        self.silent_s, self._alive_at = max(self.silent_s, now - self._alive_at), now

    def polled(self) -> None:
        super().polled()
        self._beat()

    def restoring(self, partition: int) -> None:
        super().restoring(partition)
        self._beat()
        if not self.assigned_at:
            self.assigned_at, self._cpu_at = time.monotonic(), time.process_time()

    def assigned(self, partition: int, seconds: float, replay_from: int, replay_to: int) -> None:
        super().assigned(partition, seconds, replay_from, replay_to)
        self._beat()
        self.next_offsets[partition] = replay_to
        self.restored_at, self.restore_cpu_s = time.monotonic(), time.process_time() - self._cpu_at

    def replaying(self, reading: Reading) -> None:
        super().replaying(reading)
        if reading.phase is Phase.LIVE:
            self._note_live(reading.partition)

    def committed(self, shares: list[Any], seconds: float) -> None:
        super().committed(shares, seconds)
        self._beat()
        for share in shares:
            self.next_offsets[share.partition] = share.position.next_offset
            self._note_live(share.partition)

    def _note_live(self, partition: int) -> None:
        if partition not in self._live:
            self._live.add(partition)
            self.live_at = time.monotonic()


def _start(worker: Worker, watch: _Watch, ends: Mapping[int, int]) -> dict[str, Any]:
    """Until every partition has reached the end it had before."""
    empty = resident_bytes()
    _until(worker, partial(watch.has_reached, ends))
    return {
        "restored_s": round(watch.restored_at - watch.assigned_at, 2),
        "restore_cpu_s": round(watch.restore_cpu_s, 2),
        "live_s": round(watch.live_at - watch.assigned_at, 2),
        "longest_silence_s": round(watch.silent_s, 2),
        "kb_per_partition": round((resident_bytes() - empty) / 1024 / len(ends)),
    }


def _turns(
    bench: PartitionsBench, worker: Worker, watch: _Watch, kafka: KafkaConfig, ends: Mapping[int, int]
) -> dict[str, Any]:
    """What an idle turn costs, and a round in which every partition has one event."""
    begun, used, turns = time.monotonic(), time.thread_time(), 0
    while time.monotonic() - begun < bench.idle_s:
        worker.turn()
        turns += 1
    idle_us = 1e6 * (time.thread_time() - used) / turns
    rounds = []
    values = [value for value, _ in bench_events(len(ends), "compact", len(ends))]
    for number in range(1, bench.rounds + 1):
        scatter(kafka, values)
        used, wanted = time.thread_time(), {partition: end + number for partition, end in ends.items()}
        _until(worker, partial(watch.has_reached, wanted))
        rounds.append(time.thread_time() - used)
    return {
        "idle_turn_us": round(idle_us),
        "idle_cpu": round(idle_us * turns / (1e6 * bench.idle_s), 4),
        "us_per_single_event": round(1e6 * median(rounds) / len(ends)),
    }


def _until(worker: Worker, reached: Callable[[], bool]) -> None:
    """Turn until then. Raises `Retryable` when a session was restarted on the way, or it takes too long."""
    deadline = time.monotonic() + _PATIENCE_S
    while not reached():
        if worker.turn() or time.monotonic() > deadline:
            raise Retryable("the worker's session was restarted, or came to no end: look at the brokers, measure again")
