"""What every study has in common: tasks in, rows in between, a report out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from npstream.report.page import Section
from npstream.study.gates import Gate
from npstream.study.pool import Task

Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a study found: sections for a reader, figures as files, the same as plain data, and its gates."""

    sections: Sequence[Section]
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
    tasks: Sequence[Task]
    report: Callable[[Rows], Report]
