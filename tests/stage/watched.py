"""A worker on a stage with its dashboard, for as long as a test looks at it."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from npstream.monitor.dashboard import Dashboard, HttpConfig
from npstream.partition import PartitionConfig
from npstream.port import Broker
from npstream.records import Record
from npstream.secrets import Secrets
from npstream.worker import Cadence, Limits
from npstream.worker.warm import warm_up
from tests.monitor.builders import IDENTITY, Sample, config, samples
from tests.stage.running import RunningWorker
from tests.stage.stage import on_file

_WAIT_S = 60.0


class Watched:
    """Runs on a thread, with its dashboard, from `start` to `stop`, or for the length of a block."""

    def __init__(
        self,
        path: Path,
        partitions: int = 1,
        *,
        using: PartitionConfig | None = None,
        http: HttpConfig | None = None,
        secrets: Secrets | None = None,
        wrap: Callable[[Broker], Broker] = lambda broker: broker,
    ) -> None:
        self.stage = on_file(path, partitions)
        self._config = using or config()
        self._http = http or HttpConfig("127.0.0.1", 0)
        self._secrets = secrets or Secrets()
        self._wrap = wrap

    def send(self, values: Sequence[bytes | None], partition: int = 0, timestamp_ms: int | None = None) -> None:
        """Append events, by default of this moment."""
        at_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        self.stage.feed(partition, [Record(0, at_ms, None, value) for value in values])

    def start(self) -> "Watched":
        """Run a worker on a thread of its own, compiled before anybody waits for it."""
        warm_up(self._config)
        stop = threading.Event()
        log = self.stage.log
        self.dashboard = Dashboard(self._http, IDENTITY, time.monotonic, time.time, log, self._secrets)
        cadence = Cadence(every_events=500, every_seconds=1e9)
        observer = self.dashboard.observer
        worker = self.stage.worker(self._config, stop, observer, Limits(poll_s=0.01), cadence=cadence, wrap=self._wrap)
        self.dashboard.start()
        self._running = RunningWorker(worker, stop).start()
        return self

    def stop(self) -> None:
        """Stop politely; raises what ended the worker, if anything did."""
        self._running.stop()
        self.dashboard.stop()
        if self._running.ended is not None:
            raise self._running.ended

    def __enter__(self) -> "Watched":
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
