"""A thread that looks at something again and again."""

import threading
from collections.abc import Callable


class Rounds:
    """Calls `look` until it is stopped, and `let_go` after a failure and at the end.

    `failed` gets the error of a round; the thread goes on, or what is shown would stay as it is forever.
    `pause_s` says how long to wait after a round that took so many seconds.
    """

    def __init__(
        self,
        name: str,
        look: Callable[[], None],
        let_go: Callable[[], None],
        failed: Callable[[Exception], None],
        clock: Callable[[], float],
        pause_s: Callable[[float], float],
    ) -> None:
        self._look, self._let_go, self._failed = look, let_go, failed
        self._clock, self._pause_s = clock, pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def stopping(self) -> bool:
        """Whether no more rounds are wanted: a long one may end early."""
        return self._stop.is_set()

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Look no more; waits at most `timeout_s` for a round that has begun."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            started = self._clock()
            try:
                self._look()
            except Exception as error:
                self._failed(error)
                self._let_go()
            wait_s = self._pause_s(self._clock() - started)
        self._let_go()
