"""What replays found: a table with intervals, curves over the stream, CSV and JSON of every number."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npstream.replay.margins import roc
from npstream.replay.replay import PartitionResult, Result
from npstream.report.figure import Band, Figure, Layer, Line, Points, ReferenceLine, svg
from npstream.report.intervals import wilson
from npstream.report.page import PageSection, Table, page, text_table
from npstream.report.rates import Rates

_HEADER = (
    *("run", "events", "alarms", "FPR", "95% interval", "rate/tau", "TPR", "NP-score"),
    *("late labels", "held: warm-up", "budget", "digest"),
)
_TIERS = ("tier", "tau", "alarms", "FPR", "95% interval", "TPR", "NP-score")
_ROC_TAUS, _ROC_POINTS = 10.0, 201
"""A ROC is drawn up to so many times the largest tau, at so many false-positive rates."""
_LINES_MAX = 5
"""Partitions drawn: more lines than these cannot be distinguished."""

_CSV = (
    *("run", "partition", "records"),
    *("negatives", "positives", "false_positives", "true_positives", "threshold", "gamma"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One replay with the name it is compared under."""

    name: str
    settings: dict[str, Any]
    result: Result
    seconds: float

    @property
    def tau(self) -> float:
        """The rate this run was asked to hold."""
        return self.result.config.params.tau


def to_json(run: Run) -> dict[str, Any]:
    """Every number of a run, for scripts."""
    result = run.result
    return {
        "name": run.name,
        "settings": run.settings,
        "events": result.events,
        "seconds": run.seconds,
        "tau": run.tau,
        "alarm_rate": _number(_alarm_rate(_tally(result))),
        **_rates_json(result.rates, run.tau),
        "digest": result.digest,
        "tally": _tally(result),
        "tiers": {
            name: {"tau": tau, "alarms": alarms, **_rates_json(rates, tau)}
            for name, (tau, alarms, rates) in result.tiers.items()
        },
        "quarters": [_rates_json(quarter, run.tau) for quarter in result.quarters],
        "partitions": [
            {
                "partition": partition.partition,
                **_rates_json(partition.rates, run.tau),
                "tally": partition.tally.to_dict(),
                "digest": partition.digest,
                "chain": partition.chain,
                "halted": partition.halted,
            }
            for partition in result.partitions
        ],
    }


def _rates_json(rates: Rates, tau: float) -> dict[str, Any]:
    return {
        "fpr": _number(rates.fpr),
        "fpr_interval": [_number(end) for end in rates.fpr_interval()] if rates.negatives else None,
        "tpr": _number(rates.tpr),
        "np_score": rates.np_score(tau) if rates.measured else None,
        "negatives": rates.negatives,
        "positives": rates.positives,
        "false_positives": rates.false_positives,
        "true_positives": rates.true_positives,
    }


def _number(value: float) -> float | None:
    return None if value != value else value


def _tally(result: Result) -> dict[str, int]:
    """All partitions' counters, added up."""
    tallies = [partition.tally.to_dict() for partition in result.partitions]
    return {name: sum(tally[name] for tally in tallies) for name in tallies[0]} if tallies else {}


def _alarm_rate(tally: Mapping[str, int]) -> float:
    """Share of alarms among all decisions."""
    return tally["alarms"] / tally["decisions"] if tally.get("decisions") else math.nan


def to_text(runs: Sequence[Run]) -> str:
    """The tables for a terminal."""
    text = text_table(_HEADER, [_row(run) for run in runs])
    return "\n\n".join([text, *(text_table(table.header, table.rows) for table in _tiers_compared(runs))])


def _tiers_compared(runs: Sequence[Run]) -> list[Table]:
    """Those of all runs in one table, where there are any."""
    rows = [[run.name, *row] for run in runs for row in _tier_rows(run)]
    return [Table(header=("run", *_TIERS), rows=rows)] if rows else []


def _tier_rows(run: Run) -> list[list[str]]:
    """A line for each tier, the strictest first. An alarm of a stricter tier is one of the wider ones too."""
    return [
        [name, f"{tau:g}", str(alarms), *_rates_cells(rates, tau)]
        for name, (tau, alarms, rates) in run.result.tiers.items()
    ]


