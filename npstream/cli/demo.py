"""`npstream demo`: the first minute."""

import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npstream.cli.exits import FAILED
from npstream.cli.options import json_option
from npstream.cli.output import check_writable, compile_kernel, echo_json, waiting, write_file

if TYPE_CHECKING:
    from npstream.demo.live import Feeder
    from npstream.demo.stream import DemoStream
    from npstream.monitor.dashboard import Dashboard
    from npstream.settings import Settings

_PARTITIONS = 2
_PATIENCE_S = 120.0
"""Time that the worker may take beyond the feeding before the demo gives up: a slow machine compiles for a minute."""
_QUIET_S = 2.0
"""Time between two lines on a pipe."""


@click.command(
    epilog="""\b
Examples:
  npstream demo
  npstream demo --kafka localhost:9092
  npstream demo --data demo.csv

\b
Ctrl-C lets the worker commit and stop. On a broker the four topics stay, under a name of their own.
Exit codes: 0 done; 1 the replay does not give the live decisions; 2 a file cannot be
written; 4 the broker cannot be used; 130 stopped by Ctrl-C."""
)
@click.option("--events", type=click.IntRange(4000), default=40_000, show_default=True, help="Length of the stream.")
@click.option("--seconds", type=click.FloatRange(1), default=15.0, show_default=True, help="Time to feed it in.")
@click.option("--tau", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.02, show_default=True)
@click.option("--seed", type=int, default=7, show_default=True, help="Another seed is another stream.")
@click.option("--kafka", metavar="ADDRESS", help="Run on this broker instead of the embedded log.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the live page; 0 takes a free one.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="For the report.")
@click.option("--data", type=click.Path(path_type=Path), help="Only write the stream to this .csv file.")
@json_option
def demo(
    events: int,
    seconds: float,
    tau: float,
    seed: int,
    kafka: str | None,
    port: int,
    out: Path,
    data: Path | None,
    as_json: bool,
) -> None:
    """Run the real worker over a generated stream that drifts, and show that the rate holds.

    Two features, targets inside a ring of non-targets, labels 300 events late;
    half way the data changes. No Kafka needed.
    """
    from npstream.demo.stream import make_stream

    if data is not None:
        _write_data(data, make_stream(events, delay=300, seed=seed), as_json)
        return
    check_writable(out / "demo.html")
    stream = make_stream(events, delay=300, seed=seed)
    with _prepared(kafka, tau, port) as settings:
        live = _run_live(settings, stream, seconds, quiet=as_json)
        same = _show(settings, stream, out, live, as_json)
    if kafka is not None and not as_json:
        topic = settings.topic_names().events
        click.echo(f"topics {topic} and {topic}-... stay on the broker")
    if not same:
        raise click.exceptions.Exit(FAILED)


def _write_data(path: Path, stream: "DemoStream", as_json: bool) -> None:
    from npstream.errors import UsageError

    if path.suffix != ".csv":
        raise UsageError(f"{path}: the data set is written as CSV; give the file a name that ends in .csv")
    write_file(path, stream.to_csv())
    if as_json:
        echo_json({"events": len(stream.y), "data": str(path)})
    else:
        click.echo(f"{len(stream.y)} events with columns id, x1, x2 and y: {path}")


@contextmanager
def _prepared(kafka: str | None, tau: float, port: int) -> Iterator["Settings"]:
    """Settings with fresh topics, on a broker or in a temporary file."""
    from npstream.backend import backend_of
    from npstream.settings import from_mapping

    name = f"npstream-demo-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="npstream-demo-") as folder:
        on_kafka = {"kafka": {"bootstrap": kafka, "group": name, "worker_name": "demo"}}
        in_file = {"embedded": {"path": f"{folder}/log.db"}}
        common: dict[str, Any] = {
            "topics": {"events": name},
            "model": {"d": 2, "tau": tau},
            "http": {"port": port},
            "log": {"level": "error"},
        }
        settings = from_mapping(common | (in_file if kafka is None else on_kafka))
        backend_of(settings).plan_topics(_PARTITIONS, None, None).apply()
        yield settings


def _run_live(settings: "Settings", stream: "DemoStream", seconds: float, *, quiet: bool) -> list[str]:
    """Feed and work until all is decided; return the committed proof of each partition."""
    from npstream import app
    from npstream.backend import backend_of
    from npstream.demo.live import Feeder, WorkerThread
    from npstream.logs import configure

    configure(settings.log.level, settings.log.format, sys.stderr, time.monotonic)
    dashboard = app.build_dashboard(settings)
    assert dashboard is not None
    dashboard.start()  # before its address is printed: compiling may take a minute
    _say(f"live page: {dashboard.url} (while this runs)", quiet)
    compiled_s = compile_kernel(settings.partition_config(), quiet=quiet)
    _say(f"kernel ready after {compiled_s:.1f} s", quiet)
    stop = threading.Event()
    log = backend_of(settings).open_log()
    feeder = Feeder(log, stream.messages(), stream.total / seconds, stop)
    worker = WorkerThread(app.build_worker(settings, stop, dashboard.observer).run)
    try:
        feeder.start()
        worker.start()
        _watch(dashboard, feeder, worker, _Line(settings.model.tau, quiet), time.monotonic() + seconds + _PATIENCE_S)
    finally:
        stop.set()
        worker.join(30)
        feeder.join(30)
        dashboard.stop()
        log.close()
    for failed in (worker.error, feeder.error):
        if failed is not None:
            raise failed
    return _proofs(settings)


def _watch(dashboard: "Dashboard", feeder: "Feeder", worker: threading.Thread, line: "_Line", deadline: float) -> None:
    """Until everything is decided, or the worker ends. Raises `Fatal` when it takes too long."""
    from npstream.demo.live import caught_up
    from npstream.errors import Fatal

    while worker.is_alive():
        status = dashboard.status()
        if caught_up(status, feeder):
            break
        if time.monotonic() > deadline:
            raise Fatal("the worker does not keep up with the stream; give it more time with --seconds")
        line.show(status)
        feeder.done.wait(0.5) if not feeder.done.is_set() else worker.join(0.1)
    line.end()


class _Line:
    """The state so far: one line that is written over on a terminal, a line now and then on a pipe."""

    def __init__(self, tau: float, quiet: bool) -> None:
        self._tau = tau
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._shown_at: float | None = None
        self._events = 0

    def show(self, status: dict[str, Any]) -> None:
        from npstream.demo.live import status_line

        now = time.monotonic()
        since = None if self._shown_at is None else now - self._shown_at
        if self._quiet or (not self._terminal and since is not None and since < _QUIET_S):
            return
        events = sum(part.get("events", 0) for part in status["partitions"])
        text = status_line(status, self._tau, 0.0 if since is None else (events - self._events) / max(since, 1e-9))
        click.echo(f"\r\x1b[K{text}" if self._terminal else text, nl=not self._terminal, err=True)
        self._shown_at, self._events = now, events

    def end(self) -> None:
        if self._terminal and not self._quiet:
            click.echo(err=True)


def _proofs(settings: "Settings") -> list[str]:
    from npstream.backend import backend_of

    with closing(backend_of(settings).open_state()) as state:
        positions = [state.committed(partition) for partition in range(_PARTITIONS)]
    return [position.proof.chain for position in positions if position is not None]


def _show(settings: "Settings", stream: "DemoStream", out: Path, live: list[str], as_json: bool) -> bool:
    """Replay what was decided, beside its rivals; return whether the replay gave the live decisions."""
    from npstream.backend import backend_of
    from npstream.cli.ranges import Range, topic_source
    from npstream.demo.story import make_story, picture, report, table, to_json
    from npstream.report.page import text_table

    topic = settings.topic_names().events
    with closing(backend_of(settings).open_log()) as log, waiting("replaying it beside its rivals", quiet=as_json):
        story = make_story(settings.partition_config(), topic_source(log, topic, Range()), stream)
    write_file(out / "demo.svg", picture(story))
    write_file(out / "demo.html", report(story))
    same = list(story.chains) == live
    if as_json:
        echo_json({"identical": same, "topic": topic, "report": str(out / "demo.html"), **to_json(story)})
        return same
    click.echo(text_table(*table(story)))
    click.echo(f"replayed: decisions are {'identical, bit for bit' if same else 'NOT identical'}")
    click.echo(f"picture: {out / 'demo.svg'}   report: {out / 'demo.html'}")
    return same


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        click.echo(text, err=True)
