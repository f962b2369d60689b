"""`npstream demo`: the first minute."""

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npstream.cli.options import echo_json, json_option

if TYPE_CHECKING:
    from npstream.demo.live import Feeder
    from npstream.demo.stream import DemoStream
    from npstream.ops.dashboard import Dashboard
    from npstream.settings import Settings

_PARTITIONS = 2


@click.command(
    epilog="""\b
Examples:
  npstream demo
  npstream demo --kafka localhost:9092

\b
Exit codes: 0 done; 4 the broker cannot be used."""
)
@click.option("--events", type=click.IntRange(4000), default=40_000, show_default=True, help="Length of the stream.")
@click.option("--seconds", type=click.FloatRange(1), default=15.0, show_default=True, help="Time to feed it in.")
@click.option("--tau", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.02, show_default=True)
@click.option("--seed", type=int, default=7, show_default=True, help="Another seed is another stream.")
@click.option("--kafka", metavar="ADDRESS", help="Run on this broker instead of the embedded log.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the live page; 0 takes a free one.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="For the report.")
@json_option
def demo(
    events: int, seconds: float, tau: float, seed: int, kafka: str | None, port: int, out: Path, as_json: bool
) -> None:
    """Run the real worker over a generated stream that drifts, and show that the rate holds.

    Two features, targets inside a ring of non-targets, labels 300 events late;
    half way everything moves. No Kafka needed.
    """
    from npstream.demo.stream import make_stream

    stream = make_stream(events, delay=300, seed=seed)
    with _prepared(kafka, tau, port) as settings:
        replayed = _run_live(settings, stream, stream.total / seconds, quiet=as_json)
        _tell(settings, stream, out, replayed, as_json)


@contextmanager
def _prepared(kafka: str | None, tau: float, port: int) -> Iterator["Settings"]:
    """Settings with fresh topics, on a broker or in a temporary file."""
    from npstream.settings import from_mapping

    common: dict[str, Any] = {
        "topics": {"events": f"npstream-demo-{int(time.time())}"},
        "model": {"d": 2, "tau": tau},
        "http": {"port": port},
        "log": {"level": "error"},
    }
    if kafka is not None:
        topic = common["topics"]["events"]
        settings = from_mapping({"kafka": {"bootstrap": kafka, "group": topic, "slot": "demo"}, **common})
        _create_on_kafka(settings)
        yield settings
        return
    from npstream.embedded import create_topics

    with tempfile.TemporaryDirectory(prefix="npstream-demo-") as folder:
        path = Path(folder) / "log.db"
        settings = from_mapping({"embedded": {"path": str(path), "partitions": _PARTITIONS}, **common})
        create_topics(path, settings.topic_names(), _PARTITIONS)
        yield settings


def _create_on_kafka(settings: "Settings") -> None:
    from npstream.kafka.admin import Admin
    from npstream.kafka.blueprint import Wishes

    assert settings.kafka is not None
    admin = Admin(settings.kafka.config(settings.topic_names()))
    admin.prepare(admin.plan(Wishes(partitions=_PARTITIONS)))


def _run_live(settings: "Settings", stream: "DemoStream", rate: float, *, quiet: bool) -> list[str]:
    """Feed and work until all is decided; answer the committed proof of each partition."""
    from npstream import app
    from npstream.demo.live import Feeder, WorkerThread
    from npstream.ops.logs import configure

    configure(settings.log.level, settings.log.format, sys.stderr, time.monotonic)
    dashboard = app.build_dashboard(settings)
    assert dashboard is not None
    _say(f"live page: {dashboard.url} (while this runs)", quiet)
    compiled_s = app.warm_up(settings.partition_config())
    _say(f"kernel ready after {compiled_s:.1f} s", quiet)
    stop = threading.Event()
    log = app.open_log(settings)
    feeder = Feeder(log, stream.messages(), rate, stop)
    worker = WorkerThread(app.build_worker(settings, stop, dashboard.observer).run)
    dashboard.start()
    try:
        feeder.start()
        worker.start()
        _watch(dashboard, feeder, worker, settings.model.tau, quiet)
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


def _watch(dashboard: "Dashboard", feeder: "Feeder", worker: threading.Thread, tau: float, quiet: bool) -> None:
    from npstream.demo.live import caught_up, status_line

    live = sys.stderr.isatty() and not quiet
    started = last = time.monotonic()
    before = 0
    while worker.is_alive():
        status = dashboard.status()
        if caught_up(status, feeder):
            break
        now = time.monotonic()
        events = sum(part.get("events", 0) for part in status["partitions"])
        if live or (not quiet and now - last >= 2.0) or last == started:
            line = status_line(status, tau, (events - before) / max(now - last, 1e-9))
            click.echo(f"\r\x1b[K{line}" if live else line, nl=not live, err=True) if not quiet else None
            last, before = now, events
        feeder.done.wait(0.5) if not feeder.done.is_set() else worker.join(0.1)
    if live:
        click.echo(err=True)


def _proofs(settings: "Settings") -> list[str]:
    from npstream import app
    from npstream.observe import Observer

    broker = app.open_broker(settings, threading.Event(), Observer())
    try:
        positions = [broker.committed(partition) for partition in range(_PARTITIONS)]
    finally:
        broker.abandon()
    return [position.proof.chain for position in positions if position is not None]


def _tell(settings: "Settings", stream: "DemoStream", out: Path, live: list[str], as_json: bool) -> None:
    from npstream import app
    from npstream.backtest.inputs import Range, topic_source
    from npstream.demo.story import picture, report, table, tell
    from npstream.page import text_table

    log = app.open_log(settings)
    try:
        story = tell(settings.partition_config(), topic_source(log, settings.topic_names().events, Range()), stream)
    finally:
        log.close()
    out.mkdir(parents=True, exist_ok=True)
    (out / "demo.svg").write_text(picture(story))
    (out / "demo.html").write_text(report(story))
    header, rows = table(story)
    same = list(story.digests) == live
    if as_json:
        echo_json({"tau": story.tau, "identical": same, "ways": [dict(zip(header, row, strict=True)) for row in rows]})
        return
    click.echo(text_table(header, rows))
    click.echo(f"replayed: decisions are {'identical, bit for bit' if same else 'NOT identical'}")
    click.echo(f"picture: {out / 'demo.svg'}   report: {out / 'demo.html'}")


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        click.echo(text, err=True)
