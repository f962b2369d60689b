"""The two loops that are compared, each run in a process of its own."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Literal

import structlog

from npstream.bench.bare import BareLoop, Replies
from npstream.bench.events import schema_reader
from npstream.bench.stages import PROCESSING, Stopwatch, TimedBroker
from npstream.errors import NpstreamError, Retryable
from npstream.kafka import KafkaBroker, KafkaConfig, KafkaLog
from npstream.observe import Observer
from npstream.partition import PartitionConfig
from npstream.port import Broker, Log
from npstream.records import Share
from npstream.registry.topics import DocumentBroker
from npstream.worker import Cadence, Limits, Origin, Worker
from npstream.worker.warm import warm_up

LoopKind = Literal["worker", "bare"]

_START_S = 60.0
_END_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSpec:
    """One run of one loop. With `ends` it runs to those offsets, else until it is stopped."""

    kind: LoopKind
    kafka: KafkaConfig
    config: PartitionConfig
    replies: Replies
    limits: Limits
    ends: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """How long a run took from its first batch to its last commit, the processor time of all threads meanwhile, and a
    worker's seconds by stage."""

    seconds: float
    cpu_s: float
    stages: Mapping[str, float]


class LoopProcess:
    """A loop in a child process. Use as a context; leaving it ends the child."""

    def __init__(self, spec: LoopSpec) -> None:
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(spec, theirs), daemon=True)

    def __enter__(self) -> "LoopProcess":
        self._process.start()
        return self

    def result(self, timeout_s: float) -> Measured:
        """Wait for the run to end. Raises `Retryable` when it does not, or ended with an error."""
        if not self._pipe.poll(timeout_s):
            raise Retryable(f"a measured loop did not end within {timeout_s:g} s: give it fewer events")
        found = self._pipe.recv()
        if isinstance(found, str):
            raise Retryable(f"a measured loop failed: {found}")
        assert isinstance(found, Measured)
        return found

    def stop(self) -> Measured:
        """Ask it to stop, and wait."""
        self._pipe.send("stop")
        return self.result(_END_S)

    def __exit__(self, *error: object) -> None:
        self._process.join(1.0 if error[0] else _END_S)
        self._process.kill()


def _serve(spec: LoopSpec, pipe: Connection) -> None:
    """The child: run, send what was measured or what went wrong."""
    logging.getLogger("npstream.kafka").setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    stop = threading.Event()
    threading.Thread(target=_await_stop, args=(pipe, stop), daemon=True).start()
    warm_up(spec.config)
    run: Callable[[LoopSpec, threading.Event], Measured] = _run_worker if spec.kind == "worker" else _run_bare
    try:
        pipe.send(run(spec, stop))
    except NpstreamError as error:
        pipe.send(str(error))


def _await_stop(pipe: Connection, stop: threading.Event) -> None:
    with suppress(EOFError):  # the parent is gone
        pipe.recv()
    stop.set()


def _run_bare(spec: LoopSpec, stop: threading.Event) -> Measured:
    loop = BareLoop(spec.kafka, spec.replies, spec.limits.batch_max, spec.limits.poll_s)
    loop.run(spec.ends, stop, time.perf_counter)
    return Measured(loop.ended - (loop.started or loop.ended), loop.cpu_s, {})


class _Finish(Observer):
    """Stops the worker when every partition is at its end."""

    def __init__(self, ends: Mapping[int, int] | None, stop: threading.Event) -> None:
        self._left = None if ends is None else dict(ends)
        self._stop = stop

    def committed(self, shares: list[Share], seconds: float) -> None:
        """Strike out what has reached its end."""
        if self._left is None:
            return
        for share in shares:
            if share.position.next_offset >= self._left.get(share.partition, 0):
                self._left.pop(share.partition, None)
        if not self._left:
            self._stop.set()


def _run_worker(spec: LoopSpec, stop: threading.Event) -> Measured:
    watch = Stopwatch()
    brokers: list[TimedBroker] = []

    def connect() -> tuple[Broker, Log]:
        kafka = KafkaBroker(spec.kafka, stopping=stop.is_set)
        read = schema_reader(spec.config)
        port = kafka if read is None else DocumentBroker(kafka, read, spec.kafka.topics.events)
        brokers.append(TimedBroker(kafka, port, watch))
        return brokers[-1], KafkaLog(spec.kafka)

    origin = Origin(spec.kafka.group, spec.kafka.topics.events, spec.config, Cadence())
    worker = Worker(connect, origin, spec.limits, time.monotonic, stop, _Finish(spec.ends, stop))
    with watch.around(*PROCESSING):
        worker.run()
    if len(brokers) != 1:
        restarts = f"the worker's session was restarted {len(brokers) - 1} times"
        raise Retryable(f"{restarts}: look at the brokers, then measure again")
    broker = brokers[0]
    return Measured(broker.ended - (broker.started or broker.ended), broker.cpu_s, watch.stages(broker.produce_s))
