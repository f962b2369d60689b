"""`npstream run`: the worker."""

import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from npstream.cli.options import load_settings, settings_options
from npstream.cli.output import notified_when_slow

if TYPE_CHECKING:
    from npstream.observe import Observer
    from npstream.settings import Settings


@click.command(
    epilog="""\b
Example:
  npstream run --config config/kafka.yaml --set kafka.worker_name=worker-0

\b
SIGTERM and SIGINT finish the batch, write a checkpoint and exit 0.
Exit codes: 0 stopped; 3 settings refused; 4 brokers, rights or topics; 5 state; 6 the loop hung."""
)
@settings_options()
@click.option("--json", "as_json", is_flag=True, help="Log JSON lines, whatever log.format says.")
def run(config: Path, assignments: tuple[str, ...], as_json: bool) -> None:
    """Read events, publish decisions, learn; until stopped."""
    settings = load_settings(config, (*assignments, "log.format=json") if as_json else assignments)

    from npstream import app
    from npstream.backend import backend_of
    from npstream.logs import configure
    from npstream.observe import Observer

    configure(settings.log.level, settings.log.format, sys.stdout, time.monotonic, backend_of(settings).secrets())
    stop = threading.Event()
    _stop_on_signals(stop)
    dashboard = app.build_dashboard(settings)
    if dashboard is None:
        _work(settings, stop, Observer(), None)
        return
    dashboard.start()
    try:
        _work(settings, stop, dashboard.observer, dashboard.url)
    finally:
        dashboard.stop()


def _work(settings: "Settings", stop: threading.Event, observer: "Observer", page: str | None) -> None:
    import structlog

    from npstream import app
    from npstream.worker.warm import warm_up

    logger = structlog.get_logger("npstream")
    with notified_when_slow(lambda passed: logger.info("compiling", seconds=round(passed))):
        seconds = warm_up(settings.partition_config())
    logger.info(
        "starting",
        group=settings.group,
        topic=settings.topic_names().events,
        compiled_s=round(seconds, 2),
        page=page,
    )
    app.build_worker(settings, stop, observer).run()


def _stop_on_signals(stop: threading.Event) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()  # A handler may only set a flag: raising inside the client loses records.

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
