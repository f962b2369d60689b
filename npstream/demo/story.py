"""What the demo shows afterwards: one stream, three ways to decide, and the rate each of them held."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npstream.demo.stream import DemoStream
from npstream.model import Model, Params
from npstream.partition import PartitionConfig
from npstream.replay.replay import Result, replay
from npstream.replay.source import TopicSource
from npstream.report.figure import Figure, Line, ReferenceLine, svg
from npstream.report.page import PageSection, Table, page
from npstream.report.rates import Rates, rates

_WINDOW = 6
"""Samples in one window of the curves: some 3,000 events, so that a rate of 2% is 60 alarms."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to decide: its name, its rate over the stream, and its rates before and after the drift."""

    name: str
    events: Sequence[float]
    fpr: Sequence[float]
    before: Rates
    after: Rates


@dataclass(frozen=True, slots=True)
class Story:
    """The live run and its two rivals."""

    tau: float
    stream: DemoStream
    ways: Sequence[Way]
    chains: Sequence[str]


def make_story(config: PartitionConfig, source: TopicSource, stream: DemoStream) -> Story:
    """Replay what the worker decided, and let the rivals decide the same events."""
    live = replay(config, source)
    params = config.params
    paper = replay(config.with_params(Params(preset="paper", d=2, tau=params.tau, input="zscore")), source)
    ways = [
        _way("npstream", live),
        _fixed(config, stream),
        _way("the paper's algorithm", paper),
    ]
    return Story(params.tau, stream, ways, [partition.chain for partition in live.partitions])


def _way(name: str, result: Result) -> Way:
    """Rates in a sliding window of samples, partitions added up."""
    count = min(len(partition.samples) for partition in result.partitions)
    totals = [
        sum((partition.samples[i].rates for partition in result.partitions), Rates(0, 0, 0, 0)) for i in range(count)
    ]
    records = [sum(partition.samples[i].records for partition in result.partitions) for i in range(count)]
    events, fpr = [], []
    for i in range(count):
        start = totals[i - _WINDOW] if i >= _WINDOW else Rates(0, 0, 0, 0)
        negatives = totals[i].negatives - start.negatives
        if negatives:
            events.append(records[i] / 2)  # half of the records are labels
            fpr.append((totals[i].false_positives - start.false_positives) / negatives)
    quarters = result.quarters
    return Way(name, events, fpr, quarters[0] + quarters[1], quarters[2] + quarters[3])


def _fixed(config: PartitionConfig, stream: DemoStream) -> Way:
    """A model trained on the first half with the threshold it had then, never touched again."""
    drift = stream.drift
    model = Model.create(replace(config.params, budget=1e9))
    first = model.stream(stream.x[:drift], stream.y[:drift]).decision
    later = np.where(model.score_many(stream.x[drift:]) > model.threshold, 1, -1).astype(np.int8)
    decision = np.concatenate([first, later])
    negatives = np.flatnonzero(stream.y == -1)
    alarms = (decision[negatives] == 1).astype(np.float64)
    events, fpr = _sliding(negatives, alarms, 3000)
    before = rates(decision[:drift], stream.y[:drift])
    return Way("fixed model and threshold", events, fpr, before, rates(decision[drift:], stream.y[drift:]))


def _sliding(at: NDArray[np.int64], hits: NDArray[np.float64], window: int) -> tuple[list[float], list[float]]:
    total = np.concatenate([[0.0], np.cumsum(hits)])
    ends = np.arange(500, len(hits) + 1, 500)
    starts = np.maximum(ends - window, 0)
    return at[ends - 1].astype(float).tolist(), ((total[ends] - total[starts]) / (ends - starts)).tolist()


def picture(story: Story) -> str:
    """False-positive rate over the stream, as SVG."""
    top = 6 * story.tau
    lines = [
        Line(
            x=[e / 1000 for e in way.events],
            y=[min(v, top) for v in way.fpr],
            label=way.name,
            colour=i,
            dash=i,
        )
        for i, way in enumerate(story.ways)
    ]
    return svg(
        Figure(
            title=f"False-positive rate on a drifting stream (asked for: {story.tau:g})",
            x_label="events (thousands)",
            y_label=f"FPR of the last 3,000 events (cut at {top:g})",
            layers=[
                ReferenceLine(y=story.tau, label=f"tau = {story.tau:g}"),
                ReferenceLine(x=story.stream.drift / 1000, label="everything moves"),
                *lines,
            ],
            y_range=(0.0, top * 1.02),
            width=760,
        )
    )


_HEADER = ("", "FPR before", "FPR after", "after / tau", "detected before", "detected after")


def table(story: Story) -> tuple[Sequence[str], list[list[str]]]:
    """Header and rows of the summary."""
    rows = [
        [
            way.name,
            f"{way.before.fpr:.4f}",
            f"{way.after.fpr:.4f}",
            f"{way.after.fpr / story.tau:.2f}",
            f"{way.before.tpr:.1%}",
            f"{way.after.tpr:.1%}",
        ]
        for way in story.ways
    ]
    return _HEADER, rows


def to_json(story: Story) -> dict[str, Any]:
    """The same as numbers."""
    return {
        "tau": story.tau,
        "events": len(story.stream.y),
        "ways": [
            {
                "name": way.name,
                "fpr_before": way.before.fpr,
                "fpr_after": way.after.fpr,
                "tpr_before": way.before.tpr,
                "tpr_after": way.after.tpr,
            }
            for way in story.ways
        ],
    }


def report(story: Story) -> str:
    """A self-contained page."""
    header, rows = table(story)
    text = [
        f"{len(story.stream.y):,} events with two features; labels come {story.stream.delay} events late; half way the "
        "features move and stretch. The false-positive rate asked for is the dashed line.",
        "npstream's line is a replay of the decisions that the worker published, bit for bit the same.",
    ]
    section = PageSection(heading="What was asked, what was held", text=text, tables=[Table(header=header, rows=rows)])
    return page("npstream demo", [replace(section, figures=[picture(story)])])
