"""Readings, samples and events for the tests of what a worker shows."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from npstream.codec.decoder import EventConfig
from npstream.model import ALGORITHM, Params
from npstream.monitor.status import Identity
from npstream.partition import LabelConfig, PartitionConfig
from npstream.partition.counters import Tally
from npstream.records import Phase, Reading

IDENTITY = Identity("g", "events", "worker-0", "0.0.0", ALGORITHM)
_WAIT_S = 60.0


Sample = tuple[str, frozenset[tuple[str, str]]]


def sample(name: str, **labels: str) -> Sample:
    """A sample's name and labels, without the two that all of them share."""
    return name, frozenset((key, value) for key, value in labels.items() if key not in ("group", "topic"))


def samples(text: str) -> dict[Sample, float]:
    """Every sample of a scrape."""
    families = text_string_to_metric_families(text)
    return {sample(s.name, **s.labels): s.value for family in families for s in family.samples}


def reading(**changes: Any) -> Reading:
    """A partition that has just begun, except for `changes`."""
    fields: dict[str, Any] = {
        "partition": 0,
        "phase": Phase.LIVE,
        "next_offset": 0,
        "replay_to": 0,
        "saved_offset": 0,
        "counts": Tally().to_dict(),
        "bad_events": {},
        "preset": "plus",
        "control": "fpr",
        "learning": True,
        "d": 2,
        "features": None,
        "tau": 0.1,
        "t": 0,
        "negatives": 0,
        "positives": 0,
        "false_alarms": 0,
        "detections": 0,
        "threshold": 0.0,
        "gamma": 1.0,
        "budget_left": 20.0,
        "outstanding": 0,
        "pending": 0,
        "correctable": 0,
        "warming_up": True,
    }
    return Reading(**(fields | changes))


def config(d: int = 2, **changes: object) -> PartitionConfig:
    """A small model at tau 0.1."""
    fields: dict[str, object] = {
        "params": Params(d=d, D=8, tau=0.1),
        "events": EventConfig(d=d),
        "labels": LabelConfig(buffer_max=50),
    }
    return PartitionConfig(**(fields | changes))  # type: ignore[arg-type]


def events(n: int, seed: int = 0, d: int = 2) -> list[bytes]:
    """Labelled events whose targets lie shifted."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.3, 1, -1)
    rows = rng.normal(0.0, 1.0, (n, d)) + np.where(labels > 0, 2.0, 0.0)[:, None]
    return [json.dumps({"x": row.tolist(), "y": int(y)}).encode() for row, y in zip(rows, labels, strict=True)]


def handled(*counts: int) -> Callable[[dict[str, Any]], bool]:
    """Whether each partition has handled this many events."""
    return lambda status: [p.get("events") for p in status["partitions"]] == list(counts)
