"""A worker with short limits: `python -m tests.operations.alive_worker SETTINGS.yaml START_S MAX_AGE_S STUCK_S [held]`.

Everything is as in `npstream run`, except how long the start and a turn may take.
SIGUSR1 makes the next poll of the broker hang forever, as a client call might. A held worker stays
in its start, as one that compiles, until SIGUSR2.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import structlog

from npstream import __version__, app
from npstream.backend import backend_of
from npstream.logs import configure
from npstream.model import ALGORITHM
from npstream.monitor.dashboard import Dashboard, HttpConfig
from npstream.monitor.status import Identity
from npstream.observe import Observer
from npstream.port import Broker
from npstream.settings import Settings, load
from npstream.worker import Worker
from npstream.worker.warm import warm_up

HANG = threading.Event()
GO_ON = threading.Event()


class Hanging:
    """A broker whose poll never comes back once it hangs; everything else is the broker's own."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def poll(self, max_records: int, timeout_s: float) -> Any:
        """As the broker's, or never."""
        if HANG.is_set():
            a_call_that_never_returns()
        return self._broker.poll(max_records, timeout_s)


def a_call_that_never_returns() -> None:
    """Named for the stack that the watchdog writes."""
    threading.Event().wait()


def main(path: Path, start_s: float, max_age_s: float, stuck_s: float, *, held: bool) -> None:
    """Run until SIGTERM."""
    ctypes.CDLL(None).prctl(1, 9)  # die with the test, however that ends
    settings = load(path, dict(os.environ), ())
    configure("info", "json", sys.stdout, time.monotonic)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGUSR1, lambda *_: HANG.set())
    signal.signal(signal.SIGUSR2, lambda *_: GO_ON.set())
    identity = Identity(settings.group, settings.topic_names().events, "worker", __version__, ALGORITHM)
    http = HttpConfig("127.0.0.1", 0, start_s=start_s, max_age_s=max_age_s, stuck_s=stuck_s)
    dashboard = Dashboard(http, identity, time.monotonic, time.time, backend_of(settings).open_log)
    dashboard.start()
    structlog.get_logger("npstream").info("starting", page=dashboard.url)
    if held:
        while not GO_ON.wait(0.1):  # a signal that another thread is handed does not wake this one
            pass
    warm_up(settings.partition_config())
    try:
        worker(settings, stop, dashboard.observer).run()
    finally:
        dashboard.stop()


def worker(settings: Settings, stop: threading.Event, observer: Observer) -> Worker:
    """As `app.build_worker`, on a broker that can hang."""
    backend = backend_of(settings)
    return Worker(
        connect=lambda: (Hanging(backend.open_broker(stop, observer)), backend.open_log()),
        origin=app.origin_of(settings),
        limits=settings.worker.limits(),
        clock=time.monotonic,
        stop=stop,
        observer=observer,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(float, sys.argv[2:5]), held=sys.argv[5:] == ["held"])
