"""The paper's Banana figure: decision boundaries, and how the false-positive rate converges in training.

Needs a set with two features: `banana` of the folder, or the built-in moons. The
training part (75% of a permutation, standardised) is concatenated in new orders.
The convergence curve is the FPR over the last 1,000 non-targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npstream.arrays import Floats, Signs
from npstream.errors import UsageError
from npstream.jobs import ResultRow
from npstream.model import Model, Params
from npstream.report.figure import Band, Figure, Line, Points, ReferenceLine, Segments, svg
from npstream.report.page import PageSection
from npstream.report.rates import windowed
from npstream.study import methods
from npstream.study.contour import contour
from npstream.study.datasets import DatasetSource
from npstream.study.protocol import BETA, ETA, epochs, split
from npstream.study.results import digest, number
from npstream.study.study import Report, Study, StudyRows

TAUS = (0.05, 0.1, 0.3, 0.4)
SAMPLES = 150_000
WINDOW = 1000
CHECKPOINTS = 100
PRESETS = (methods.PAPER, methods.PLUS)
COLUMNS = ("kind", "preset", "tau", "permutation", "t", "fpr", "x0", "y0", "x1", "y1", "label")
_EMPTY = dict.fromkeys(COLUMNS, "")
_GRID = 80
_POINTS = 400


@dataclass(frozen=True, slots=True)
class BananaTask:
    """One training run; the first permutation also gives boundary and points."""

    source: DatasetSource
    name: str
    data: str
    preset: str
    tau: float
    permutation: int
    samples: int
    rows_max: int

    @property
    def params(self) -> Params:
        if self.preset == methods.PLUS:
            return Params(preset="plus", d=2, tau=self.tau, seed=self.permutation)
        return Params(
            preset="paper", d=2, D=200, g=1.0, tau=self.tau, seed=self.permutation, eta=ETA, beta=BETA, input="raw"
        )

    @property
    def key(self) -> str:
        order = [self.data, self.permutation, self.samples, self.rows_max]
        return digest({"study": "banana", "model": self.params.fingerprint(), "order": order})

    def run(self) -> list[ResultRow]:
        parts = split(self.source.load(self.name, rows=self.rows_max), self.permutation, self.rows_max)
        model = Model.create(self.params)
        x, y = epochs(parts.x, parts.y, self.samples, np.random.default_rng([self.permutation, 0xBA]))
        decision = model.stream(x, y).decision
        common: dict[str, str | float] = {
            **_EMPTY,
            "preset": self.preset,
            "tau": self.tau,
            "permutation": self.permutation,
        }
        rows: list[ResultRow] = [
            {**common, "kind": "convergence", "t": t, "fpr": fpr} for t, fpr in _convergence(decision, y)
        ]
        if self.permutation == 0:
            rows += [
                {**common, "kind": "boundary", "x0": x0, "y0": y0, "x1": x1, "y1": y1}
                for x0, y0, x1, y1 in _boundary(model)
            ]
            rows += [
                {**common, "kind": "point", "x0": float(a), "y0": float(b), "label": int(label)}
                for (a, b), label in zip(parts.x[:_POINTS], parts.y[:_POINTS], strict=True)
            ]
        return rows


def study(source: DatasetSource, *, names: Sequence[str] = (), permutations: int = 15, quick: bool = False) -> Study:
    """Both presets at four target rates."""
    name = names[0] if names else "banana" if "banana" in source.in_folder() else "moons"
    samples, rows_max = (20_000 if quick else SAMPLES), 5300
    taus = TAUS[1:3] if quick else TAUS
    permutations = 2 if quick else permutations
    data = source.load(name, rows=rows_max)
    if data.dims != 2:
        raise UsageError(f"{name} has {data.dims} features; the figure needs a set with two, e.g. --sets moons")
    tasks = [
        BananaTask(source, name, data.digest, preset, tau, permutation, samples, rows_max)
        for tau in taus
        for preset in PRESETS
        for permutation in range(permutations)
    ]
    return Study(name="banana", file="banana", columns=COLUMNS, tasks=tasks, report=report)


def report(rows: StudyRows) -> Report:
    """Two figures a target rate."""
    taus = sorted({float(row["tau"]) for row in rows})
    figures = {}
    for tau in taus:
        mine = [row for row in rows if float(row["tau"]) == tau]
        figures[f"banana-boundary-{tau:g}"] = _boundary_figure(mine, tau)
        figures[f"banana-convergence-{tau:g}"] = _convergence_figure(mine, tau)
    text = [
        "Decision boundaries after training (first permutation), and the FPR over the last 1,000 non-targets while "
        "training: mean and standard deviation over permutations. paper is Algorithm 1 with f > 0; plus decides "
        "with the tracked threshold."
    ]
    section = PageSection(heading="Boundary and convergence", text=text, figures=list(figures.values()))
    summary = {"final_fpr": {f"{tau:g}": {p: _final(rows, tau, p) for p in PRESETS} for tau in taus}}
    return Report(sections=[section], summary=summary, figures=figures)


def _convergence(decision: Signs, y: Signs) -> list[tuple[int, float]]:
    """(events so far, FPR of the last window) at evenly spaced non-targets."""
    fpr = windowed(decision, y, -1, WINDOW)
    seen = np.flatnonzero(y == -1)[WINDOW - 1 :] + 1
    if not fpr.size:
        return []
    return [(int(seen[i]), float(fpr[i])) for i in np.linspace(0, fpr.size - 1, CHECKPOINTS).astype(int)]


def _boundary(model: Model) -> list[tuple[float, float, float, float]]:
    axis = np.linspace(-3, 3, _GRID)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return contour(axis, axis, model.score_many(grid).reshape(_GRID, _GRID), model.threshold)


def _boundary_figure(rows: StudyRows, tau: float) -> str:
    layers: list[Points | Segments] = []
    first = next((row["preset"] for row in rows), "")
    for colour, label, text in ((5, "-1", "non-target"), (1, "1", "target")):
        points = [row for row in rows if (row["kind"], row["preset"], row["label"]) == ("point", first, label)]
        x, y = ([number(row, column) for row in points] for column in ("x0", "y0"))
        layers.append(Points(x=x, y=y, label=text, colour=colour, radius=1.6))
    for i, preset in enumerate(PRESETS):
        edges = [row for row in rows if (row["kind"], row["preset"]) == ("boundary", preset)]
        strokes = [(number(r, "x0"), number(r, "y0"), number(r, "x1"), number(r, "y1")) for r in edges]
        layers.append(Segments(strokes=strokes, label=f"{preset} boundary", colour=2 * i))
    return svg(
        Figure(
            title=f"Decision boundary, tau {tau:g}",
            x_label="feature 1 (standard deviations)",
            y_label="feature 2 (standard deviations)",
            layers=layers,
            x_range=(-3, 3),
            y_range=(-3, 3),
            width=420,
            height=400,
        )
    )


def _convergence_figure(rows: StudyRows, tau: float) -> str:
    layers: list[Band | Line | ReferenceLine] = [ReferenceLine(y=tau, label="target rate")]
    for i, preset in enumerate(PRESETS):
        t, curves = _curves(rows, preset)
        mean, sd = curves.mean(axis=0), curves.std(axis=0)
        layers.append(Band(x=t, low=(mean - sd).tolist(), high=(mean + sd).tolist(), colour=2 * i))
        layers.append(Line(x=t, y=mean.tolist(), label=f"{preset}, mean and sd", colour=2 * i, dash=i))
    return svg(
        Figure(
            title=f"Convergence of the FPR, tau {tau:g}",
            x_label="events learned",
            y_label="FPR, last 1,000 non-targets",
            layers=layers,
            y_range=(0, min(1.0, max(0.3, 2 * tau))),
            width=520,
            height=300,
        )
    )


def _curves(rows: StudyRows, preset: str) -> tuple[list[float], Floats]:
    """Checkpoints (mean over permutations, which differ by a few events) and one curve a permutation."""
    mine = [row for row in rows if (row["kind"], row["preset"]) == ("convergence", preset)]
    by_run: dict[str, list[tuple[float, float]]] = {}
    for row in mine:
        by_run.setdefault(row["permutation"], []).append((number(row, "t"), number(row, "fpr")))
    both = np.array(list(by_run.values()))
    return both[:, :, 0].mean(axis=0).tolist(), both[:, :, 1]


def _final(rows: StudyRows, tau: float, preset: str) -> float:
    mine = [row for row in rows if float(row["tau"]) == tau]
    return float(_curves(mine, preset)[1][:, -1].mean())
