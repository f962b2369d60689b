"""Labels that come late, for learner, threshold and budget together.

Each event is decided at once; its label is learned 0, 100, 1,000 or 5,000 events
later. Rates are taken once (delay + 1,000) labels have come. Sets without time
order are permuted; there a delay costs little beyond the longer warm-up. On
time-ordered sets (elec2, weather) most of what fresh labels bring is lost.

With late labels nothing can react to a false alarm while it still matters: to the
sampling noise of the labels that set the threshold comes that of the events
decided by it, and at tau 0.01 only 20 false alarms are expected in 2,000
non-targets. The gates are on the mean over seeds of each set. That is weaker than
asking it of every run: single runs do leave the bars, at 5,000 events of delay
most of all, where the budget (charged when labels come) may also hold alarms back
for thousands of events. Each gate prints the extremes of single runs and how many
of them are outside.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npstream.errors import UsageError
from npstream.jobs import ResultRow
from npstream.model import Model, Reason
from npstream.report.page import PageSection, Table
from npstream.report.rates import rates, windowed
from npstream.study import methods
from npstream.study.datasets import DatasetSource, head, permuted
from npstream.study.delayed import stream_delayed
from npstream.study.gates import Gate
from npstream.study.results import digest, number
from npstream.study.streams import known_order
from npstream.study.study import Report, Study, StudyRows

DELAYS = (0, 100, 1000, 5000)
TAUS = (0.01, 0.1)
WARM = 1000
WINDOW = 2000
_SETTING = ("set", "ordered", "tau", "delay", "seed", "rows", "from_event", "negatives")
COLUMNS = (*_SETTING, "fpr", "tpr", "np_score", "worst_window", "withheld", "np_score_all")

GATED = ("magic", "letter_z", "a9a")
REPORTED = ("elec2", "weather")
_RATIO = (0.80, 1.15)
_RATIO_AT_5000 = (0.60, 1.15)
_WORST_MAX = 1.8


@dataclass(frozen=True, slots=True)
class DelayTask:
    """The default classifier over one stream with one delay."""

    source: DatasetSource
    name: str
    rows: int | None
    ordered: bool
    tau: float
    delay: int
    seed: int
    data: str
    dims: int

    @property
    def key(self) -> str:
        chosen = methods.settings(methods.PLUS, self.dims, self.tau, self.seed)
        order = [self.data, self.rows, self.ordered, self.seed]
        return digest({"study": "delays", "order": order, "delay": self.delay, **chosen})

    def run(self) -> list[ResultRow]:
        whole = self.source.load(self.name)
        data = head(whole, self.rows) if self.ordered else permuted(whole, self.seed, self.rows)
        model = Model.create(methods.params(methods.PLUS, data.dims, self.tau, self.seed))
        outcome = stream_delayed(model, data.x, data.y, self.delay)
        # Label k comes with event k + delay, so (delay + 1,000) labels have come by event 2 delay + 1,000.
        start = min(2 * self.delay + WARM, data.rows)
        decision, y = outcome.decision[start:], data.y[start:]
        rest = rates(decision, y)
        return [
            {
                "set": self.name + "*" * self.ordered,
                "ordered": int(self.ordered),
                "tau": self.tau,
                "delay": self.delay,
                "seed": self.seed,
                "rows": data.rows,
                "from_event": start,
                "negatives": rest.negatives,
                "fpr": rest.fpr,
                "tpr": rest.tpr,
                "np_score": rest.np_score(self.tau),
                "worst_window": float(windowed(decision, y, -1, WINDOW).max(initial=0.0)),
                "withheld": float((outcome.reason[start:] == Reason.BUDGET).mean()),
                "np_score_all": rates(outcome.decision, data.y).np_score(self.tau),
            }
        ]


def study(source: DatasetSource, *, names: Sequence[str] = (), seeds: int = 3, quick: bool = False) -> Study:
    """Gated and reported sets of the folder (or the named sets); two synthetic streams without a folder."""
    chosen = list(names) or _default_names(source)
    delays = DELAYS[:3] if quick else DELAYS
    if quick:
        chosen, seeds = chosen[:2], 1
    tasks = [task for name in chosen for task in _tasks(source, name, delays, seeds)]
    return Study(name="delays", file="delays", columns=COLUMNS, tasks=tasks, report=report)


def report(rows: StudyRows) -> Report:
    """A table for each rate, and the gates on every run of the gated sets."""
    text = [
        f"Labels late by so many events for learner, threshold and budget. Rates after the first (delay + {WARM:,}) "
        f"labels, mean over seeds. Worst: largest FPR/tau in any {WINDOW:,} consecutive non-targets of any seed. "
        "Withheld: share of events whose alarm the budget held back. * in file order: there fresh labels carry most "
        "of the power, and a delay takes it away."
    ]
    tables = [_table(rows, tau) for tau in sorted({float(row["tau"]) for row in rows})]
    section = PageSection(heading="Late labels", text=text, tables=tables)
    summary = {"rows": [{name: row[name] for name in COLUMNS} for row in rows]}
    return Report(sections=[section], summary=summary, gates=list(_gates(rows)))


def _default_names(source: DatasetSource) -> list[str]:
    if source.folder is None:
        return ["gmm8", "negshift"]
    there = source.in_folder()
    wanted = [name for name in (*GATED, *REPORTED) if name in there]
    if not wanted:
        raise UsageError(f"{source.folder} holds none of {', '.join((*GATED, *REPORTED))}; name sets with --sets")
    return wanted


def _tasks(source: DatasetSource, name: str, delays: Sequence[int], seeds: int) -> Iterator[DelayTask]:
    data = source.load(name)
    _, ordered = known_order(name)
    for tau in TAUS:
        for delay in delays:
            for seed in range(seeds):
                yield DelayTask(source, name, None, ordered, tau, delay, seed, data.digest, data.dims)


def _gates(rows: StudyRows) -> Iterator[Gate]:
    gated = [row for row in rows if row["set"] in GATED and row["delay"] != "0"]
    for tau, delay in sorted({(float(row["tau"]), int(row["delay"])) for row in gated}):
        mine = [row for row in gated if float(row["tau"]) == tau and int(row["delay"]) == delay]
        low, high = _RATIO_AT_5000 if delay >= 5000 else _RATIO
        yield _gate(f"tau {tau:g}, delay {delay}, FPR/tau, mean over seeds", mine, "fpr", tau, low, high)
        name = f"tau {tau:g}, delay {delay}, FPR/tau in the worst {WINDOW} negatives, mean over seeds"
        yield _gate(name, mine, "worst_window", tau, 0.0, _WORST_MAX)


def _gate(name: str, rows: StudyRows, column: str, tau: float, low: float, high: float) -> Gate:
    """The mean over seeds of each set must lie within the bar; single runs are shown."""
    values = {each: [number(r, column) / tau for r in rows if r["set"] == each] for each in GATED}
    means = {each: float(np.mean(found)) for each, found in values.items() if found}
    single = [value for found in values.values() for value in found]
    shown = ", ".join(f"{each} {mean:.2f}" for each, mean in means.items())
    outside = sum(not low <= value <= high for value in single)
    figure = f"{shown}; single runs {min(single):.2f}..{max(single):.2f}, {outside} of {len(single)} outside"
    bar = f"{low:g}..{high:g}" if low > 0 else f"<= {high:g}"
    return Gate(name, figure, bar, all(low <= mean <= high for mean in means.values()))


def _table(rows: StudyRows, tau: float) -> Table:
    header = ["set", "delay", "NP-score", "FPR/tau", "TPR", "worst", "withheld", "NP-score, all events"]
    groups = dict.fromkeys((row["set"], int(row["delay"])) for row in rows)
    body = [[name, str(delay), *_cells(rows, name, tau, delay)] for name, delay in groups]
    return Table(header=header, rows=body, caption=f"tau {tau:g}")


def _cells(rows: StudyRows, name: str, tau: float, delay: int) -> Iterator[str]:
    mine = [row for row in rows if (row["set"], float(row["tau"]), int(row["delay"])) == (name, tau, delay)]

    def mean(column: str) -> float:
        return float(np.mean([number(row, column) for row in mine]))

    yield f"{mean('np_score'):.3f}"
    yield f"{mean('fpr') / tau:.2f}"
    yield f"{mean('tpr'):.3f}"
    yield f"{max(number(row, 'worst_window') for row in mine) / tau:.2f}"
    yield f"{mean('withheld'):.1%}"
    yield f"{mean('np_score_all'):.3f}"