def _row(run: Run) -> list[str]:
    result = run.result
    rates = result.rates
    tally = _tally(result)
    fpr, interval, tpr, score = _rates_cells(rates, run.tau)
    return [
        run.name,
        f"{result.events}",
        f"{_alarm_rate(tally):.2%}" if tally.get("decisions") else "-",
        fpr,
        interval,
        _held(run, tally),
        tpr,
        score,
        _late_share(tally),
        str(tally.get("withheld_warmup", 0)),
        str(tally.get("withheld_budget", 0)),
        result.digest[:12],
    ]


def _held(run: Run, tally: Mapping[str, int]) -> str:
    """The controlled rate, of non-targets or of all observations, as a share of tau."""
    by_alarm = run.result.config.params.control == "alarm_rate"
    rate = _alarm_rate(tally) if by_alarm else run.result.rates.fpr
    return f"{rate / run.tau:.2f}" if math.isfinite(rate) else "-"


def _rates_cells(rates: Rates, tau: float) -> tuple[str, str, str, str]:
    """FPR, its interval, TPR and NP-score; what was not measured has no number."""
    if not rates.negatives and not rates.positives:
        return "no labels", "-", "-", "-"
    fpr, interval = "-", "-"
    if rates.negatives:
        low, high = rates.fpr_interval()
        fpr, interval = f"{rates.fpr:.4f}", f"{low:.4f}-{high:.4f}"
    tpr = f"{rates.tpr:.3f}" if rates.positives else "-"
    return fpr, interval, tpr, f"{rates.np_score(tau):.3f}" if rates.measured else "-"


def _late_share(tally: Mapping[str, int]) -> str:
    """Labels that came after their observation had left the buffer, among all that came on their own."""
    late = tally.get("labels_late", 0)
    came = late + tally.get("labels_joined", 0)
    return "-" if came == 0 else f"{late / came:.1%}"


def to_csv(runs: Sequence[Run]) -> str:
    """The curve of every partition of every run, one sample a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for run in runs:
        for partition in run.result.partitions:
            for sample in partition.samples:
                r = sample.rates
                counts = (r.negatives, r.positives, r.false_positives, r.true_positives)
                writer.writerow(
                    [run.name, partition.partition, sample.records, *counts, sample.threshold, sample.gamma]
                )
    return out.getvalue()


def to_html(runs: Sequence[Run], source: str) -> str:
    """One self-contained page."""
    overview = PageSection(
        heading="Comparison",
        text=[f"{source}. {_READING}"],
        tables=[Table(header=_HEADER, rows=[_row(run) for run in runs]), *_tiers_compared(runs)],
        figures=_roc(runs),
    )
    return page("npstream backtest", [overview, *(_details(run) for run in runs)])


_READING = (
    "Rates count labelled decisions; intervals are Wilson's at 95%. rate/tau is the rate that the run was to hold, of "
    "non-targets or (model.control: alarm_rate) of all observations, as a share of tau."
)


def _roc(runs: Sequence[Run]) -> list[str]:
    """What other thresholds would have detected, a line for each run, and what the run did; then over target rates."""
    return [*_roc_of_scores(runs), *_roc_of_rates(runs)]


def _roc_of_scores(runs: Sequence[Run]) -> list[str]:
    """Where only alarms and a sample are looked at, shares of the labelled are not those of all: no line."""
    layers: list[Layer] = []
    most = min(1.0, _ROC_TAUS * max(run.tau for run in runs))
    for index, run in enumerate(runs[:_LINES_MAX]):
        kept = [partition.margins.kept for partition in run.result.partitions]
        margin, y = (np.concatenate(column) for column in zip(*kept, strict=True))
        fpr, tpr = roc(margin, y, np.linspace(0.0, most, _ROC_POINTS))
        if not fpr.size or run.result.config.labels.review:
            continue
        layers.append(Line(x=fpr.tolist(), y=tpr.tolist(), label=run.name, colour=index, dash=index))
        did = [run.result.rates, *(rates for _, _, rates in run.result.tiers.values())]
        layers.append(Points(x=[r.fpr for r in did], y=[r.tpr for r in did], colour=index, radius=4.0))
    title = "ROC: threshold moved by a constant; dots are what was decided"
    figure = Figure(title=title, x_label="FPR", y_label="TPR", layers=layers, x_range=(0.0, most), y_range=(0.0, 1.0))
    return [svg(figure)] if layers else []


def _roc_of_rates(runs: Sequence[Run]) -> list[str]:
    """Detection over false positives, a line for each set of settings that was run with several target rates."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        others = {name: value for name, value in run.result.config.params.to_dict().items() if name != "tau"}
        if run.result.rates.negatives and run.result.rates.positives:
            alike.setdefault(repr(others), []).append(run)
    groups = [sorted(group, key=lambda run: run.tau) for group in alike.values() if len({run.tau for run in group}) > 1]
    lines: list[Layer] = [
        Line(
            x=[run.result.rates.fpr for run in group],
            y=[run.result.rates.tpr for run in group],
            label=f"{group[0].name} to {group[-1].name}",
            colour=index,
            dash=index,
        )
        for index, group in enumerate(groups)
    ]
    figure = Figure(title="ROC over target rates", x_label="FPR", y_label="TPR", layers=lines)
    return [svg(figure)] if lines else []


