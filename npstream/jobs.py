"""Independent jobs on several processes, each result on disk as soon as it is there.

Results are the rows of one CSV. `key` is a digest of all that determines a job's
rows: settings, data, algorithm. A column `of`, where there is one, says how many
rows its job has; without it a job has one. A job is done when all its rows are
there; a torn tail is dropped and run again.
"""

import csv
import io
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from npstream.errors import Fatal, UsageError

ResultRow = Mapping[str, str | int | float]


class Job(Protocol):
    """One independent piece of work. Picklable; `run` depends on nothing but its fields and what was prepared."""

    @property
    def key(self) -> str:
        """Digest of everything that determines the rows."""

    def run(self) -> Sequence[ResultRow]:
        """Do the work."""


AnyJob = TypeVar("AnyJob", bound=Job)
Item = TypeVar("Item")
Returned = TypeVar("Returned")


class Results:
    """The rows of one file. Reads what is there when built; every `append` is on disk when it returns."""

    def __init__(self, path: Path, columns: Sequence[str], *, fresh: bool = False) -> None:
        """Open or create `path`; `fresh` forgets what it holds.

        Raises `UsageError` when it cannot be written, or has other columns: then it belongs to something else.
        """
        self._path = path
        self._columns = ("key", *columns)
        self._rows: dict[str, list[dict[str, str]]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not fresh:
                self._read()
            self._rewrite()
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; choose another place with --out") from error

    def __contains__(self, key: str) -> bool:
        """Whether this job is done."""
        return key in self._rows

    def rows(self, keys: Iterable[str]) -> list[dict[str, str]]:
        """The rows of these jobs, in the order of the keys. Values are text, exactly as in the file."""
        return [row for key in keys for row in self._rows[key]]

    def append(self, key: str, rows: Sequence[ResultRow]) -> None:
        """Keep the rows of a finished job."""
        own = {"key": key, "of": str(len(rows))} if "of" in self._columns else {"key": key}
        lines = [{**own, **{name: _text(row[name]) for name in row}} for row in rows]
        with self._path.open("a", newline="") as file:
            file.write(self._csv(lines))
            file.flush()
            os.fsync(file.fileno())
        self._rows[key] = lines

    def _read(self) -> None:
        # A last line without its end may be a number cut short.
        whole, _, _ = self._path.read_text(errors="replace").rpartition("\n")
        reader = csv.DictReader(io.StringIO(whole))
        if reader.fieldnames is None:
            return
        if tuple(reader.fieldnames) != self._columns:
            raise UsageError(
                f"{self._path} has other columns: it was written by another version or for another purpose; "
                "start over with --fresh, or choose another place with --out"
            )
        complete = [row for row in reader if None not in row and None not in row.values()]
        found = Counter(row["key"] for row in complete)
        for row in complete:
            if row.get("of", "1") == str(found[row["key"]]):
                self._rows.setdefault(row["key"], []).append(row)

    def _rewrite(self) -> None:
        """Leave only finished jobs in the file; the old one stays until the new one is complete."""
        beside = self._path.with_name(f"{self._path.name}.part")
        beside.write_text(",".join(self._columns) + "\n" + self._csv(self.rows(self._rows)))
        beside.replace(self._path)

    def _csv(self, rows: Iterable[Mapping[str, str]]) -> str:
        buffer = io.StringIO()
        csv.DictWriter(buffer, self._columns, lineterminator="\n").writerows(rows)
        return buffer.getvalue()


def _text(value: str | int | float) -> str:
    return repr(float(value)) if isinstance(value, float) else str(value)


def _nothing() -> None:
    """What most jobs have to prepare."""


class Workers:
    """Runs jobs in `processes` others, or in this process when it is 1. `prepare` is called once in each.

    With `here` this process is one of them: for work that is half done before another process has started.

    Left by an exception, an interrupt among them, it ends what is under way: that
    may have minutes to go, and nobody will read its rows.
    """

    def __init__(self, processes: int, prepare: Callable[[], None] = _nothing, *, here: bool = False) -> None:
        self._here = here or processes <= 1
        self._processes = processes - self._here
        self._prepare = prepare
        self._others = set(multiprocessing.active_children())
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Workers":
        if self._here:
            self._prepare()
        if self._processes < 1:
            return self
        # Spawned, not forked: a forked child of a process with numba or BLAS threads may hang.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self._processes, context, _start, (self._prepare,))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is None:
            return
        if kind is not None:
            for process in set(multiprocessing.active_children()) - self._others:
                process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def run(self, jobs: Iterable[AnyJob], results: Results) -> Iterator[AnyJob]:
        """Run jobs and keep their rows; yields each when they are on disk, in any order.

        An exception of a job ends the run, and what was finished before stays.
        Raises `Fatal` when a process dies.
        """
        for job, rows in self.each(_run, jobs):
            results.append(job.key, rows)
            yield job

    def each(self, function: Callable[[Item], Returned], items: Iterable[Item]) -> Iterator[tuple[Item, Returned]]:
        """Call a function for each item; yields both as results are known, in any order. Raises as `run` does."""
        if self._pool is None:
            yield from ((item, function(item)) for item in items)
            return
        left = iter(items)
        running: dict[Future[Returned], Item] = {}
        try:
            while True:
                # Two for each process: none waits for this one, and only so many results are held in memory.
                for item in islice(left, 2 * self._processes - len(running)):
                    running[self._pool.submit(function, item)] = item
                if not running:
                    return
                if self._here and not any(map(Future.done, running)) and (own := [*islice(left, 1)]):
                    yield own[0], function(own[0])
                    continue
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                # All that ended together is handed on before anything else can go wrong; failures come last.
                for future in sorted(ended, key=lambda future: future.exception() is not None):
                    yield running.pop(future), future.result()
        except BrokenProcessPool:
            raise Fatal("a process died, probably because memory ran out; use fewer --jobs or less data") from None


def _start(prepare: Callable[[], None]) -> None:
    """In a new process: Ctrl-C reaches every process of a terminal, and only the one that started it should react."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare()


def _run(job: Job) -> Sequence[ResultRow]:
    return job.run()
