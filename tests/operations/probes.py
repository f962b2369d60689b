"""A probe that asks again and again, as an orchestrator does, and remembers every response."""

import threading
from collections.abc import Callable
from types import TracebackType

_EVERY_S = 0.25


class Probe:
    """Asks `ask` (status code and body) on a thread of its own while the block lasts."""

    def __init__(self, ask: Callable[[], tuple[int, str]]) -> None:
        self._ask = ask
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)
        self.responses: list[tuple[int, str]] = []

    def __enter__(self) -> "Probe":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, where: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(60.0)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self.responses.append(self._ask())
            except OSError as error:
                self.responses.append((0, str(error)))

    def reds(self) -> list[tuple[int, str]]:
        """Every response that was not 200."""
        return [response for response in self.responses if response[0] != 200]
