"""Where the time of a worker goes: a stopwatch around the public steps of its path, in a process of its own."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from npstream.codec.decoder import EventDecoder
from npstream.kafka import KafkaBroker
from npstream.model import Model
from npstream.port import Broker, FinishCommit, Listener
from npstream.records import Batch, Pointer, Share
from npstream.worker import PartitionTask

STAGES = ("consume", "decode", "learn", "encode", "produce", "commit")


class Stopwatch:
    """Seconds by name."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("decode", "learn", "process", "consume", "publish"), 0.0)
        self.running = False

    @contextmanager
    def around(self, *steps: tuple[type, str, str]) -> Iterator[None]:
        """Time (class, method, name) steps while the block lasts; a few calls a batch, so it costs nothing."""
        honest = [(owner, method, getattr(owner, method)) for owner, method, _ in steps]
        for (owner, method, step), (_, _, name) in zip(honest, steps, strict=True):
            setattr(owner, method, self._timed(step, name))
        try:
            yield
        finally:
            for owner, method, step in honest:
                setattr(owner, method, step)

    def _timed(self, step: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return step(*arguments, **named)
            finally:
                self.add(name, time.perf_counter() - began)

        return timed

    def add(self, name: str, seconds: float) -> None:
        """Count, once records flow."""
        if self.running:
            self.seconds[name] += seconds

    def stages(self, produce_s: float) -> dict[str, float]:
        """Seconds of each stage; what is neither decoding nor learning in a batch's processing is encoding."""
        spent = self.seconds
        return {
            "consume": spent["consume"],
            "decode": spent["decode"],
            "learn": spent["learn"],
            "encode": spent["process"] - spent["decode"] - spent["learn"],
            "produce": produce_s,
            "commit": spent["publish"] - produce_s,
        }


PROCESSING = ((EventDecoder, "decode", "decode"), (Model, "run", "learn"), (PartitionTask, "process", "process"))


class TimedBroker:
    """A Kafka broker with a stopwatch; `started` is when the first batch was there.

    `port` is what the worker uses: the broker itself, or what reads its values by their schemas.
    """

    def __init__(self, broker: KafkaBroker, port: Broker, watch: Stopwatch) -> None:
        self._kafka = broker
        self._broker = port
        self._watch = watch
        self.state = broker.state
        self.started: float | None = None
        self.ended = 0.0
        self.cpu_s = 0.0
        self._busy = 0.0

    @property
    def produce_s(self) -> float:
        """Seconds spent on handing records to the client."""
        return self._kafka.produce_s

    def subscribe(self, listener: Listener) -> None:
        """Join the group."""
        self._broker.subscribe(listener)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Wait for records."""
        began = time.perf_counter()
        batches = self._broker.poll(max_records, timeout_s)
        now = time.perf_counter()
        self._watch.add("consume", now - began)
        if batches and self.started is None:
            self.started = now
            self._busy = time.process_time()
            self._watch.running = True
        return batches

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        """Publish."""
        return self.start_commit(shares)()

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        """Begin to publish; waiting for its end counts as well, what is computed before does not."""
        began = time.perf_counter()
        finish = self._broker.start_commit(shares)
        self._watch.add("publish", time.perf_counter() - began)
        return lambda: self._finished(finish)

    def _finished(self, finish: FinishCommit) -> dict[int, Pointer]:
        began = time.perf_counter()
        pointers = finish()
        self.ended, self.cpu_s = time.perf_counter(), time.process_time() - self._busy
        self._watch.add("publish", self.ended - began)
        return pointers

    def close(self, timeout_s: float) -> None:
        """Leave."""
        self._watch.running = False
        self._broker.close(timeout_s)

    def abandon(self) -> None:
        """Drop everything."""
        self._broker.abandon()
