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
    """When the loop last turned. Beaten by the worker's thread, read by any."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.turns = 0
        self._at = clock()

    def beat(self) -> None:
        """The loop turns."""
        self.turns += 1
        self._at = self._clock()

    def age_s(self) -> float:
        """Seconds since the last turn; since the start before the first."""
        return self._clock() - self._at


class Watchdog:
    """Ends the process when the loop has not turned for `stuck_s`, after writing every thread's stack to `stderr`.

    A worker that hangs is worse than one that is gone: it keeps its partitions
    and does nothing. Time in which the whole process was stopped does not count.
    """

    def __init__(
        self,
        pulse: Pulse,
        stuck_s: float,
        stderr: TextIO,
        clock: Callable[[], float],
        exit_process: Callable[[int], object] = os._exit,
    ) -> None:
        self._pulse = pulse
        self._stuck_s = stuck_s
        self._stderr = stderr
        self._clock = clock
        self._exit = exit_process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="npstream-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Watch no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _watch(self) -> None:
        tick_s = min(_TICK_S, self._stuck_s / 4)
        turns, still_s, looked_at = self._pulse.turns, 0.0, self._clock()
        while not self._stop.wait(tick_s):
            now = self._clock()
            if self._pulse.turns != turns:
                turns, still_s = self._pulse.turns, 0.0
            else:
                # A process that was suspended wakes up late here as well: count no more than two ticks.
                still_s += min(now - looked_at, 2 * tick_s)
            looked_at = now
            if still_s >= self._stuck_s:
                self._give_up(still_s)
                return

    def _give_up(self, still_s: float) -> None:
        structlog.get_logger("npstream.ops").critical(
            "loop stuck",
            seconds=round(still_s, 1),
            exit_code=EXIT_STUCK,
            advice="the stacks are on standard error; the worker ends so that another can take its partitions",
        )
        faulthandler.dump_traceback(self._stderr, all_threads=True)
        self._stderr.flush()
        self._exit(EXIT_STUCK)
