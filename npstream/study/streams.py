"""The single-pass comparison: every set once, test then train, no tuning, at five target rates.

`*` sets are played in file order (they are time series), the others permuted by
the seed. "q4" is the last quarter of a stream: what a learner does once it had
time to learn, and where a batch method trained on the first three quarters can
be compared.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from npstream.jobs import ResultRow
from npstream.report.page import PageSection, Table
from npstream.study import methods
from npstream.study.datasets import RECIPES, DatasetSource, head, permuted
from npstream.study.results import FIGURES, digest, stream_figures
from npstream.study.stream_gates import check
from npstream.study.study import Report, Study, StudyRows
from npstream.study.tally import StreamResults

TAUS = (0.005, 0.01, 0.05, 0.1, 0.2)
COLUMNS = ("set", "method", "tau", "seed", *FIGURES)


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known of one set at one rate.

    `earlier` is the q4 NP-score of the form without tables on the same seeds, `bar` what is expected of the present
    one, `trees` that of batch boosted trees with the best threshold in hindsight.
    """

    rows: int
    earlier: float
    bar: float
    trees: float


@dataclass(frozen=True, slots=True)
class StreamTask:
    """One classifier over one stream."""

    source: DatasetSource
    name: str
    data: str
    rows: int | None
    ordered: bool
    method: str
    tau: float
    seed: int
    dims: int

    @property
    def key(self) -> str:
        chosen = methods.settings(self.method, self.dims, self.tau, self.seed)
        order = [self.data, self.rows, self.ordered, self.seed]
        return digest({"study": "streams", "order": order, **chosen})

    def run(self) -> list[ResultRow]:
        whole = self.source.load(self.name)
        data = head(whole, self.rows) if self.ordered else permuted(whole, self.seed, self.rows)
        outcome = methods.make(self.method, data.dims, self.tau, self.seed).stream(data.x, data.y)
        return [
            {
                "set": self.name + "*" * self.ordered,
                "method": self.method,
                "tau": self.tau,
                "seed": self.seed,
                **stream_figures(outcome, data.y, self.tau),
            }
        ]


def study(
    source: DatasetSource,
    *,
    names: Sequence[str] = (),
    taus: Sequence[float] = TAUS,
    seeds: int = 3,
    quick: bool = False,
) -> Study:
    """All methods over the reference sets in the folder (or the named ones); over the generators without a folder."""
    chosen = list(names) or default_names(source, quick)
    if quick:
        taus, seeds = tuple(taus)[1:4:2] or taus, 1
    tasks = [task for name in chosen for task in _tasks(source, name, taus, seeds, 6000 if quick else None)]
    return Study(name="streams", file="streams", columns=COLUMNS, tasks=tasks, report=report)


def report(rows: StudyRows) -> Report:
    """Tables with the bar beside each figure, means, and the gates."""
    tally, known = StreamResults(rows), reference()
    # What is known of a set is known of all its rows; a set cut short has neither reference nor gate.
    cut = {row["set"] for row in rows if _is_cut(row, known)}
    known = {key: entry for key, entry in known.items() if key[0] not in cut}
    text = [
        "One pass, test then train, no tuning. NP-score on the last quarter, lower is better; 1 is what a constant "
        "'no alarm' scores. FPR/tau over the whole stream, smallest and largest of the seeds. * in file order. "
        "! above its bar."
    ]
    tables = [_table(tally, tau, known) for tau in tally.taus]
    judged = StreamResults([row for row in rows if row["set"] not in cut])
    return Report(
        sections=[PageSection(heading="Single-pass comparison", text=text, tables=tables)],
        summary={"means": _means(tally)},
        gates=check(judged, {key: entry.earlier for key, entry in known.items()}),
    )


@cache
def reference() -> dict[tuple[str, float], Reference]:
    """By (set, tau); a set in time order carries its `*`."""
    return {
        (row["set"] + "*" * int(row["ordered"]), float(row["tau"])): Reference(
            int(row["rows"]), float(row["q4_earlier"]), float(row["q4_bar"]), float(row["boosted_trees_oracle"])
        )
        for row in _reference_rows()
    }


def known_order(name: str) -> tuple[int | None, bool]:
    """How many rows of a set are played (None: all) and whether in file order. Unknown sets are permuted."""
    row = next((row for row in _reference_rows() if row["set"] == name), None)
    if row is None:
        return None, name in RECIPES and RECIPES[name].ordered
    return int(row["rows"]), bool(int(row["ordered"]))


def _is_cut(row: Mapping[str, str], known: Mapping[tuple[str, float], Reference]) -> bool:
    reference = known.get((row["set"], float(row["tau"])))
    return reference is not None and reference.rows != int(row["rows"])


@cache
def _reference_rows() -> list[dict[str, str]]:
    text = files("npstream.study").joinpath("reference.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def default_names(source: DatasetSource, quick: bool) -> list[str]:
    """The reference sets that the folder has, else what it has; generators without a folder."""
    if source.folder is None:
        return ["moons", "gmm8", "heavy"] if quick else [name for name, r in RECIPES.items() if not r.ordered]
    there = source.in_folder()
    wanted = [name for name in dict.fromkeys(row["set"] for row in _reference_rows()) if name in there]
    wanted = wanted or there
    return wanted[:4] if quick else wanted


def _tasks(
    source: DatasetSource, name: str, taus: Sequence[float], seeds: int, cut: int | None
) -> Iterator[StreamTask]:
    data = source.load(name)
    known_rows, ordered = known_order(name)
    rows = min(filter(None, (known_rows, cut)), default=None)
    for tau in taus:
        for method in methods.METHODS:
            for seed in range(seeds):
                yield StreamTask(source, name, data.digest, rows, ordered, method, tau, seed, data.dims)


def _table(tally: StreamResults, tau: float, known: Mapping[tuple[str, float], Reference]) -> Table:
    header = ["set", "FPR/tau", "plus", "bar", "earlier", "paper", "OLNP", "OLNP+tracker", "trees, oracle"]
    body = [[name, *_cells(tally, name, tau, known.get((name, tau)))] for name in tally.sets]
    means = [f"{tally.mean(method, tau):.3f}" for method in methods.METHODS]
    references = [known[name, tau] for name in tally.sets if (name, tau) in known]
    earlier, trees = _mean([r.earlier for r in references]), _mean([r.trees for r in references])
    body.append(["mean", "", means[0], "", earlier, *means[1:], trees])
    return Table(header=header, rows=body, caption=f"tau {tau:g}")


def _cells(tally: StreamResults, name: str, tau: float, known: Reference | None) -> Iterator[str]:
    ratios = tally.values(name, methods.PLUS, tau, "fpr") / tau
    yield f"{ratios.min():.2f}..{ratios.max():.2f}"
    plus = tally.value(name, methods.PLUS, tau)
    yield f"{plus:.3f}{'!' if known and plus > known.bar else ''}"
    yield f"{known.bar:.3f}" if known else "-"
    yield f"{known.earlier:.3f}" if known else "-"
    yield from (f"{tally.value(name, method, tau):.3f}" for method in methods.METHODS[1:])
    yield f"{known.trees:.3f}" if known else "-"


def _means(tally: StreamResults) -> dict[str, dict[str, float]]:
    return {f"{tau:g}": {method: tally.mean(method, tau) for method in methods.METHODS} for tau in tally.taus}


def _mean(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f}" if values else "-"
