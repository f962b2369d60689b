"""What replays found: a table with intervals, curves over the stream, CSV and JSON of every number."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npstream.replay.margins import roc
from npstream.replay.replay import Result, Sample
from npstream.report.figure import Band, Figure, Layer, Line, Points, ReferenceLine, svg
from npstream.report.intervals import wilson
from npstream.report.page import PageSection, Table, page, text_table
from npstream.report.rates import Rates

_HEADER = (
    *("run", "events", "alarms", "FPR", "95% interval", "rate/tau", "TPR", "NP-score"),
    *("late labels", "withheld: warm-up", "by budget", "digest"),
)
_TIERS = ("tier", "tau", "alarms", "rate/tau", "FPR", "95% interval", "TPR", "NP-score")
_ROC_TAUS, _ROC_POINTS = 10.0, 201
"""A ROC is drawn up to so many times the largest tau, at so many false-positive rates."""
_LINES_MAX = 5
"""Partitions drawn: more lines than these cannot be distinguished."""

_CSV = (
    *("run", "partition", "records", "decisions", "alarms"),
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
        "alarm_rate": _number(_alarm_rate(run)),
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


def _alarm_rate(run: Run, alarms: int | None = None) -> float:
    """Share of alarms among all decisions: of all alarms, or of so many."""
    tally = _tally(run.result)
    return _share(tally.get("alarms", 0) if alarms is None else alarms, tally.get("decisions", 0))


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
        [name, f"{tau:g}", *_held(run, _alarm_rate(run, alarms), rates, tau), *_rates_cells(rates, tau)]
        for name, (tau, alarms, rates) in run.result.tiers.items()
    ]


def _row(run: Run) -> list[str]:
    result = run.result
    rates = result.rates
    tally = _tally(result)
    fpr, interval, tpr, score = _rates_cells(rates, run.tau)
    alarms, held = _held(run, _alarm_rate(run), rates, run.tau)
    return [
        run.name,
        f"{result.events}",
        alarms,
        fpr,
        interval,
        held,
        tpr,
        score,
        _late_share(tally),
        str(tally.get("withheld_warmup", 0)),
        str(tally.get("withheld_budget", 0)),
        result.digest[:12],
    ]


def _held(run: Run, alarm_rate: float, rates: Rates, tau: float) -> tuple[str, str]:
    """The share of alarms, and the controlled rate, of non-targets or of all observations, as a share of tau."""
    rate = alarm_rate if _is_by_alarm(run) else rates.fpr
    return (
        f"{alarm_rate:.2%}" if math.isfinite(alarm_rate) else "-",
        f"{rate / tau:.2f}" if math.isfinite(rate) else "-",
    )


def _is_by_alarm(run: Run) -> bool:
    return run.result.config.params.control == "alarm_rate"


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
                said = (sample.records, sample.decisions, sample.alarms)
                counts = (r.negatives, r.positives, r.false_positives, r.true_positives)
                writer.writerow([run.name, partition.partition, *said, *counts, sample.threshold, sample.gamma])
    return out.getvalue()


def to_html(runs: Sequence[Run], source: str) -> str:
    """One self-contained page."""
    overview = PageSection(
        heading="Comparison",
        text=[f"Events: {source}. {_READING}"],
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
    parts = [(str(p.partition), p.tally.events, p.tally.alarm_rate, p.rates) for p in result.partitions]
    parts.append(("all", sum(p.tally.events for p in result.partitions), _alarm_rate(run), result.rates))
    rows = [
        [name, str(events), *_held(run, alarm_rate, rates, run.tau), *_rates_cells(rates, run.tau)]
        for name, events, alarm_rate, rates in parts
    ]
    quarters = [[f"quarter {i + 1}", *_rates_cells(q, run.tau)] for i, q in enumerate(result.quarters)]
    tiers = _tier_rows(run)
    return PageSection(
        heading=run.name,
        text=[f"digest {result.digest}, {result.events} events in {run.seconds:.1f} s"],
        tables=[
            *([Table(header=_TIERS, rows=tiers)] if tiers else []),
            Table(header=("part", "FPR", "95% interval", "TPR", "NP-score"), rows=quarters),
            Table(header=("partition", "events", *_TIERS[2:]), rows=rows),
        ],
        figures=curves(run),
    )


def curves(run: Run) -> list[str]:
    """Rates, threshold and gamma over the records of each partition, and rates of the whole group."""
    partitions = {f"partition {part.partition}": part.samples for part in run.result.partitions if part.samples}
    shown = [(*each, index, index) for index, each in enumerate([*partitions.items()][:_LINES_MAX])]
    whole = [("all partitions", _group([*partitions.values()]), _LINES_MAX, 0)] if len(partitions) > 1 else []
    held = _alarms if _is_by_alarm(run) else _false_alarms

    def rate(counted: _Counted) -> list[Layer]:
        """The target where this is what is held; the interval of a single partition."""
        tau: list[Layer] = [ReferenceLine(y=run.tau, label=f"tau = {run.tau:g}")] if counted is held else []
        band = [_band(samples, counted) for samples in partitions.values() if len(partitions) == 1]
        return [*tau, *band, *_lines([*shown, *whole], lambda sample: _share(*counted(sample)))]

    found = [
        *([_curve("Alarm rate so far", "share of alarms", rate(_alarms), low=0)] if held is _alarms else []),
        _curve("False-positive rate so far", "FPR", rate(_false_alarms), low=0),
        _curve("Detection rate so far", "TPR", _lines([*shown, *whole], lambda sample: sample.rates.tpr), low=0),
        _curve("Threshold", "score", _lines(shown, lambda sample: sample.threshold)),
        _curve("Multiplier gamma", "gamma", _lines(shown, lambda sample: sample.gamma)),
    ]
    return [figure for figure in found if figure is not None]


_Counted = Callable[[Sample], tuple[int, int]]
"""How often, of how many."""


def _alarms(sample: Sample) -> tuple[int, int]:
    return sample.alarms, sample.decisions


def _false_alarms(sample: Sample) -> tuple[int, int]:
    return sample.rates.false_positives, sample.rates.negatives


def _share(hits: int, of: int) -> float:
    return hits / of if of else math.nan


def _curve(title: str, y_label: str, layers: Sequence[Layer], low: float | None = None) -> str | None:
    """None when there is nothing to draw: no label, no rate. Its axis begins at `low`, by default with the data."""
    drawn = [y for layer in layers if isinstance(layer, Line) for y in layer.y if math.isfinite(y)]
    if not drawn:
        return None
    asked = [layer.y for layer in layers if isinstance(layer, ReferenceLine) and layer.y is not None]
    y_range = None if low is None else (low, 1.1 * max([*drawn, *asked]) or 1.0)
    figure = Figure(title=title, x_label="records of the partition", y_label=y_label, layers=layers, y_range=y_range)
    return svg(figure)


def _group(partitions: Sequence[Sequence[Sample]]) -> list[Sample]:
    """The whole group sample by sample, as far as all partitions go: mean records of a partition, counts added up."""
    found = []
    for samples in zip(*partitions, strict=False):
        records, decisions, alarms = (
            sum(getattr(each, name) for each in samples) for name in ("records", "decisions", "alarms")
        )
        rates = sum((each.rates for each in samples), Rates(0, 0, 0, 0))
        found.append(Sample(records // len(samples), decisions, alarms, rates, math.nan, math.nan))
    return found


def _band(samples: Sequence[Sample], counted: _Counted) -> Band:
    known = [sample for sample in samples if counted(sample)[1]]
    ends = [wilson(*counted(sample)) for sample in known]
    x = [float(sample.records) for sample in known]
    return Band(x=x, low=[low for low, _ in ends], high=[high for _, high in ends], label="95% interval")


def _lines(shown: Sequence[tuple[str, Sequence[Sample], int, int]], value: Callable[[Sample], float]) -> list[Line]:
    """A line for each name with its samples, colour and dash."""
    return [
        Line(
            x=[float(sample.records) for sample in samples],
            y=[float(value(sample)) for sample in samples],
            label=name,
            colour=colour,
            dash=dash,
        )
        for name, samples, colour, dash in shown
    ]
