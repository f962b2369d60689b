"""Schedules that the simulation has found, cut down: each was a bug of the worker."""

from dataclasses import replace

import pytest

from tests.simulation.schedule import Action, Fault, Feed, Kind, Replace, Schedule, Shuffle, Turn
from tests.simulation.simulation import attempt


def schedule(*actions: Action, workers: int = 2, labels: bool = False) -> Schedule:
    """One partition, small batches."""
    return Schedule(
        seed=2,
        partitions=1,
        workers=workers,
        static=True,
        labels=labels,
        corrections=False,
        batch_max=3,
        checkpoint_every=5,
        compact_every=20,
        actions=actions,
    )


FOUND = {
    "a worker that stops between its two looks at a new partition, while another starts it": schedule(
        Feed(1), Fault(1, "log", Kind.STOPS, hold_s=3.0, meanwhile=3), Turn(1), Replace(1), Turn(1)
    ),
    "a worker that hangs while it reads a checkpoint, until compaction has taken it, and another has gone on": replace(
        schedule(
            *(Turn(2), Turn(0), Fault(0, "checkpoint", Kind.HANGS, hold_s=20.0, meanwhile=25), Turn(2), Feed(10)),
            *(Turn(0), Replace(0), Turn(0), Turn(2), Turn(0), Shuffle(), Feed(10), Feed(1, aborted=2)),
            *(Turn(1), Turn(0), Turn(1), Turn(1), Turn(2), Turn(0)),
            workers=3,
        ),
        seed=8103,
        partitions=2,
        batch_max=8,
        compact_every=5,
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_once_does_not_come_back(what: str) -> None:
    """Decisions equal the oracle's, and nothing is paused."""
    assert attempt(FOUND[what])[1] is None
