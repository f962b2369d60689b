"""What every study has in common: tasks in, rows in between, a report out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npstream.jobs import Job, Results, Workers
from npstream.report.page import PageSection
from npstream.study.gates import Gate

StudyRows = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a study found: sections for a reader, figures as files, the same as plain data, and its gates."""

    sections: Sequence[PageSection]
    summary: Mapping[str, Any]
    figures: Mapping[str, str] = field(default_factory=dict, repr=False)
    gates: Sequence[Gate] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A set of tasks whose rows share one CSV file, and how to read them.

    `file` is the stem of that CSV: two studies over the same rows share it.
    """

    name: str
    file: str
    columns: Sequence[str]
    tasks: Sequence[Job]
    report: Callable[[StudyRows], Report]

    def run(self, out: Path, jobs: int, *, fresh: bool, progress: Callable[[int, int], None]) -> Report:
        """Run the tasks that are not done yet, `jobs` at a time, and report on all; rows are kept in the folder `out`.

        `progress` gets (tasks done, tasks in all) before the first and after each.
        """
        results = Results(out / f"{self.file}.csv", ("of", *self.columns), fresh=fresh)
        todo = [task for task in self.tasks if task.key not in results]
        total = len(self.tasks)
        progress(total - len(todo), total)
        with Workers(min(jobs, len(todo))) as workers:
            for left, _ in enumerate(workers.run(todo, results), 1 - len(todo)):
                progress(total + left, total)
        return self.report(results.rows(task.key for task in self.tasks))
