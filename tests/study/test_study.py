"""A study: tasks in, rows on disk, a report out."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from npstream.jobs import ResultRow
from npstream.study.results import digest, number
from npstream.study.study import Report, Study, StudyRows


@dataclass(frozen=True)
class Square:
    """A task that leaves a trace of having run."""

    n: int
    trace: Path

    @property
    def key(self) -> str:
        return digest({"square": self.n})

    def run(self) -> list[ResultRow]:
        (self.trace / str(self.n)).touch()
        return [{"value": self.n**2}, {"value": self.n**2 / 2}]


def report(rows: StudyRows) -> Report:
    return Report(sections=[], summary={"values": [number(row, "value") for row in rows]})


@pytest.mark.parametrize("jobs", [1, 2])
def test_finished_tasks_are_not_run_again(jobs: int, tmp_path: Path) -> None:
    """A second run over more tasks runs only the new ones, in one process or several, and reports its progress."""
    trace = tmp_path / "trace"
    trace.mkdir()

    def study(*numbers: int) -> Study:
        tasks = [Square(n, trace) for n in numbers]
        return Study(name="squares", file="squares", columns=["value"], tasks=tasks, report=report)

    study(1, 2).run(tmp_path, jobs, fresh=False, progress=lambda done, total: None)
    for mark in trace.iterdir():
        mark.unlink()
    seen: list[tuple[int, int]] = []
    found = study(1, 2, 3, 4).run(tmp_path, jobs, fresh=False, progress=lambda *counts: seen.append(counts))

    assert sorted(mark.name for mark in trace.iterdir()) == ["3", "4"]
    assert seen == [(2, 4), (3, 4), (4, 4)]
    assert found.summary == {"values": [1, 0.5, 4, 2, 9, 4.5, 16, 8]}


def test_key_depends_on_values_and_not_on_their_order() -> None:
    """Equal settings have equal keys however they are written down."""
    assert digest({"a": 1, "b": [2.0]}) == digest({"b": [2.0], "a": 1}) != digest({"a": 1, "b": [2.5]})
