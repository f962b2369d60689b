"""Which tests a run takes, and in what order."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import settings

QUICK_EXAMPLES = 20
"""Of a property, in a quick run."""

BROKER_FIXTURES = {"kafka", "private_kafka", "three_brokers", "start_kafka", "kafka_jars"}
REGISTRY_FIXTURES = {"registry", "start_registry"}

_LEFT_OUT_BY_QUICK = ("kafka", "browser", "slow", "deploy/")
"""Markers, or folders of tests: what needs a broker, a browser, processes of its own, or runs helm for every case."""

# Seconds, roughly: only the order of whole files follows from them.
_SLOW_S, _BROKER_S, _OTHER_S = 5.0, 3.0, 0.1
_OF_ITS_LIMIT = 1 / 40
"""A test that was given a time limit of its own takes about this share of it."""


def traits(item: pytest.Item) -> set[str]:
    """Everything a rule may ask for: markers, fixtures, and the folder of tests with a slash."""
    folder = item.path.relative_to(item.config.rootpath / "tests").parts[0] + "/"
    return {folder, *(marker.name for marker in item.iter_markers()), *getattr(item, "fixturenames", ())}


def mark_broker_tests(items: Iterable[pytest.Item]) -> None:
    """Whoever asks for a broker is a `kafka` test, marked or not; one that asks for a registry is `slow`."""
    for item in items:
        asked = set(getattr(item, "fixturenames", ()))
        if BROKER_FIXTURES & asked:
            item.add_marker(pytest.mark.kafka)
        if REGISTRY_FIXTURES & asked:
            item.add_marker(pytest.mark.slow)


def left_out(items: list[pytest.Item]) -> tuple[list[pytest.Item], str]:
    """What `--quick` leaves out, and a line that says how many and why."""
    reasons = {item: next((name for name in _LEFT_OUT_BY_QUICK if name in traits(item)), "") for item in items}
    gone = [item for item, reason in reasons.items() if reason]
    counted = Counter(reasons[item] for item in gone)
    reported = ", ".join(f"{counted[name]} {name}" for name in _LEFT_OUT_BY_QUICK)
    return gone, f"quick: {len(items) - len(gone)} tests; left out {len(gone)} ({reported}): make test runs them"


def draw_few_examples(items: Iterable[pytest.Item]) -> None:
    """Of properties that ask for many examples themselves too."""
    for item in items:
        test = getattr(item, "obj", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if test is not None and own is not None and own.max_examples > QUICK_EXAMPLES:
            test._hypothesis_internal_use_settings = settings(own, max_examples=QUICK_EXAMPLES)


def sort_by_cost(items: list[pytest.Item]) -> None:
    """The slowest files first, so that all processes of a run end together; the order within a file stays."""
    files: dict[Path, float] = {}
    for item in items:
        files[item.path] = files.get(item.path, 0.0) + cost_s(item)
    items.sort(key=lambda item: -files[item.path])


def cost_s(item: pytest.Item) -> float:
    """A guess at how long a test takes."""
    limit = item.get_closest_marker("timeout")
    if limit is not None:
        return float(limit.args[0]) * _OF_ITS_LIMIT
    found = traits(item)
    return _SLOW_S if "slow" in found else _BROKER_S if "kafka" in found else _OTHER_S
