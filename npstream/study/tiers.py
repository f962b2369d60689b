"""Several rates from one model: does every tier hold its own, and what does a stricter one detect?

Order and protocol are those of the stream comparison, and so are the bars of the
rates. Beside each tier stands a model that has this rate alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npstream.jobs import ResultRow
from npstream.model import Model, Outcome, Params
from npstream.report.page import PageSection, Table
from npstream.report.rates import last_quarter, rates
from npstream.study.datasets import Dataset, DatasetSource, head, permuted
from npstream.study.gates import Gate, all_within, at_most
from npstream.study.results import digest, number
from npstream.study.stream_gates import EXPECTED_ALARMS_MIN, RATE_BARS
from npstream.study.streams import default_names, known_order
from npstream.study.study import Report, Study, StudyRows

TIERS = (("block", 0.005), ("review", 0.01))
COLUMNS = ("set", "tier", "tau", "seed", "rows", "negatives", "fpr", "score", "alone_fpr", "alone_score")


@dataclass(frozen=True, slots=True)
class TierTask:
    """One stream, once through a model with tiers and once through a model for each of their rates."""

    source: DatasetSource
    name: str
    data: str
    rows: int | None
    ordered: bool
    seed: int

    @property
    def key(self) -> str:
        order = [self.data, self.rows, self.ordered, self.seed]
        return digest({"study": "tiers", "order": order, "model": Params(d=1, tiers=TIERS).fingerprint()})

    def run(self) -> list[ResultRow]:
        whole = self.source.load(self.name)
        data = head(whole, self.rows) if self.ordered else permuted(whole, self.seed, self.rows)
        together = _outcome(Params(d=data.dims, tiers=TIERS, seed=self.seed), data)
        return [self._row(place, together, data) for place in range(len(TIERS))]

    def _row(self, place: int, together: Outcome, data: Dataset) -> ResultRow:
        name, tau = TIERS[place]
        # The widest tier is the first that an alarm reaches.
        reached = together.depth >= len(TIERS) - place
        alone = _outcome(Params(d=data.dims, tau=tau, seed=self.seed), data).decision > 0
        return {
            "set": self.name + "*" * self.ordered,
            "tier": name,
            "tau": tau,
            "seed": self.seed,
            "rows": data.rows,
            "negatives": int((data.y < 0).sum()),
            "fpr": float(reached[data.y < 0].mean()),
            "score": _score(reached, data, tau),
            "alone_fpr": float(alone[data.y < 0].mean()),
            "alone_score": _score(alone, data, tau),
        }


def _outcome(params: Params, data: Dataset) -> Outcome:
    return Model.create(params).stream(data.x, data.y)


def _score(alarm: np.ndarray[tuple[int], np.dtype[np.bool_]], data: Dataset, tau: float) -> float:
    """The NP-score on the last quarter."""
    part = last_quarter(data.rows)
    return rates(np.where(alarm[part], 1, -1).astype(np.int8), data.y[part]).np_score(tau)


def study(source: DatasetSource, *, names: Sequence[str] = (), seeds: int = 3, quick: bool = False) -> Study:
    """The sets of the stream comparison, or the named ones."""
    tasks = [
        TierTask(source, name, source.load(name).digest, *_order(name, 6000 if quick else None), seed)
        for name in list(names) or default_names(source, quick)
        for seed in range(1 if quick else seeds)
    ]
    return Study(name="tiers", file="tiers", columns=COLUMNS, tasks=tasks, report=report)


def _order(name: str, cut: int | None) -> tuple[int | None, bool]:
    known, ordered = known_order(name)
    return min(filter(None, (known, cut)), default=None), ordered


def report(rows: StudyRows) -> Report:
    """A table for each tier, and the gates."""
    text = [
        "One pass, test then train, no tuning; one model for all tiers. FPR/tau over the whole stream, smallest and "
        "largest of the seeds. NP-score on the last quarter, lower is better, beside that of a model of this rate "
        "alone. * in file order."
    ]
    tables = [_table([row for row in rows if row["tier"] == name], name, tau) for name, tau in TIERS]
    summary = {"rows": [{name: row[name] for name in COLUMNS} for row in rows]}
    section = PageSection(heading="Tiers", text=text, tables=tables)
    return Report(sections=[section], summary=summary, gates=list(_gates(rows)))


def _table(rows: StudyRows, name: str, tau: float) -> Table:
    sets = list(dict.fromkeys(row["set"] for row in rows))
    body = [[each, *_cells([row for row in rows if row["set"] == each], tau)] for each in sets]
    body.append(["mean", "", f"{_mean(rows, 'score'):.3f}", "", f"{_mean(rows, 'alone_score'):.3f}"])
    header = ["set", "FPR/tau", "NP-score", "FPR/tau alone", "NP-score alone"]
    return Table(header=header, rows=body, caption=f"{name}, tau {tau:g}")


def _cells(rows: StudyRows, tau: float) -> Iterator[str]:
    for prefix in ("", "alone_"):
        ratios = [number(row, f"{prefix}fpr") / tau for row in rows]
        yield f"{min(ratios):.2f}..{max(ratios):.2f}"
        yield f"{_mean(rows, f'{prefix}score'):.3f}"


def _mean(rows: StudyRows, name: str) -> float:
    return float(np.mean([number(row, name) for row in rows]))


def _gates(rows: StudyRows) -> Iterator[Gate]:
    for name, tau in TIERS:
        mine = [row for row in rows if row["tier"] == name]
        ratios = [number(row, "fpr") / tau for row in mine if tau * number(row, "negatives") >= EXPECTED_ALARMS_MIN]
        if ratios:
            yield all_within(f"{name}, tau {tau:g}: FPR/tau of every run", ratios, *RATE_BARS[tau])
    widest = [row for row in rows if row["tier"] == TIERS[-1][0]]
    apart = max(abs(number(row, "fpr") - number(row, "alone_fpr")) for row in widest)
    yield at_most("the widest tier beside a model of its rate alone: FPR apart", apart, 0.0)