def _details(run: Run) -> PageSection:
    result = run.result
    rows = [[str(p.partition), str(p.tally.events), *_rates_cells(p.rates, run.tau)] for p in result.partitions]
    rows.append(["all", str(sum(p.tally.events for p in result.partitions)), *_rates_cells(result.rates, run.tau)])
    quarters = [[f"quarter {i + 1}", *_rates_cells(q, run.tau)] for i, q in enumerate(result.quarters)]
    tiers = _tier_rows(run)
    return PageSection(
        heading=run.name,
        text=[f"digest {result.digest}, {result.events} events in {run.seconds:.1f} s"],
        tables=[
            *([Table(header=_TIERS, rows=tiers)] if tiers else []),
            Table(header=("part", "FPR", "95% interval", "TPR", "NP-score"), rows=quarters),
            Table(header=("partition", "events", "FPR", "95% interval", "TPR", "NP-score"), rows=rows),
        ],
        figures=curves(run),
    )


def curves(run: Run) -> list[str]:
    """FPR, TPR, threshold and gamma over the records of each partition, and both rates of the whole group."""
    partitions = [partition for partition in run.result.partitions if partition.samples]
    shown = partitions[:_LINES_MAX]
    group = _group(partitions) if len(partitions) > 1 else []
    found = [
        _curve("False-positive rate so far", "FPR", [*_fpr_layers(shown, run.tau), *_group_line(group, "fpr")]),
        _curve("Detection rate so far", "TPR", [*_lines(shown, "tpr"), *_group_line(group, "tpr")]),
        _curve("Threshold", "score", _lines(shown, "threshold")),
        _curve("Multiplier gamma", "gamma", _lines(shown, "gamma")),
    ]
    return [figure for figure in found if figure is not None]


def _curve(title: str, y_label: str, layers: list[Layer]) -> str | None:
    """None when there is nothing to draw: no label, no rate."""
    if not any(math.isfinite(y) for layer in layers if isinstance(layer, Line) for y in layer.y):
        return None
    return svg(Figure(title=title, x_label="records of the partition", y_label=y_label, layers=layers))


def _group(partitions: Sequence[PartitionResult]) -> list[tuple[float, Rates]]:
    """The whole group sample by sample, as far as all partitions go: mean records of a partition, rates added up."""
    found = []
    for samples in zip(*(partition.samples for partition in partitions), strict=False):
        records = sum(sample.records for sample in samples) / len(samples)
        found.append((records, sum((sample.rates for sample in samples), Rates(0, 0, 0, 0))))
    return found


def _group_line(group: Sequence[tuple[float, Rates]], what: str) -> list[Layer]:
    if not group:
        return []
    y = [float(getattr(rates, what)) for _, rates in group]
    return [Line(x=[records for records, _ in group], y=y, label="all partitions", colour=_LINES_MAX)]


def _fpr_layers(partitions: Sequence[PartitionResult], tau: float) -> list[Layer]:
    layers: list[Layer] = [ReferenceLine(y=tau, label=f"tau = {tau:g}")]
    if len(partitions) == 1:
        samples = [sample for sample in partitions[0].samples if sample.rates.negatives]
        ends = [wilson(sample.rates.false_positives, sample.rates.negatives) for sample in samples]
        x = [float(sample.records) for sample in samples]
        layers.append(Band(x=x, low=[low for low, _ in ends], high=[high for _, high in ends], label="95% interval"))
    return layers + _lines(partitions, "fpr")


def _lines(partitions: Sequence[PartitionResult], what: str) -> list[Layer]:
    return [
        Line(
            x=[float(sample.records) for sample in partition.samples],
            y=[float(getattr(sample.rates if what in _RATES else sample, what)) for sample in partition.samples],
            label=f"partition {partition.partition}",
            colour=index,
            dash=index,
        )
        for index, partition in enumerate(partitions)
    ]


_RATES = ("fpr", "tpr")
