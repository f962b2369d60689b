"""Counters of one partition: part of the state, exported as metrics.

Of these, events say how long an observation waits, and decisions who is reviewed; nothing else reads them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npstream.model import Outcome, Reason

JOINING = (
    "labels_with_event",
    "labels_joined",
    "labels_echoed",
    "labels_early",
    "labels_late",
    "labels_duplicate",
    "labels_orphan",
    "observations_duplicate",
    "observations_expired",
    "labels_corrected",
)
"""The counters that compiled code adds to, in its order."""


@dataclass(slots=True)
class Tally:
    """How many of each thing there were since the partition's first event."""

    events: int = 0
    decisions: int = 0
    alarms: int = 0
    withheld_warmup: int = 0
    withheld_budget: int = 0
    labels_with_event: int = 0
    labels_joined: int = 0
    labels_echoed: int = 0
    labels_early: int = 0
    labels_late: int = 0
    labels_duplicate: int = 0
    labels_orphan: int = 0
    labels_corrected: int = 0
    observations_duplicate: int = 0
    observations_expired: int = 0
    dead_letters: int = 0

    def add(self, counts: Sequence[int]) -> None:
        """What joining a batch has counted, in the order of `JOINING`."""
        for name, count in zip(JOINING, counts, strict=True):
            setattr(self, name, getattr(self, name) + count)

    def to_dict(self) -> dict[str, Any]:
        """All counters by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def alarm_rate(self) -> float:
        """Share of alarms among all decisions; NaN before the first."""
        return self.alarms / self.decisions if self.decisions else math.nan

    def count_decisions(self, outcome: Outcome) -> None:
        """Take note of a batch of published decisions."""
        self.decisions += len(outcome.decision)
        self.alarms += int((outcome.decision == 1).sum())
        self.withheld_warmup += int((outcome.reason == Reason.WARMUP).sum())
        self.withheld_budget += int((outcome.reason == Reason.BUDGET).sum())
