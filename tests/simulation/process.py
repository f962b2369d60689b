"""A worker's process in a simulation: its lives, its requests, and the faults that they meet."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from npstream.errors import Fatal, Retryable
from npstream.worker import Worker
from tests.simulation.clock import Clock
from tests.simulation.cluster import Cluster
from tests.simulation.requests import Requests, Result, Undisturbed
from tests.simulation.schedule import Fault, Kind

Met = tuple[Kind, str]
"""A kind of fault, and the point where it was met."""

Meanwhile = Callable[[float, int], None]
"""Lets this much time pass and this many actions happen."""


class Killed(BaseException):
    """The process is gone. Not an Exception: nothing on the way out may take it for an error it can handle."""


class Disturbed:
    """The requests of one life. Of the faults that are armed each happens once, when its point is reached."""

    def __init__(self, cluster: Cluster, armed: list[Fault], meanwhile: Meanwhile, met: Counter[Met]) -> None:
        self._plain = Undisturbed(cluster)
        self._armed = armed
        self._meanwhile = meanwhile
        self._met = met
        self._is_stopped = False
        self.is_dead = False
        self.hurries = False

    def is_alive(self) -> bool:
        return not self.is_dead and not self._is_stopped

    def make(self, point: str, effect: Callable[[], Result]) -> Result:
        fault = self._due(point)
        kind = fault and fault.kind
        if kind is Kind.FAILS:
            raise Retryable(f"injected at {point}")
        if kind is Kind.KILLS:
            self.kill()
        if fault and kind is Kind.HANGS:
            self._meanwhile(fault.hold_s, fault.meanwhile)
        if fault and kind is Kind.STOPS:
            self._stop(fault)
        answer = self._plain.make(point, effect)
        if kind is Kind.LOSES_ANSWER:
            raise Retryable(f"injected after {point}")
        if kind is Kind.KILLS_AFTER:
            self.kill()
        if fault and kind is Kind.STOPS_AFTER:
            self._stop(fault)
        return answer

    def _due(self, point: str) -> Fault | None:
        for place, fault in enumerate(self._armed):
            if fault.point == point:
                if fault.skip:
                    self._armed[place] = replace(fault, skip=fault.skip - 1)
                    return None
                del self._armed[place]
                self._met[fault.kind, point] += 1
                return fault
        return None

    def _stop(self, fault: Fault) -> None:
        self._is_stopped = True
        self._meanwhile(fault.hold_s, fault.meanwhile)
        self._is_stopped = False

    def kill(self) -> None:
        """End the process where it is."""
        self.is_dead = True
        raise Killed


class Process:
    """One process after another under a worker's name: one that has ended is started again, as an orchestrator would.

    `connect` makes the requests of a new life, `build` its worker.
    """

    def __init__(
        self,
        connect: Callable[[list[Fault]], Disturbed],
        build: Callable[[Requests], Worker],
        clock: Clock,
        deaths: Counter[str],
    ) -> None:
        self._connect = connect
        self._build = build
        self._clock = clock
        self._deaths = deaths
        self._requests: Disturbed | None = None
        self._worker: Worker | None = None
        self._is_busy = False
        self._is_retired = False
        self._due = 0.0
        self.armed: list[Fault] = []
        """Faults that it will meet, in this life or the next."""
        self.hurries = False

    def turn(self) -> None:
        """One turn, unless it is in the middle of one: that hangs, or is stopped, while others go on."""
        if not self._is_busy:
            self._clock.sleep(max(0.0, self._due - self._clock()))
            self._live(self._turn)

    def _turn(self) -> None:
        if self._worker is None:
            self._requests = self._connect(self.armed)
            self._worker = self._build(self._requests)
        assert self._requests is not None
        self._requests.hurries = self.hurries
        self._due = self._clock() + self._worker.turn()

    def leave(self) -> None:
        """Stop politely, unless it is in the middle of a turn."""
        if self._worker is not None and not self._is_busy:
            self._live(self._worker.leave)
            self._worker = None

    def kill(self) -> None:
        """End it without a word."""
        if self._requests is not None:
            self._requests.is_dead = True
        self._worker = None

    def retire(self) -> None:
        """End it without a word, at the latest when the turn is over that it is in the middle of."""
        self._is_retired = True
        if not self._is_busy:
            self.kill()

    def _live(self, step: Callable[[], None]) -> None:
        self._is_busy = True
        try:
            step()
        except (Killed, Fatal) as end:
            self._worker = None
            self._deaths[type(end).__name__.lower()] += 1
        finally:
            self._is_busy = False
        if self._is_retired:
            self.kill()
