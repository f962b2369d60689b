"""Numbers on disk, and runs that go on where they stopped."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from npstream.errors import UsageError
from npstream.study.pool import run_all
from npstream.study.results import Results, Row, digest, number

COLUMNS = ("name", "value")


def some(*values: float) -> list[Row]:
    return [{"name": "n, with comma", "value": value} for value in values]


@dataclass(frozen=True)
class Square:
    """A task that leaves a trace of having run."""

    n: int
    trace: Path

    @property
    def key(self) -> str:
        return digest({"square": self.n})

    def run(self) -> list[Row]:
        (self.trace / str(self.n)).touch()
        return [{"name": f"{self.n}", "value": self.n**2}, {"name": "half", "value": self.n**2 / 2}]


def test_rows_come_back_exactly(tmp_path: Path) -> None:
    """What was appended is read again to the last bit, by key, after the file was closed."""
    path = tmp_path / "deep" / "r.csv"
    Results(path, COLUMNS).append("k", some(0.1 + 0.2, 1e-17))
    again = Results(path, COLUMNS)

    assert again.has("k")
    assert not again.has("other")
    assert [number(row, "value") for row in again.rows(["k"])] == [0.1 + 0.2, 1e-17]
    assert again.rows(["k"])[0]["name"] == "n, with comma"


@pytest.mark.parametrize("cut", [1, 2, 5, 20, 30])
def test_torn_tail_is_dropped_and_the_rest_kept(cut: int, tmp_path: Path) -> None:
    """A crash in the middle of a write loses that task alone, wherever it tore."""
    path = tmp_path / "r.csv"
    results = Results(path, COLUMNS)
    results.append("first", some(1.0, 2.0))
    results.append("second", some(3.0, 4.0))
    path.write_bytes(path.read_bytes()[:-cut])
    again = Results(path, COLUMNS)

    assert again.has("first")
    assert not again.has("second")
    again.append("second", some(3.0, 4.0))
    assert [number(row, "value") for row in Results(path, COLUMNS).rows(["first", "second"])] == [1, 2, 3, 4]


def test_fresh_forgets_and_other_columns_are_refused(tmp_path: Path) -> None:
    """Earlier numbers go only when asked to; a file of another study is never mixed with."""
    path = tmp_path / "r.csv"
    Results(path, COLUMNS).append("k", some(1.0))
    with pytest.raises(UsageError, match="another version of this study; start over with --fresh"):
        Results(path, ("name", "other"))

    assert Results(path, COLUMNS).has("k")
    assert not Results(path, COLUMNS, fresh=True).has("k")
    assert not Results(path, COLUMNS).has("k")


def test_unwritable_folder_is_refused(tmp_path: Path) -> None:
    """A file in the way of the folder ends with advice, not a traceback."""
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UsageError, match="choose another folder with --out"):
        Results(tmp_path / "out" / "r.csv", COLUMNS)


def test_key_depends_on_values_and_not_on_their_order() -> None:
    """Equal settings have equal keys however they are written down."""
    assert digest({"a": 1, "b": [2.0]}) == digest({"b": [2.0], "a": 1}) != digest({"a": 1, "b": [2.5]})


@pytest.mark.parametrize("jobs", [1, 2])
def test_finished_tasks_are_not_run_again(jobs: int, tmp_path: Path) -> None:
    """A second run over more tasks runs only the new ones, in one process or several, and tells its progress."""
    trace = tmp_path / "trace"
    trace.mkdir()
    path, told = tmp_path / "r.csv", list[tuple[int, int]]()
    run_all([Square(n, trace) for n in (1, 2)], Results(path, COLUMNS), jobs, lambda *_: None)
    for mark in trace.iterdir():
        mark.unlink()
    tasks = [Square(n, trace) for n in (1, 2, 3, 4)]
    results = Results(path, COLUMNS)
    run_all(tasks, results, jobs, lambda done, total: told.append((done, total)))

    assert sorted(mark.name for mark in trace.iterdir()) == ["3", "4"]
    assert told == [(2, 4), (3, 4), (4, 4)]
    assert [number(row, "value") for row in results.rows(task.key for task in tasks)] == [1, 0.5, 4, 2, 9, 4.5, 16, 8]


@pytest.mark.parametrize("jobs", [1, 2])
def test_failure_ends_the_run_and_keeps_what_was_done(jobs: int, tmp_path: Path) -> None:
    """The exception of a task comes out as it is; rows finished before are on disk, and a later run goes on."""
    path = tmp_path / "r.csv"
    done = [Square(n, tmp_path) for n in (1, 2)]
    run_all(done, Results(path, COLUMNS), jobs, lambda *_: None)
    with pytest.raises(FileNotFoundError):
        run_all(
            [*done, Square(3, tmp_path / "absent"), Square(4, tmp_path / "absent")],
            Results(path, COLUMNS),
            jobs,
            lambda *_: None,
        )

    again = Results(path, COLUMNS)
    assert [again.has(task.key) for task in done] == [True, True]
    run_all([*done, Square(3, tmp_path)], again, jobs, lambda *_: None)
    assert again.has(Square(3, tmp_path).key)
