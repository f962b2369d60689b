"""Calls that must end: a thread of its own for a client call that may forget its timeout.

`send_offsets_to_transaction` can block for ever when the group's coordinator
goes away at the wrong moment, whatever timeout it was given. A worker cannot
interrupt it, but it can stop waiting: the call then costs a thread and a client
that nobody uses any more, instead of the worker.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any


class BoundedCaller:
    """Runs one call after another on its own thread; whoever asks waits no longer than he says."""

    def __init__(self, name: str) -> None:
        self._asked: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._last: Callable[[], None] | None = None
        self.stuck = False
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while (call := self._asked.get()) is not None:
            self._answers.put(_outcome(call))
        if self._last is not None:
            _outcome(self._last)

    def call(self, work: Callable[..., None], *arguments: Any, slice_s: float, left_s: Callable[[], float]) -> None:
        """Run `work(*arguments)` and raise what it raises.

        `left_s` is asked every `slice_s` how long there is still to wait, and ends
        the wait with an error of its own; the caller is then `stuck` for good.
        """
        assert not self.stuck, "a call has never come back"
        self._asked.put(lambda: work(*arguments))
        self.stuck = True
        while True:
            try:
                error = self._answers.get(timeout=min(slice_s, left_s()))
                break
            except queue.Empty:
                continue
        self.stuck = False
        if error is not None:
            raise error

    def close(self, last: Callable[[], None]) -> None:
        """End the thread, after a call that is stuck; it runs `last` on its way out, errors ignored."""
        self._last = last
        self._asked.put(None)


def _outcome(call: Callable[[], None]) -> BaseException | None:
    try:
        call()
    except BaseException as error:
        return error
    return None
