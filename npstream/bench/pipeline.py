"""A worker end to end beside a bare loop, on topics of its own that are removed afterwards.

Runs of the two, and of the shapes of events, alternate and the median counts, so
that other load on the machine disturbs all alike. Throughput is that of a full topic read to its end;
latency, at a steady rate, is the time from sending an event to seeing its
decision as a reader of committed records.
"""

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from npstream.bench.bare import Replies
from npstream.bench.events import Event, Shape, asking, bench_config, bench_events, sample_decisions
from npstream.bench.loops import LoopKind, LoopProcess, LoopSpec, Measured
from npstream.bench.probe import Probe
from npstream.bench.scratch import fill, make_topics, try_remove
from npstream.bench.stages import STAGES
from npstream.codec.position import encode_position
from npstream.kafka import KafkaConfig
from npstream.records import Pointer, Position, Proof, Topics
from npstream.worker import Limits

KINDS: tuple[LoopKind, ...] = ("worker", "bare")
_SAMPLE = 4000
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineBench:
    """What to measure, and how much of it."""

    bootstrap: str
    shapes: tuple[Shape, ...] = ("compact", "f32")
    partitions: int = 4
    events: int = 400_000
    runs: int = 3
    per_second: float = 1000.0
    seconds: float = 8.0
    limits: Limits = field(default_factory=Limits)


def bench_pipeline(bench: PipelineBench, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """One row a shape. Raises `Retryable` or `Fatal` when the broker cannot be used or a loop fails."""
    scenes = [_Scene(bench, shape, progress) for shape in bench.shapes]
    with ExitStack() as stack:
        for scene in scenes:
            scene.fill(stack)
        for _ in range(bench.runs):
            for scene in scenes:
                scene.run()
    return [scene.row() for scene in scenes]


class _Scene:
    """One shape: its events, its classifier, and fresh topics and a fresh group for each run."""

    def __init__(self, bench: PipelineBench, shape: Shape, progress: Callable[[str], None]) -> None:
        self._bench = bench
        self._shape = shape
        self._progress = progress
        self._name = f"npstream-bench-{shape}-{uuid.uuid4().hex[:8]}"
        self._config = bench_config(shape)
        self._events = bench_events(bench.events, shape, bench.partitions)
        self._runs: list[tuple[LoopKind, Measured]] = []
        self._filled, self._ends = "", dict[int, int]()
        self._replies = _replies(sample_decisions(self._asking()[:_SAMPLE], self._config))

    def row(self) -> dict[str, Any]:
        """Both loops, measured and compared."""
        speed, stages, cpu = self._speeds()
        waits = self._waits()
        row: dict[str, Any] = {
            "shape": self._shape,
            "events_per_s": round(median(speed["worker"])),
            "bare_events_per_s": round(median(speed["bare"])),
            "ratio": round(median(speed["worker"]) / median(speed["bare"]), 3),
            "cpu_us": round(median(cpu["worker"]), 2),
            "bare_cpu_us": round(median(cpu["bare"]), 2),
        }
        for kind, prefix in (("worker", ""), ("bare", "bare_")):
            for name, quantile in (("p50_ms", 0.50), ("p99_ms", 0.99)):
                row[prefix + name] = round(1000 * median(_quantile(run, quantile) for run in waits[kind]), 2)
        row["p99_ratio"] = round(row["p99_ms"] / row["bare_p99_ms"], 3)
        row["us_per_event"] = {name: round(median(run[name] for run in stages), 3) for name in STAGES}
        return row

    def _asking(self) -> list[Event]:
        return asking(self._events, self._shape)

    def fill(self, stack: ExitStack) -> None:
        """Write the events, to be removed when `stack` is closed."""
        filled = self._kafka("events")
        stack.callback(try_remove, filled, filled.topics.names(), filled.group)
        make_topics(filled, self._bench.partitions)
        # Of today: the broker deletes what is older than its retention.
        self._ends = fill(filled, self._bench.partitions, self._events, int(1000 * time.time()))
        self._filled = filled.topics.events

    def run(self) -> None:
        """One run of each loop over all events."""
        self._runs += [(kind, self._speed(kind, self._filled, self._ends)) for kind in KINDS]

    def _speeds(self) -> tuple[dict[LoopKind, list[float]], list[dict[str, float]], dict[LoopKind, list[float]]]:
        """Events per second of each run; a worker's microseconds per event by stage; those of each loop's threads."""
        count, runs = self._bench.events, self._runs
        speed = {kind: [count / found.seconds for own, found in runs if own == kind] for kind in KINDS}
        cpu = {kind: [1e6 * found.cpu_s / count for own, found in runs if own == kind] for kind in KINDS}
        return speed, [_per_event(found, count) for own, found in runs if own == "worker"], cpu

    def _speed(self, kind: LoopKind, events: str, ends: dict[int, int]) -> Measured:
        kafka = self._kafka(f"{kind}-{uuid.uuid4().hex[:4]}", events)
        make_topics(kafka, self._bench.partitions)
        try:
            with LoopProcess(self._spec(kind, kafka, ends)) as loop:
                found = loop.result(_PATIENCE_S + self._bench.events / 1000)
        finally:
            try_remove(kafka, kafka.topics.names()[1:], kafka.group)
        self._progress(f"{self._shape} {kind}: {self._bench.events / found.seconds:,.0f} events/s")
        return found

    def _waits(self) -> dict[str, list[list[float]]]:
        """Seconds from sending to seeing, of each run."""
        waits: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
        for _ in range(self._bench.runs):
            for kind in KINDS:
                waits[kind].append(self._wait(kind))
        return waits

    def _wait(self, kind: LoopKind) -> list[float]:
        bench = self._bench
        kafka = self._kafka(f"latency-{kind}-{uuid.uuid4().hex[:4]}")
        make_topics(kafka, bench.partitions)
        probe = Probe(kafka, bench.partitions)
        try:
            with LoopProcess(self._spec(kind, kafka, None)) as loop:
                waits = probe.measure(self._asking(), bench.per_second, bench.seconds, _PATIENCE_S)
                loop.stop()
        finally:
            probe.close()
            try_remove(kafka, kafka.topics.names(), kafka.group)
        p50, p99 = (1000 * _quantile(waits, quantile) for quantile in (0.50, 0.99))
        self._progress(f"{self._shape} {kind} at {bench.per_second:g}/s: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        return waits

    def _spec(self, kind: LoopKind, kafka: KafkaConfig, ends: dict[int, int] | None) -> LoopSpec:
        return LoopSpec(
            kind=kind, kafka=kafka, config=self._config, replies=self._replies, limits=self._bench.limits, ends=ends
        )

    def _kafka(self, run: str, events: str | None = None) -> KafkaConfig:
        names = (f"{self._name}.{run}.{kind}" for kind in ("events", "decisions", "dead", "checkpoints"))
        own = Topics(*names)
        topics = own if events is None else Topics(events, own.decisions, own.dead_letters, own.checkpoints)
        return KafkaConfig(self._bench.bootstrap, f"{self._name}.{run}", "bench", topics, static_membership=False)


def _replies(values: list[bytes]) -> Replies:
    """Of the size of what a worker writes."""
    proof = Proof(10**6, "0" * 32, "0" * 32)
    position = Position(10**5, Pointer(10**4, 1, 3, 10**5 - 10**4, "0" * 32), proof)
    return Replies(values, b"100000", encode_position(position))


def _per_event(found: Measured, count: int) -> dict[str, float]:
    return {name: 1e6 * spent / count for name, spent in found.stages.items()}


def _quantile(values: list[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]
