"""A worker on an embedded log with its dashboard, for as long as a test looks at it."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from npstream.codec.decoder import EventConfig
from npstream.model import ALGORITHM, Params
from npstream.monitor.dashboard import Dashboard, HttpConfig
from npstream.monitor.status import Identity
from npstream.observe import Reading
from npstream.partition import LabelConfig, PartitionConfig
from npstream.partition.counters import Tally
from npstream.port import Broker
from npstream.records import Phase, Record
from npstream.secrets import Secrets
from npstream.worker import Cadence, Limits, Origin, Worker
from npstream.worker.warm import warm_up
from tests.worker.bench import TOPICS, Bench
from tests.worker.running import RunningWorker

IDENTITY = Identity("g", "events", "worker-0", "0.0.0", ALGORITHM)
_WAIT_S = 60.0


Sample = tuple[str, frozenset[tuple[str, str]]]


def sample(name: str, **labels: str) -> Sample:
    """A sample's name and labels, without the two that all of them share."""
    return name, frozenset((key, value) for key, value in labels.items() if key not in ("group", "topic"))


def samples(text: str) -> dict[Sample, float]:
    """Every sample of a scrape."""
    families = text_string_to_metric_families(text)
    return {sample(s.name, **s.labels): s.value for family in families for s in family.samples}


def reading(**changes: Any) -> Reading:
    """A partition that has just begun, except for `changes`."""
    fields: dict[str, Any] = {
        "partition": 0,
        "phase": Phase.LIVE,
        "next_offset": 0,
        "replay_to": 0,
        "saved_offset": 0,
        "counts": Tally().to_dict(),
        "bad_events": {},
        "preset": "plus",
        "control": "fpr",
        "learning": True,
        "d": 2,
        "features": None,
        "tau": 0.1,
        "t": 0,
        "negatives": 0,
        "positives": 0,
        "false_alarms": 0,
        "detections": 0,
        "threshold": 0.0,
        "gamma": 1.0,
        "budget_left": 20.0,
        "outstanding": 0,
        "pending": 0,
        "warming_up": True,
    }
    return Reading(**(fields | changes))


def config(d: int = 2, **changes: object) -> PartitionConfig:
    """A small model at tau 0.1."""
    fields: dict[str, object] = {
        "params": Params(d=d, D=8, tau=0.1),
        "events": EventConfig(d=d),
        "labels": LabelConfig(buffer_max=50),
    }
    return PartitionConfig(**(fields | changes))  # type: ignore[arg-type]


def events(n: int, seed: int = 0, d: int = 2) -> list[bytes]:
    """Labelled events whose targets lie shifted."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.3, 1, -1)
    rows = rng.normal(0.0, 1.0, (n, d)) + np.where(labels > 0, 2.0, 0.0)[:, None]
    return [json.dumps({"x": row.tolist(), "y": int(y)}).encode() for row, y in zip(rows, labels, strict=True)]


@dataclass
class WatchedBench(Bench):
    """A bench whose worker runs on a thread, with its dashboard, from `start` to `stop`."""

    using: PartitionConfig = field(default_factory=config)
    http: HttpConfig = field(default_factory=lambda: HttpConfig("127.0.0.1", 0))
    secrets: Secrets = field(default_factory=Secrets)
    wrap: Callable[[Broker], Broker] = lambda broker: broker

    def send(self, values: Sequence[bytes | None], partition: int = 0, timestamp_ms: int | None = None) -> None:
        """Append events, by default of this moment."""
        at_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        self.feed(partition, [Record(0, at_ms, None, value) for value in values])

    def start(self) -> "WatchedBench":
        """Run a worker on a thread of its own, compiled before anybody waits for it."""
        warm_up(self.using)
        stop = threading.Event()
        self.dashboard = Dashboard(self.http, IDENTITY, time.monotonic, time.time, self.log, self.secrets)
        origin = Origin("g", TOPICS.events, self.using, Cadence(every_events=500, every_seconds=1e9))
        limits = Limits(poll_s=0.01)
        observer = self.dashboard.observer
        worker = Worker(lambda: self.connect(self.wrap), origin, limits, time.monotonic, stop, observer)
        self.dashboard.start()
        self._running = RunningWorker(worker, stop).start()
        return self

    def stop(self) -> None:
        """Stop politely; raises what ended the worker, if anything did."""
        self._running.stop()
        self.dashboard.stop()
        if self._running.ended is not None:
            raise self._running.ended

    def __enter__(self) -> "WatchedBench":
        return self.start()

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.stop()
        except BaseException:
            if kind is None:
                raise

    def get(self, path: str) -> tuple[int, str]:
        """Status code and body of a response."""
        try:
            with urllib.request.urlopen(self.dashboard.url + path, timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def status(self) -> dict[str, Any]:
        """What /status says."""
        document: dict[str, Any] = json.loads(self.get("status")[1])
        return document

    def metrics(self) -> dict[Sample, float]:
        """Every sample of a scrape."""
        return samples(self.get("metrics")[1])

    def wait_for(self, what: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Poll the status until `what` holds of it, and return it."""
        deadline = time.monotonic() + _WAIT_S
        while True:
            status = self.status()
            if what(status):
                return status
            assert time.monotonic() < deadline, f"not within {_WAIT_S:g} s: {status}; {self._running.ended!r}"
            time.sleep(0.02)


def handled(*counts: int) -> Callable[[dict[str, Any]], bool]:
    """Whether each partition has handled this many events."""
    return lambda status: [p.get("events") for p in status["partitions"]] == list(counts)
