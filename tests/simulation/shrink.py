"""A failing schedule cut down to what it takes to fail, by trying without one part after another."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tests.simulation.schedule import Action, Fault, Feed, Schedule

TRIALS_MAX = 600
"""Schedules that are run to make one smaller."""


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool], trials_max: int = TRIALS_MAX) -> Schedule:
    """The smallest schedule found that still fails; `schedule` must."""
    left = trials_max

    def still_fails(smaller: Schedule) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(smaller)

    smallest = schedule
    while (smaller := next(filter(still_fails, _smaller(smallest)), None)) is not None and left > 0:
        smallest = _without_chunks(smaller, still_fails)
    return smallest


def _without_chunks(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """Leave out runs of actions, long ones first."""
    size = len(schedule.actions) // 2
    while size:
        at = 0
        while at < len(schedule.actions):
            shorter = replace(schedule, actions=(*schedule.actions[:at], *schedule.actions[at + size :]))
            if fails(shorter):
                schedule = shorter
            else:
                at += size
        size //= 2
    return schedule


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Variants with one thing less."""
    yield replace(schedule, labels=False) if schedule.labels else replace(schedule, actions=())
    if schedule.partitions > 1:
        yield replace(schedule, partitions=schedule.partitions - 1)
    used = {action.worker for action in schedule.actions if hasattr(action, "worker")}
    if schedule.workers > 1 and schedule.workers - 1 not in used:
        yield replace(schedule, workers=schedule.workers - 1)
    for at in range(len(schedule.actions)):
        yield _with(schedule, at, ())
        for simpler in _simpler(schedule.actions[at]):
            yield _with(schedule, at, (simpler,))


def _with(schedule: Schedule, at: int, instead: Sequence[Action]) -> Schedule:
    return replace(schedule, actions=(*schedule.actions[:at], *instead, *schedule.actions[at + 1 :]))


def _simpler(action: Action) -> Iterator[Action]:
    match action:
        case Fault(skip=skip, meanwhile=meanwhile):
            if skip:
                yield replace(action, skip=0)
            if meanwhile:
                yield replace(action, meanwhile=meanwhile // 2)
        case Feed(events, aborted):
            if aborted:
                yield replace(action, aborted=0)
            if events > 1:
                yield replace(action, events=events // 2)
