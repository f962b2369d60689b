"""The paper's table and ROC figure: four methods at five target rates over permutations of small sets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from npstream.jobs import ResultRow
from npstream.model import ALGORITHM
from npstream.report.figure import Figure, Line, Points, ReferenceLine, svg
from npstream.report.page import PageSection, Table
from npstream.report.rates import auc
from npstream.study import protocol
from npstream.study.datasets import DatasetSource
from npstream.study.methods import OLNP_VERSION
from npstream.study.protocol import METHODS, Grid
from npstream.study.results import digest, number
from npstream.study.study import Report, Study, StudyRows

TAUS = (0.05, 0.1, 0.2, 0.3, 0.4)
PERMUTATIONS = 15
ROWS_MAX = 5000  # the paper, too, takes a small part of its large sets for the batch methods
COLUMNS = ("set", "method", "tau", "permutation", "tpr", "fpr", "np_score", "g", "units", "c")

PAPER_SETS = (
    "banana",
    "spiral",
    "iris",
    "svmguide1",
    "fourclass",
    "liver",
    "heart",
    "breast_cancer",
    "ionosphere",
    "pima",
)
"""Sets of the paper, by their usual names."""
BUILT_IN = ("moons", "spirals", "iris", "breast_cancer")


@dataclass(frozen=True, slots=True)
class TableTask:
    """One method on one permutation of one set at one rate."""

    source: DatasetSource
    name: str
    data: str
    method: str
    tau: float
    permutation: int
    grid: Grid
    rows_max: int

    @property
    def key(self) -> str:
        fields = {name: value for name, value in asdict(self).items() if name not in ("source", "name")}
        return digest({"study": "table", "algorithm": ALGORITHM, "olnp": OLNP_VERSION, **fields})

    def run(self) -> list[ResultRow]:
        parts = protocol.split(self.source.load(self.name, rows=self.rows_max), self.permutation, self.rows_max)
        found, choice = protocol.evaluate(self.method, parts, self.tau, self.permutation, self.grid)
        return [
            {
                "set": self.name,
                "method": self.method,
                "tau": self.tau,
                "permutation": self.permutation,
                "tpr": found.tpr,
                "fpr": found.fpr,
                "np_score": found.np_score(self.tau),
                "g": choice.g,
                "units": choice.units,
                "c": choice.c,
            }
        ]


def study(
    source: DatasetSource,
    *,
    name: str = "table",
    names: Sequence[str] = (),
    permutations: int = PERMUTATIONS,
    grid: Grid = protocol.SMALL_GRID,
    quick: bool = False,
) -> Study:
    """All methods over the paper's sets in the folder (or the named ones); `table` and `roc` share their rows."""
    chosen = list(names) or _default_names(source)
    rows_max = ROWS_MAX
    if quick:
        chosen, permutations, grid, rows_max = chosen[:2], 2, protocol.QUICK_GRID, 600
    tasks = [
        TableTask(source, each, source.load(each, rows=rows_max).digest, method, tau, permutation, grid, rows_max)
        for each in chosen
        for permutation in range(permutations)
        for tau in TAUS
        for method in METHODS
    ]
    return Study(
        name=name, file="table", columns=COLUMNS, tasks=tasks, report=report if name == "table" else roc_report
    )


def report(rows: StudyRows) -> Report:
    """Mean and standard deviation of TPR, FPR and NP-score for each rate, and of the AUC over the rates."""
    sets = dict.fromkeys(row["set"] for row in rows)
    permutations = len({row["permutation"] for row in rows})
    text = [
        f"{permutations} permutations, 75% for training and 3-fold cross-validation of g, D and C by NP-score, 25% for "
        "testing. Mean (standard deviation) over permutations. AUC: TPR over the target rates, 1 is perfect."
    ]
    tables = [_table(rows, name) for name in sets]
    section = PageSection(heading="The paper's table", text=text, tables=tables)
    return Report(sections=[section], summary={"means": list(_means(rows))})


