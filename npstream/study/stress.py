"""Streams that change, and streams with hardly any targets: does the false-positive rate hold?

The recipes are in `npstream.study.drift`. "After" is the first 500
non-targets from the middle of the stream on, where `flip`, `jump` and
`scalejump` change; the same place is shown for the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npstream.arrays import Signs
from npstream.jobs import ResultRow
from npstream.report.page import PageSection, Table
from npstream.report.rates import last_quarter, rates, windowed, worst_overdraft
from npstream.study import methods
from npstream.study.datasets import DatasetSource
from npstream.study.drift import DRIFTING
from npstream.study.gates import Gate, all_within, at_most
from npstream.study.results import digest, number
from npstream.study.study import Report, Study, StudyRows

TAU = 0.01
AFTER = 500
WINDOW = 1000
_SETTING = ("stream", "method", "tau", "seed", "rows", "negatives", "positives")
_MEASURED = ("fpr", "tpr", "np_score", "fpr_after", "tpr_before", "q4_fpr", "q4_tpr", "worst_window", "overdraft")
COLUMNS = (*_SETTING, *_MEASURED)


@dataclass(frozen=True, slots=True)
class StressTask:
    """One classifier over one synthetic stream."""

    name: str
    rows: int
    method: str
    tau: float
    seed: int
    data: str
    dims: int

    @property
    def key(self) -> str:
        chosen = methods.settings(self.method, self.dims, self.tau, self.seed)
        return digest({"study": "stress", "data": self.data, "seed": self.seed, **chosen})

    def run(self) -> list[ResultRow]:
        data = DatasetSource().load(self.name, rows=self.rows, seed=self.seed)
        decision = methods.make(self.method, data.dims, self.tau, self.seed).stream(data.x, data.y).decision
        whole, q4 = rates(decision, data.y), last_quarter(data.rows)
        half = data.rows // 2
        before = slice(half - data.rows // 4, half)
        end = rates(decision[q4], data.y[q4])
        return [
            {
                "stream": self.name,
                "method": self.method,
                "tau": self.tau,
                "seed": self.seed,
                "rows": data.rows,
                "negatives": whole.negatives,
                "positives": whole.positives,
                "fpr": whole.fpr,
                "tpr": whole.tpr,
                "np_score": whole.np_score(self.tau),
                "fpr_after": fpr_after(decision, data.y, half, AFTER),
                "tpr_before": rates(decision[before], data.y[before]).tpr,
                "q4_fpr": end.fpr,
                "q4_tpr": end.tpr,
                "worst_window": float(windowed(decision, data.y, -1, WINDOW).max(initial=0.0)),
                "overdraft": worst_overdraft(decision, data.y, self.tau),
            }
        ]


def fpr_after(decision: Signs, y: Signs, start: int, count: int) -> float:
    """FPR over the first `count` non-targets from event `start` on."""
    return float((decision[start:][y[start:] == -1][:count] == 1).mean())


def study(*, names: Sequence[str] = (), seeds: int = 3, quick: bool = False) -> Study:
    """All methods over all drifting streams (or the named ones)."""
    chosen = list(names) or (["flip", "scalejump"] if quick else list(DRIFTING))
    tasks = [task for name in chosen for task in _tasks(name, 1 if quick else seeds, 12_000 if quick else None)]
    return Study(name="stress", file="stress", columns=COLUMNS, tasks=tasks, report=report)


def report(rows: StudyRows) -> Report:
    """One table of means over seeds, and the gates on every single run."""
    text = [
        f"tau {TAU:g}, one pass, mean over seeds. After: FPR/tau in the first {AFTER} non-targets from half way on. "
        f"Worst: largest FPR/tau in any {WINDOW} consecutive non-targets. Overdraft: the largest FP - tau n over any "
        "run of n non-targets, which the budget bounds by 41."
    ]
    section = PageSection(heading="Stress streams", text=text, tables=[_table(rows)])
    summary = {"rows": [{name: row[name] for name in COLUMNS} for row in rows]}
    return Report(sections=[section], summary=summary, gates=list(_gates(rows)))


def _tasks(name: str, seeds: int, rows: int | None) -> Iterator[StressTask]:
    for seed in range(seeds):
        data = DatasetSource().load(name, rows=rows, seed=seed)
        for method in methods.METHODS:
            yield StressTask(name, data.rows, method, TAU, seed, data.digest, data.dims)


def _gates(rows: StudyRows) -> Iterator[Gate]:
    plus = [row for row in rows if row["method"] == methods.PLUS]
    for stream in ("flip", "scalejump"):
        after = [number(row, "fpr_after") / TAU for row in plus if row["stream"] == stream]
        if after:
            yield at_most(f"{stream}, FPR/tau in {AFTER} negatives after, worst run of {len(after)}", max(after), 2.0)
    rare = [number(row, "fpr") / TAU for row in plus if row["stream"] == "imb01"]
    if rare:
        yield all_within("imb01, FPR/tau over the whole stream", rare, 0.9, 1.1)
    overdraft = max(number(row, "overdraft") for row in plus)
    yield at_most("budget, largest FP - tau n over any window of any stream", overdraft, 41.0, 2)


def _table(rows: StudyRows) -> Table:
    header = ["stream", "method", "NP-score", "FPR/tau", "TPR", "after", "worst", "overdraft"]
    header += ["TPR before", "TPR at end"]
    groups = dict.fromkeys((row["stream"], row["method"]) for row in rows)
    body = [[stream, method, *_cells(rows, stream, method)] for stream, method in groups]
    return Table(header=header, rows=body, caption=f"tau {TAU:g}")


def _cells(rows: StudyRows, stream: str, method: str) -> Iterator[str]:
    def mean(column: str) -> float:
        mine = [row for row in rows if row["stream"] == stream and row["method"] == method]
        return float(np.mean([number(row, column) for row in mine]))

    yield f"{mean('np_score'):.3f}"
    yield f"{mean('fpr') / TAU:.2f}"
    yield f"{mean('tpr'):.3f}"
    yield f"{mean('fpr_after') / TAU:.2f}"
    yield f"{mean('worst_window') / TAU:.2f}"
    yield f"{mean('overdraft'):.1f}"
    yield f"{mean('tpr_before'):.3f}"
    yield f"{mean('q4_tpr'):.3f}"
