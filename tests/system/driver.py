"""The driver: keeps workers alive through their planned deaths until everything is fed, done and decided."""

import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from tests.broker import Cluster
from tests.stage.patience import TURN_S
from tests.stage.process import WorkerProcess
from tests.stage.site import Site
from tests.system.faults import Fault, Life
from tests.system.feed import Feed
from tests.system.routing import RouterProcess

_KILLED = -signal.SIGKILL
_PROGRESS_S = 1.0
_NUDGE_S = 10.0


class Patient:
    """One worker under treatment: its lives, and which of its faults have happened."""

    def __init__(self, worker: WorkerProcess, lives: list[Life]) -> None:
        self.worker = worker
        self.fired: list[Fault] = []
        self.exits: list[int] = []
        self.kills_from_outside = 0
        self._lives = [list(life) for life in lives]
        self._continue_at: float | None = None
        self._settled_at: float | None = None
        self._killed_from_outside = False

    @property
    def left(self) -> list[Fault]:
        """Faults that have not happened yet."""
        return [fault for life in self._lives for fault in life]

    def tend(self, now: float) -> None:
        """Start it when it is down, let it go on when it was stopped long enough."""
        if not self.worker.running:
            self._bury()
            self._settled_at = None
            self.worker.start(",".join(map(str, self._lives[0] if self._lives else ())))
        elif self.worker.stopped:
            self._hold(now)
        elif self._waits_for_replay() and self.worker.owned():
            self._settled_at = self._settled_at or now
            if now - self._settled_at > _NUDGE_S:
                self._kill_from_outside()

    def _bury(self) -> None:
        code, self._continue_at = self.worker.returncode, None
        if code is None:
            return
        if code != _KILLED:
            self.exits.append(code)
        elif not self._killed_from_outside:
            self._fire("kill")
        self._killed_from_outside = False

    def _hold(self, now: float) -> None:
        if self._continue_at is None:
            self._continue_at = now + self._fire("stop").hold_s
        elif now >= self._continue_at:
            self._continue_at = None
            self.worker.send(signal.SIGCONT)

    def _fire(self, action: str) -> Fault:
        """Cross out the fault that must have happened: a life has one of each action."""
        fault = next(fault for fault in self._lives[0] if fault.action == action)
        self._lives[0].remove(fault)
        self.fired.append(fault)
        if not self._lives[0]:
            self._lives.pop(0)
        return fault

    def _waits_for_replay(self) -> bool:
        return bool(self._lives) and [fault.point for fault in self._lives[0]] == ["replay"]

    def _kill_from_outside(self) -> None:
        """It came back with nothing to replay: a kill from outside, at any instruction, makes the next life replay."""
        self.kills_from_outside += 1
        self._killed_from_outside = True
        self.worker.kill()


@dataclass(frozen=True, slots=True)
class BrokerFault:
    """The end of a broker when this much is fed, by kill -9 or in order, and how long it stays away."""

    at_fraction: float
    away_s: float = 0.0
    kill: bool = True


class Breakage:
    """The faults of a cluster, in turn on each of its brokers; the next one when all hold everything again."""

    def __init__(self, cluster: Cluster, faults: Sequence[BrokerFault], say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._faults = list(enumerate(faults))
        self._say = say
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="breakage")
        self._running: Future[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether every fault has happened and been survived."""
        return not self._faults and self._running is None

    def tend(self, fed: float) -> None:
        """Begin the fault that is due; workers are tended meanwhile. Raises what went wrong with the last one."""
        if self._running is not None and self._running.done():
            self._running.result()
            self._running = None
        if self._running is None and self._faults and fed >= self._faults[0][1].at_fraction:
            index, fault = self._faults.pop(0)
            self._say(f"broker {'killed' if fault.kill else 'stopped'} at {fed:.0%} of the feed")
            self._running = self._thread.submit(self._cluster.restart, index, kill=fault.kill, away_s=fault.away_s)

    def end(self) -> None:
        """Wait until no broker is being restarted."""
        self._thread.shutdown()


@dataclass
class Run:
    """One run of a site under a plan, to its end."""

    site: Site
    feed: Feed
    patients: list[Patient]
    breakage: Breakage | None = None
    router: RouterProcess | None = None

    def until_decided(self, timeout_s: float) -> None:
        """Tend, feed and break until every fault has happened and every event is decided."""
        deadline = time.monotonic() + timeout_s
        self.feed.start()
        looked_at = 0.0
        while True:
            now = time.monotonic()
            for patient in self.patients:
                patient.tend(now)
            if self.router is not None:
                self.router.tend()
            if self.breakage is not None:
                self.breakage.tend(self.feed.fraction)
            self.feed.allow(0.15 + 0.8 * self._faults_done())
            if not self._faults_left():
                self.feed.finish()
            if not self.feed.is_alive() and not self._faults_left() and now - looked_at > _PROGRESS_S:
                looked_at = now
                if self.site.decided():
                    break
            assert now < deadline, f"not done within {timeout_s:g} s: {self._standing()}"
            assert self.feed.is_alive() or not self._faults_left(), f"the feed ended too early: {self._standing()}"
            time.sleep(TURN_S)
        assert not self.feed.failures, self.feed.failures[0]
        self.site.wait_settled()

    def _faults_done(self) -> float:
        fired = sum(len(patient.fired) for patient in self.patients)
        return fired / max(1, fired + sum(len(patient.left) for patient in self.patients))

    def _faults_left(self) -> bool:
        routing = self.router is not None and self.router.faults_left > 0
        breaking = self.breakage is not None and not self.breakage.is_over
        return routing or breaking or any(patient.left for patient in self.patients)

    def _standing(self) -> str:
        left = {patient.worker.spec.worker_name: [str(fault) for fault in patient.left] for patient in self.patients}
        tails = "\n".join(patient.worker.where() for patient in self.patients)
        return f"faults left {left}, {self.feed.fraction:.0%} fed, committed {self.site.offsets()}\n{tails}"