def roc_report(rows: StudyRows) -> Report:
    """One figure a set: mean TPR against mean achieved FPR, one point for each target rate."""
    figures = {f"roc-{name}": _roc(rows, name) for name in dict.fromkeys(row["set"] for row in rows)}
    text = [
        "Mean achieved TPR against mean achieved FPR over permutations; one point for each target rate "
        f"({', '.join(f'{tau:g}' for tau in TAUS)}, dashed). A point right of its target rate overshoots."
    ]
    section = PageSection(heading="ROC", text=text, figures=list(figures.values()))
    return Report(sections=[section], summary={"figures": sorted(figures)}, figures=figures)


def _means(rows: StudyRows) -> Iterator[dict[str, str | float]]:
    """Mean and standard deviation of every cell of the table, as plain data."""
    for name, method, tau in dict.fromkeys((row["set"], row["method"], float(row["tau"])) for row in rows):
        cell: dict[str, str | float] = {"set": name, "method": method, "tau": tau}
        for column in ("tpr", "fpr", "np_score"):
            values = [number(row, column) for row in _pick(rows, name, method, tau)]
            cell |= {column: float(np.mean(values)), f"{column}_sd": float(np.std(values))}
        yield cell | {"auc": float(np.mean(_aucs(rows, name, method)))}


def _default_names(source: DatasetSource) -> list[str]:
    if source.folder is None:
        return list(BUILT_IN)
    there = source.in_folder()
    return [name for name in PAPER_SETS if name in there] or there


def _pick(rows: StudyRows, name: str, method: str, tau: float) -> list[Mapping[str, str]]:
    return [row for row in rows if (row["set"], row["method"], float(row["tau"])) == (name, method, tau)]


def _table(rows: StudyRows, name: str) -> Table:
    taus = sorted({float(row["tau"]) for row in rows})
    body = []
    for method in METHODS:
        for column, label in (("tpr", "TPR"), ("fpr", "FPR"), ("np_score", "NP-score")):
            area = _spread(_aucs(rows, name, method)) if column == "tpr" else ""
            cells = [_mean_sd(_pick(rows, name, method, tau), column) for tau in taus]
            body.append([f"{method} {label}", *cells, area])
    return Table(header=[name, *(f"tau {tau:g}" for tau in taus), "AUC"], rows=body, caption=name)


def _aucs(rows: StudyRows, name: str, method: str) -> list[float]:
    """One area a permutation."""
    mine = [row for row in rows if (row["set"], row["method"]) == (name, method)]
    areas = []
    for permutation in dict.fromkeys(row["permutation"] for row in mine):
        curve = [row for row in mine if row["permutation"] == permutation]
        areas.append(auc(*(np.array([number(row, column) for row in curve]) for column in ("tau", "tpr"))))
    return areas


def _roc(rows: StudyRows, name: str) -> str:
    taus = sorted({float(row["tau"]) for row in rows})
    layers: list[Line | Points | ReferenceLine] = [ReferenceLine(x=tau) for tau in taus]
    for i, method in enumerate(METHODS):
        points = [_pick(rows, name, method, tau) for tau in taus]
        fpr, tpr = ([_mean(each, column) for each in points] for column in ("fpr", "tpr"))
        layers += [Line(x=fpr, y=tpr, label=method, colour=i, dash=i), Points(x=fpr, y=tpr, colour=i, radius=3)]
    return svg(
        Figure(
            title=name,
            x_label="false positive rate",
            y_label="true positive rate",
            layers=layers,
            x_range=(0, 0.5),
            y_range=(0, 1.02),
            width=420,
            height=320,
        )
    )


def _mean(rows: StudyRows, column: str) -> float:
    return float(np.mean([number(row, column) for row in rows]))


def _mean_sd(rows: StudyRows, column: str) -> str:
    return _spread([number(row, column) for row in rows])


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ({np.std(values):.3f})"
