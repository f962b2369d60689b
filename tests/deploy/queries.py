"""Which metrics and labels a query names, judged by the worker's own list."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from npstream.observe import METRICS, Metric

TARGET_LABELS = frozenset({"namespace", "instance"})
"""Labels that Prometheus adds to every series it scrapes."""

OPEN_LABELS = frozenset({"group", "topic", "partition"})
"""Labels whose values are the user's own."""

_WORD = re.compile(r"-?\w+")
_SELECTOR = re.compile(r"\b((?:npstream|process)_[a-z0-9_]+)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|=|!~|!=)\s*"([^"]*)"')
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}


class Selector(NamedTuple):
    """One series as a query names it."""

    name: str
    matchers: tuple[tuple[str, str], ...]


def exported() -> dict[str, Metric]:
    """Every name a scrape of a worker can hold, with the metric it belongs to."""
    names: dict[str, Metric] = {}
    for metric in METRICS:
        for suffix in _SUFFIXES.get(metric.kind, ("",)):
            names[metric.name + suffix] = metric
    return names


def selectors(query: str) -> Iterator[Selector]:
    """Every series a query names."""
    for name, inside in _SELECTOR.findall(query):
        matchers = tuple((label, value) for label, _, value in _MATCHER.findall(inside))
        yield Selector(name, matchers)


def complaints(query: str) -> Iterator[str]:
    """What in a query no worker exports: names, labels, and label values that no metric's help knows."""
    known = exported()
    for selector in selectors(query):
        metric = known.get(selector.name)
        if metric is None:
            yield f"{selector.name} is not exported"
            continue
        for label, value in selector.matchers:
            if label in TARGET_LABELS or value.startswith("$"):
                continue
            if label not in metric.labels:
                yield f"{selector.name} has no label {label}"
            if label not in OPEN_LABELS:
                words = vocabulary(label)
                yield from (f"no metric is ever {label}={word}" for word in value.split("|") if word not in words)


def vocabulary(label: str) -> set[str]:
    """Every word in the help of the metrics that have a label: its values are named there."""
    return {word for metric in METRICS if label in metric.labels for word in _WORD.findall(metric.help)}
