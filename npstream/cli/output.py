"""What a command shows and writes: JSON, files, a bar on a terminal, a line when it takes long."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from npstream.errors import UsageError

if TYPE_CHECKING:
    from npstream.partition import PartitionConfig

FIRST_S, EVERY_S = 2.0, 10.0
"""How long progress stays silent, and how often it is printed from then on."""

COMPILING = "compiling the kernel, once on this machine"


def echo_json(document: object) -> None:
    """Print a JSON document."""
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file, its folder too; the old one stays until the new one is complete. Raises `UsageError`."""
    with _unfinished(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(path)


def check_writable(path: Path) -> None:
    """Find out before a long run that its result could not be written. Raises `UsageError`."""
    with _unfinished(path) as beside:
        beside.write_bytes(b"")
        beside.unlink()


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """The file to write before it takes its place. Makes its folder."""
    try:
        if path.is_dir():
            raise UsageError(f"cannot write {path}: it is a folder; name a file")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path.with_name(f"{path.name}.part")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another place") from None


@contextmanager
def progress(
    what: str, total: int | None, *, unit: str = "events", quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with how many more items are done; draws only on a terminal's standard error."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance(done: int) -> None:
            bar.advance(task, done)
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, rate="" if speed is None else f"{speed:,.{0 if speed >= 10 else 1}f} {unit}/s")

        yield advance


@contextmanager
def notified_when_slow(
    notify: Callable[[float], None], *, first_s: float = FIRST_S, every_s: float = EVERY_S
) -> Iterator[None]:
    """Calls `notify` with the seconds so far while the block goes on, from a thread of its own."""
    began, over = time.monotonic(), threading.Event()

    def watch() -> None:
        wait_s = first_s
        while not over.wait(wait_s):
            notify(time.monotonic() - began)
            wait_s = every_s

    watcher = threading.Thread(target=watch, name="slow", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def waiting(what: str, *, quiet: bool = False, first_s: float = FIRST_S) -> Iterator[None]:
    """Says on standard error what takes so long, and for how long it has."""
    if quiet:
        yield
        return
    with notified_when_slow(lambda seconds: click.echo(f"{what}, {seconds:.0f} s so far", err=True), first_s=first_s):
        yield


def compile_kernel(config: "PartitionConfig", *, quiet: bool) -> float:
    """`warm_up`, which says what it does when it takes long; returns the seconds it took."""
    from npstream.worker.warm import warm_up

    with waiting(COMPILING, quiet=quiet):
        return warm_up(config)
