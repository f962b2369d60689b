"""Jobs on several processes: results that survive, and runs that go on where they stopped."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from npstream.errors import Fatal, UsageError
from npstream.jobs import Job, ResultRow, Results, Workers

COLUMNS = ("of", "name", "value")


class Stop(Exception):
    """Ends a run in its middle."""


@dataclass(frozen=True)
class Square:
    """A job that leaves a trace of having run."""

    n: int
    trace: Path

    @property
    def key(self) -> str:
        return f"square {self.n}"

    def run(self) -> list[ResultRow]:
        (self.trace / str(self.n)).touch()
        return [{"name": f"{self.n}", "value": self.n**2}, {"name": "half", "value": self.n**2 / 2}]


@dataclass(frozen=True)
class Endless:
    """A job that never ends."""

    key: str = "endless"

    def run(self) -> list[ResultRow]:
        threading.Event().wait()
        raise AssertionError


@dataclass(frozen=True)
class Deadly:
    """A job that kills its process, as a want of memory would."""

    key: str = "deadly"

    def run(self) -> list[ResultRow]:
        os._exit(9)


def some(*values: float) -> list[ResultRow]:
    return [{"name": "n, with comma", "value": value} for value in values]


def numbers(results: Results, *keys: str) -> list[float]:
    return [float(row["value"]) for row in results.rows(keys)]


def run(
    jobs: Iterable[Job], results: Results, processes: int, progress: Callable[[Job], None] = lambda job: None
) -> None:
    with Workers(processes) as workers:
        for job in workers.run(jobs, results):
            assert job.key in results
            progress(job)


def test_rows_come_back_exactly(tmp_path: Path) -> None:
    """What was appended is read again to the last bit, by key, after the file was closed."""
    path = tmp_path / "deep" / "r.csv"
    Results(path, COLUMNS).append("k", some(0.1 + 0.2, 1e-17))
    again = Results(path, COLUMNS)

    assert ("k" in again, "other" in again) == (True, False)
    assert numbers(again, "k") == [0.1 + 0.2, 1e-17]
    assert again.rows(["k"])[0]["name"] == "n, with comma"


@pytest.mark.parametrize("cut", [1, 2, 5, 20, 30])
def test_torn_tail_is_dropped_and_the_rest_kept(cut: int, tmp_path: Path) -> None:
    """A crash in the middle of a write loses that job alone, wherever it tore."""
    path = tmp_path / "r.csv"
    results = Results(path, COLUMNS)
    results.append("first", some(1.0, 2.0))
    results.append("second", some(3.0, 4.0))
    path.write_bytes(path.read_bytes()[:-cut])
    again = Results(path, COLUMNS)

    assert ("first" in again, "second" in again) == (True, False)
    again.append("second", some(3.0, 4.0))
    assert numbers(Results(path, COLUMNS), "first", "second") == [1, 2, 3, 4]


def test_one_row_a_job_needs_no_count(tmp_path: Path) -> None:
    """Without the column `of` a line is a job; a torn line is dropped from the file too."""
    path = tmp_path / "r.csv"
    results = Results(path, ("name", "value"))
    for key in ("a", "b"):
        results.append(key, some(1.5))
    whole = path.read_text()
    path.write_text(whole[:-4])
    again = Results(path, ("name", "value"))

    assert whole.startswith("key,name,value\na,")
    assert ("a" in again, "b" in again) == (True, False)
    assert path.read_text() == "".join(whole.splitlines(keepends=True)[:2])


@pytest.mark.parametrize("text", [None, "a,b\n1,2\n"], ids=["other results", "another file"])
def test_a_file_of_something_else_is_refused_and_stays(tmp_path: Path, text: str | None) -> None:
    """Rows of another kind are never mixed with these, nor overwritten unless asked to."""
    path = tmp_path / "r.csv"
    if text is None:
        Results(path, ("of", "name", "other")).append("k", [{"name": "n", "other": 1}])
    else:
        path.write_text(text)
    before = path.read_text()

    with pytest.raises(UsageError, match="another version or for another purpose; start over with --fresh"):
        Results(path, COLUMNS)
    assert path.read_text() == before
    assert "k" not in Results(path, COLUMNS, fresh=True)
    assert path.read_text() == "key,of,name,value\n"


def test_unwritable_folder_is_refused(tmp_path: Path) -> None:
    """A file in the way of the folder ends with advice, not a traceback."""
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UsageError, match="choose another place with --out"):
        Results(tmp_path / "out" / "r.csv", COLUMNS)


@pytest.mark.parametrize("processes", [1, 2])
def test_failure_ends_the_run_and_keeps_what_was_done(processes: int, tmp_path: Path) -> None:
    """The exception of a job comes out as it is; rows finished before are on disk, and a later run goes on."""
    path = tmp_path / "r.csv"
    run([Square(n, tmp_path) for n in (1, 2)], Results(path, COLUMNS), processes)
    with pytest.raises(FileNotFoundError):
        run([Square(n, tmp_path / "absent") for n in (3, 4)], Results(path, COLUMNS), processes)

    again = Results(path, COLUMNS)
    run([Square(3, tmp_path)], again, processes)
    assert numbers(again, *(f"square {n}" for n in (1, 2, 3))) == [1, 0.5, 4, 2, 9, 4.5]


def test_an_interrupt_keeps_what_is_finished_and_ends_the_rest(tmp_path: Path) -> None:
    """Whoever leaves in the middle has every row that was yielded, and waits for no job that is under way."""
    path = tmp_path / "r.csv"

    def stop(job: Job) -> None:
        raise Stop

    with pytest.raises(Stop):
        run([Endless(), Square(3, tmp_path)], Results(path, COLUMNS), 2, stop)

    assert numbers(Results(path, COLUMNS), "square 3") == [9, 4.5]


def test_a_dead_process_is_reported(tmp_path: Path) -> None:
    """Memory that ran out ends with advice, not a traceback."""
    with pytest.raises(Fatal, match="use fewer --jobs or less data"):
        run([Deadly(), Deadly()], Results(tmp_path / "r.csv", COLUMNS), 2)


def test_jobs_are_taken_as_they_are_needed(tmp_path: Path) -> None:
    """However many jobs there are, only a few are held in memory at once."""
    taken: list[int] = []

    def many() -> Iterator[Square]:
        for n in range(50):
            taken.append(n)
            yield Square(n, tmp_path)

    with Workers(2) as workers:
        finished = workers.run(many(), Results(tmp_path / "r.csv", COLUMNS))
        next(finished)
        assert len(taken) == 4
        assert len([*finished]) == 49


def _where(item: tuple[int, Path]) -> int:
    """The process that this runs in; any but the one that started the others waits until that one has had an item."""
    number, path = item
    if multiprocessing.parent_process() is None:
        (path / str(number)).touch()
    deadline = time.monotonic() + 60
    while not any(path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert any(path.iterdir())
    return os.getpid()


def test_this_process_can_be_one_of_them(tmp_path: Path) -> None:
    """It takes items while others are at work, and every item comes back once."""
    items = [(n, tmp_path) for n in range(20)]
    with Workers(2, here=True) as workers:
        found = dict(workers.each(_where, items))

    assert sorted(found) == items
    assert len({*found.values()}) == 2
    assert os.getpid() in found.values()
