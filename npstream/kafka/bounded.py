"""Calls that must end: a thread of its own for client calls that wait, and may forget their timeout.

`send_offsets_to_transaction` can block forever when the group's coordinator
goes away at the wrong moment, whatever timeout it was given. A worker cannot
interrupt it, but it can stop waiting: the call then costs a thread and a client
that is no longer used, instead of the worker. And it need not wait at all
while it has something better to do.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class BoundedCaller(Generic[T]):
    """Runs one call after another on its own thread; the caller waits no longer than it says."""

    def __init__(self, name: str) -> None:
        self._asked: queue.SimpleQueue[Callable[[], T] | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
        self._last: Callable[[], None] | None = None
        self.busy = False
        """Whether a call has not come back, as far as is known."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (call := self._asked.get()) is not None:
            self._outcomes.put(_outcome(call))
        if self._last is not None:
            _outcome(self._last)

    def start(self, work: Callable[[], T]) -> None:
        """Begin a call; `wait` returns its result, and must be called before the next one."""
        assert not self.busy, "a call has not come back"
        self.busy = True
        self._asked.put(work)
        time.sleep(0)  # hand over the interpreter, else the thread gets it some milliseconds later

    def wait(self, slice_s: float, left_s: Callable[[], float]) -> T:
        """Return or raise what the started call returns or raises.

        `left_s` is asked every `slice_s` how long there is still to wait, and ends
        the wait with an error of its own; the caller then stays `busy` for good.
        """
        # A result that is there counts, however late it is fetched.
        while (found := self._take(0.0) or self._take(min(slice_s, left_s()))) is None:
            pass
        result, error = found
        self.busy = False
        if error is not None:
            raise error
        return cast(T, result)

    def _take(self, timeout_s: float) -> tuple[T | None, BaseException | None] | None:
        try:
            return self._outcomes.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self, last: Callable[[], None], timeout_s: float) -> None:
        """End the thread, after a call that is under way; it runs `last` on its way out, errors ignored.

        Waits for that end at most `timeout_s`; what takes longer goes on in the background.
        """
        self._last = last
        self._asked.put(None)
        self._thread.join(timeout_s)


def _outcome(call: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return call(), None
    except BaseException as error:
        return None, error
