"""One schedule, from its first action to the comparison with an undisturbed run."""

import logging
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import assert_never

import structlog

from npstream.observe import Observer
from npstream.partition import segments
from npstream.worker import Limits, Worker
from tests.simulation.cluster import SESSION_TIMEOUT_S
from tests.simulation.process import Disturbed, Met, Process
from tests.simulation.requests import Requests
from tests.simulation.schedule import (
    Action,
    Fault,
    Feed,
    Hurry,
    Leave,
    Outage,
    Replace,
    Retune,
    Schedule,
    Shuffle,
    Turn,
    Wait,
)
from tests.simulation.stage import GROUP, Stage

_TURN_S = 0.1
_ROUNDS_MAX = 300
"""Turns of each worker within which a group that nothing disturbs any more must have decided everything."""


@dataclass
class Seen:
    """What has happened, over one schedule or many."""

    met: Counter[Met] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    """Actions of the schedule, ends of sessions and processes, changes of ownership, replays."""
    equal: int = 0

    def add(self, other: "Seen") -> None:
        """Count this as well."""
        self.met.update(other.met)
        self.events.update(other.events)
        self.equal += other.equal


class Watch(Observer):
    """Counts what the workers report; a partition that is paused is never right here."""

    def __init__(self, events: Counter[str]) -> None:
        self._events = events
        self.pauses: list[str] = []

    def rebalanced(self, change: str) -> None:
        self._events[change] += 1

    def went_live(self, partition: int, replayed: int) -> None:
        self._events["replay"] += 1

    def session_ended(self, cause: str) -> None:
        self._events["session ended"] += 1

    def paused(self, partition: int, reason: str) -> None:
        self.pauses.append(reason)


class Simulation:
    """A group under a schedule, in one thread: while a request hangs, the actions after it happen inside of it."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._actions: Iterator[Action] = iter(schedule.actions)
        self.stage = Stage(schedule)
        self.seen = Seen()
        self._watch = Watch(self.seen.events)
        self._processes = [self._process(number) for number in range(schedule.workers)]

    def _process(self, number: int) -> Process:
        stage, seen = self.stage, self.seen
        limits = Limits(batch_max=self._schedule.batch_max, poll_s=0.0)

        def build(requests: Requests) -> Worker:
            return Worker(
                lambda: stage.connect(number, requests),
                stage.origin(),
                limits,
                stage.clock,
                threading.Event(),
                self._watch,
            )

        return Process(
            lambda armed: Disturbed(stage.cluster, armed, self._meanwhile, seen.met), build, stage.clock, seen.events
        )

    def run(self) -> Seen:
        """Raises for whatever is not as it must be."""
        for action in self._actions:
            self._do(action)
        for process in self._processes:
            process.armed.clear()
        while self.stage.cluster.is_down:
            self.stage.clock.sleep(_TURN_S)
        self._until_decided()
        self._crash()  # so that every partition is restored and proved once more
        self.stage.feed(3)
        self._until_decided()
        for process in self._processes:
            process.leave()
        self.seen.equal = self.stage.check()
        return self.seen

    def _do(self, action: Action) -> None:
        stage = self.stage
        self.seen.events[type(action).__name__.lower()] += 1
        stage.clock.sleep(_TURN_S)
        match action:
            case Turn(worker):
                self._turn(self._processes[worker])
            case Fault(worker):
                self._processes[worker].armed.append(action)
            case Hurry(worker):
                self._processes[worker].hurries ^= True
            case Feed(events, aborted):
                stage.feed(events, aborted)
            case Leave(worker):
                self._processes[worker].leave()
            case Replace(worker):
                self._processes[worker].retire()
                self._processes[worker] = self._process(worker)
            case Shuffle():
                stage.cluster.group(GROUP, self._schedule.partitions).shuffle()
            case Outage(seconds):
                stage.cluster.restart(seconds)
            case Wait(seconds):
                stage.clock.sleep(seconds)
            case Retune(tau):
                stage.retune(tau)
            case _:
                assert_never(action)

    def _turn(self, process: Process) -> None:
        process.turn()
        assert not self._watch.pauses, f"a partition was paused: {self._watch.pauses[0]}"

    def _meanwhile(self, hold_s: float, count: int) -> None:
        """What happens while a request hangs."""
        self.stage.clock.sleep(hold_s)
        self.stage.cluster.turn()
        for action in islice(self._actions, count):
            self._do(action)

    def _until_decided(self) -> None:
        for _ in range(_ROUNDS_MAX):
            for process in self._processes:
                self._turn(process)
                self.stage.clock.sleep(_TURN_S)
            if self.stage.decided():
                return
        raise AssertionError(f"events are undecided after {_ROUNDS_MAX} undisturbed turns of each worker")

    def _crash(self) -> None:
        for process in self._processes:
            process.kill()
        self.stage.clock.sleep(SESSION_TIMEOUT_S + 1)


@contextmanager
def quiet() -> Iterator[None]:
    """No log lines, and segments of a few entries: short streams then write, name and remove many."""
    settings, entries_max = structlog.get_config(), segments.ENTRIES_MAX
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    segments.ENTRIES_MAX = 5
    try:
        yield
    finally:
        structlog.configure(**settings)
        segments.ENTRIES_MAX = entries_max


def simulate(schedule: Schedule) -> Seen:
    """Run one schedule; raises for whatever is not as it must be."""
    with quiet():
        return Simulation(schedule).run()


def attempt(schedule: Schedule) -> tuple[Seen, str | None]:
    """Run one schedule; return what happened, and what was wrong in the end, if anything was."""
    with quiet():
        simulation = Simulation(schedule)
        try:
            simulation.run()
        except Exception as error:  # whatever it is, it must not happen
            where = traceback.extract_tb(error.__traceback__)[-1]
            return simulation.seen, f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        return simulation.seen, None


def is_sound(schedule: Schedule) -> bool:
    """Whether nothing goes wrong."""
    return attempt(schedule)[1] is None
