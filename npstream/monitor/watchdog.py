"""The loop's pulse, and the watchdog that ends a process whose loop has stopped."""

import faulthandler
import os
import threading
from collections.abc import Callable
from typing import TextIO

import structlog

EXIT_STUCK = 6
"""Exit code of a worker that ended itself because its loop did not turn."""

_TICK_S = 1.0


class Pulse:
    """When the loop last turned, and whether it ever has. Beaten by the worker's thread, read by any."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._born_at = self._at = clock()
        self.beats = 0
        self.started = False
        """Whether the loop has turned once: until then the process compiles, connects and restores."""

    def beat(self) -> None:
        """The loop is alive: it turns, or waits for something that does."""
        self.beats += 1
        self._at = self._clock()

    def turned(self) -> None:
        """The loop has turned."""
        self.beat()
        self.started = True

    def age_s(self) -> float:
        """Seconds since the last beat; since the start before the first."""
        return self._clock() - self._at

    def start_s(self) -> float:
        """Seconds since the start of the process."""
        return self._clock() - self._born_at


class Standstill:
    """For how long a pulse has not beaten. Pure: the time is given.

    Looked at every `tick_s`. Time in which the whole process was stopped does not
    count: then the look itself is late, and no more than two ticks are added.
    """

    def __init__(self, pulse: Pulse, tick_s: float, now: float) -> None:
        self._pulse = pulse
        self._tick_s = tick_s
        self._looked_at = now
        self._beats = pulse.beats
        self._seconds = 0.0

    def look(self, now: float) -> float:
        """Seconds of standstill up to now."""
        if self._pulse.beats != self._beats:
            self._beats, self._seconds = self._pulse.beats, 0.0
        else:
            self._seconds += min(now - self._looked_at, 2 * self._tick_s)
        self._looked_at = now
        return self._seconds


class Watchdog:
    """Ends the process when the loop has not turned for `stuck_s`, after writing every thread's stack to `stderr`.

    A worker that hangs is worse than one that is gone: it keeps its partitions
    and does nothing. Before the loop has turned once `start_s` is the limit.
    """

    def __init__(
        self,
        pulse: Pulse,
        stuck_s: float,
        start_s: float,
        stderr: TextIO,
        clock: Callable[[], float],
        exit_process: Callable[[int], object] = os._exit,
    ) -> None:
        self._pulse = pulse
        self._stuck_s = stuck_s
        self._start_s = start_s
        self._stderr = stderr
        self._clock = clock
        self._exit = exit_process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="npstream-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Stop watching."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def limit_s(self) -> float:
        """How long the loop may go without a turn now."""
        return self._stuck_s if self._pulse.started else max(self._stuck_s, self._start_s)

    def _watch(self) -> None:
        tick_s = min(_TICK_S, self._stuck_s / 4)
        standstill = Standstill(self._pulse, tick_s, self._clock())
        while not self._stop.wait(tick_s):
            still_s = standstill.look(self._clock())
            if still_s >= self.limit_s():
                self._give_up(still_s)
                return

    def _give_up(self, still_s: float) -> None:
        structlog.get_logger("npstream.monitor").critical(
            "loop stuck",
            seconds=round(still_s, 1),
            exit_code=EXIT_STUCK,
            advice="the stacks are on standard error; the worker ends so that another can take its partitions",
        )
        faulthandler.dump_traceback(self._stderr, all_threads=True)
        self._stderr.flush()
        self._exit(EXIT_STUCK)
