"""The paper's large-stream figure: one pass, small target rates, rates accumulated over time.

FPR and TPR count every event from the first on, averaged over permutations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npstream.jobs import ResultRow
from npstream.report.figure import Figure, Line, ReferenceLine, svg
from npstream.report.page import PageSection, Table
from npstream.report.rates import cumulative, np_score
from npstream.study import methods
from npstream.study.datasets import DatasetSource, permuted
from npstream.study.results import digest, number
from npstream.study.study import Report, Study, StudyRows

TAUS = (0.005, 0.01)
METHODS = (methods.PLUS, methods.PAPER, methods.OLNP)
LARGE_SETS = ("cod_rna", "covertype")
BUILT_IN, BUILT_IN_ROWS = "gmm8", 300_000
CHECKPOINTS = 120
COLUMNS = ("set", "method", "tau", "permutation", "t", "fpr", "tpr")


@dataclass(frozen=True, slots=True)
class LargeTask:
    """One classifier over one permutation of one large set."""

    source: DatasetSource
    name: str
    rows: int | None
    data: str
    dims: int
    method: str
    tau: float
    permutation: int

    @property
    def key(self) -> str:
        chosen = methods.settings(self.method, self.dims, self.tau, self.permutation)
        return digest({"study": "large", "order": [self.data, self.rows, self.permutation], **chosen})

    def run(self) -> list[ResultRow]:
        data = permuted(self.source.load(self.name, rows=self.rows), self.permutation, self.rows)
        decision = methods.make(self.method, data.dims, self.tau, self.permutation).stream(data.x, data.y).decision
        fpr, tpr = cumulative(decision, data.y)
        common: dict[str, str | float] = {
            "set": self.name,
            "method": self.method,
            "tau": self.tau,
            "permutation": self.permutation,
        }
        return [{**common, "t": int(t), "fpr": float(fpr[t - 1]), "tpr": float(tpr[t - 1])} for t in _at(data.rows)]


def study(source: DatasetSource, *, names: Sequence[str] = (), permutations: int = 15, quick: bool = False) -> Study:
    """The large sets of the folder (or the named ones); a generated mixture without a folder."""
    there = source.in_folder()
    chosen = list(names) or [name for name in LARGE_SETS if name in there] or [BUILT_IN]
    if quick:
        permutations = 2
    tasks = [task for name in chosen for task in _tasks(source, name, permutations, quick)]
    return Study(name="large", file="large", columns=COLUMNS, tasks=tasks, report=report)


def report(rows: StudyRows) -> Report:
    """Two figures (FPR and TPR over events) for each set and rate, and the rates at the end."""
    groups = dict.fromkeys((row["set"], float(row["tau"])) for row in rows)
    figures = {}
    for name, tau in groups:
        mine = [row for row in rows if (row["set"], float(row["tau"])) == (name, tau)]
        figures[f"large-{name}-{tau:g}-fpr"] = _figure(mine, name, tau, "fpr")
        figures[f"large-{name}-{tau:g}-tpr"] = _figure(mine, name, tau, "tpr")
    ends = list(_ends(rows))
    body = [[f"{e['set']} {e['tau']:g} {e['method']}", *(f"{e[c]:.3f}" for c in _END_COLUMNS)] for e in ends]
    table = Table(header=["set, tau, method", "FPR/tau", "TPR", "NP-score"], rows=body, caption="At the end")
    text = ["One pass, every event counted from the first, mean over permutations."]
    section = PageSection(heading="Large streams", text=text, tables=[table], figures=list(figures.values()))
    return Report(sections=[section], summary={"ends": ends}, figures=figures)


_END_COLUMNS = ("fpr_over_tau", "tpr", "np_score")


def _tasks(source: DatasetSource, name: str, permutations: int, quick: bool) -> Iterator[LargeTask]:
    rows = 20_000 if quick else BUILT_IN_ROWS if name == BUILT_IN else None
    data = source.load(name, rows=rows)
    for tau in TAUS:
        for method in METHODS:
            for permutation in range(permutations):
                yield LargeTask(source, name, rows, data.digest, data.dims, method, tau, permutation)


def _at(n: int) -> list[int]:
    """Event counts to note, evenly spaced on a logarithmic scale from 100 to n."""
    return sorted({round(t) for t in np.geomspace(min(100, n), n, CHECKPOINTS)})


def _curve(rows: StudyRows, method: str, column: str) -> tuple[list[float], list[float]]:
    """Mean over permutations at each checkpoint."""
    at: dict[int, list[float]] = {}
    for row in rows:
        if row["method"] == method:
            at.setdefault(int(row["t"]), []).append(number(row, column))
    return [float(t) for t in sorted(at)], [float(np.nanmean(at[t])) for t in sorted(at)]


def _figure(rows: StudyRows, name: str, tau: float, column: str) -> str:
    layers: list[Line | ReferenceLine] = [ReferenceLine(y=tau, label="target rate")] if column == "fpr" else []
    for i, method in enumerate(METHODS):
        t, values = _curve(rows, method, column)
        layers.append(Line(x=t, y=values, label=method, colour=i, dash=i))
    return svg(
        Figure(
            title=f"{name}, tau {tau:g}",
            x_label="events",
            y_label=f"{column.upper()} since the first event",
            layers=layers,
            x_log=True,
            y_log=column == "fpr",
            y_range=(tau / 5, 1) if column == "fpr" else (0, 1),
            width=460,
            height=320,
        )
    )


def _ends(rows: StudyRows) -> Iterator[dict[str, str | float]]:
    for name, tau, method in dict.fromkeys((row["set"], float(row["tau"]), row["method"]) for row in rows):
        mine = [row for row in rows if (row["set"], float(row["tau"])) == (name, tau)]
        fpr, tpr = (_curve(mine, method, column)[1][-1] for column in ("fpr", "tpr"))
        score = np_score(fpr, tpr, tau)
        yield {"set": name, "tau": tau, "method": method, "fpr_over_tau": fpr / tau, "tpr": tpr, "np_score": score}
