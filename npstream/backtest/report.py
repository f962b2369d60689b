"""What replays found: a table with intervals, curves over the stream, CSV and JSON of every number."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npstream.backtest.replay import PartitionResult, Result
from npstream.figure import Band, Figure, Layer, Line, Rule, svg
from npstream.model.evaluate import Rates
from npstream.model.intervals import wilson
from npstream.page import Section, Table, page, text_table

_HEADER = ("run", "events", "FPR", "95% interval", "FPR/tau", "TPR", "NP-score", "late labels", "withheld", "digest")

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
        **_rates_json(result.rates, run.tau),
        "digest": result.digest,
        "quarters": [_rates_json(quarter, run.tau) for quarter in result.quarters],
        "partitions": [
            {
                "partition": partition.partition,
                **_rates_json(partition.rates, run.tau),
                "tally": partition.tally.to_dict(),
                "digest": partition.digest,
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
        "np_score": rates.np_score(tau),
        "negatives": rates.negatives,
        "positives": rates.positives,
        "false_positives": rates.false_positives,
        "true_positives": rates.true_positives,
    }


def _number(value: float) -> float | None:
    return None if value != value else value


def to_text(runs: Sequence[Run]) -> str:
    """The table for a terminal."""
    return text_table(_HEADER, [_row(run) for run in runs])


def _row(run: Run) -> list[str]:
    result = run.result
    rates = result.rates
    tallies = [partition.tally for partition in result.partitions]
    withheld = sum(tally.withheld_warmup + tally.withheld_budget for tally in tallies)
    return [
        run.name,
        f"{result.events}",
        f"{rates.fpr:.4f}",
        _interval(rates),
        f"{rates.fpr / run.tau:.2f}",
        f"{rates.tpr:.3f}",
        f"{rates.np_score(run.tau):.3f}",
        _late_share(result),
        f"{withheld}",
        result.digest[:12],
    ]


def _interval(rates: Rates) -> str:
    if not rates.negatives:
        return "-"
    low, high = rates.fpr_interval()
    return f"{low:.4f}-{high:.4f}"


def _late_share(result: Result) -> str:
    late = sum(partition.tally.labels_late for partition in result.partitions)
    came = late + sum(partition.tally.labels_joined for partition in result.partitions)
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
    overview = Section(
        heading="Comparison",
        text=[f"{source}. Rates count labelled decisions; intervals are Wilson's at 95%."],
        tables=[Table(header=_HEADER, rows=[_row(run) for run in runs])],
        figures=_roc(runs),
    )
    return page("npstream backtest", [overview, *(_details(run) for run in runs)])


def _roc(runs: Sequence[Run]) -> list[str]:
    taus = sorted({run.tau for run in runs})
    if len(taus) < 2:
        return []
    best = sorted(runs, key=lambda run: run.result.rates.fpr)
    line = Line(x=[run.result.rates.fpr for run in best], y=[run.result.rates.tpr for run in best], label="runs")
    return [svg(Figure(title="ROC over target rates", x_label="FPR", y_label="TPR", layers=[line]))]


def _details(run: Run) -> Section:
    result = run.result
    rows = [_partition_row(partition, run.tau) for partition in result.partitions]
    quarters = [
        [f"quarter {i + 1}", f"{q.fpr:.4f}", _interval(q), f"{q.tpr:.3f}", f"{q.np_score(run.tau):.3f}"]
        for i, q in enumerate(result.quarters)
    ]
    return Section(
        heading=run.name,
        text=[f"digest {result.digest}, {result.events} events in {run.seconds:.1f} s"],
        tables=[
            Table(header=("part", "FPR", "95% interval", "TPR", "NP-score"), rows=quarters),
            Table(header=("partition", "events", "FPR", "95% interval", "TPR", "NP-score"), rows=rows),
        ],
        figures=curves(run),
    )


def _partition_row(partition: PartitionResult, tau: float) -> list[str]:
    rates = partition.rates
    return [
        str(partition.partition),
        str(partition.tally.events),
        f"{rates.fpr:.4f}",
        _interval(rates),
        f"{rates.tpr:.3f}",
        f"{rates.np_score(tau):.3f}",
    ]


def curves(run: Run) -> list[str]:
    """FPR, TPR, threshold and gamma over the records of each partition."""
    partitions = [partition for partition in run.result.partitions if partition.samples][:6]
    if not partitions:
        return []
    return [
        _curve("False-positive rate", "FPR", _fpr_layers(partitions, run.tau)),
        _curve("Detection rate", "TPR", _lines(partitions, "tpr")),
        _curve("Threshold", "score", _lines(partitions, "threshold")),
        _curve("Multiplier gamma", "gamma", _lines(partitions, "gamma")),
    ]


def _curve(title: str, y_label: str, layers: list[Layer]) -> str:
    return svg(Figure(title=title, x_label="records of the partition", y_label=y_label, layers=layers))


def _fpr_layers(partitions: Sequence[PartitionResult], tau: float) -> list[Layer]:
    layers: list[Layer] = [Rule(y=tau, label=f"tau = {tau:g}")]
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
            y=[
                float(getattr(sample.rates if what in ("fpr", "tpr") else sample, what)) for sample in partition.samples
            ],
            label=f"partition {partition.partition}",
            colour=index,
            dash=index,
        )
        for index, partition in enumerate(partitions)
    ]
