"""The worker: sessions one after another, and what to do when one breaks.

After anything unclear the worker drops its clients and all state, waits, and
starts another session through `restore`, within `recover_s`.
"""

import threading
from collections.abc import Callable

import structlog

from npstream.errors import Fatal, Retryable
from npstream.observe import Observer
from npstream.port import Broker, Log
from npstream.worker.refusals import Refusals
from npstream.worker.restore import Origin
from npstream.worker.session import Limits, Session

_BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)
_HEALTHY_S = 10.0
"""A session this long without an error ends an outage even when no event arrives to be committed."""


class Worker:
    """Runs until it is stopped; raises `Fatal` or `SettingsError` when it cannot go on.

    `connect` builds fresh clients. `clock` is monotonic. `stop` may be set from a
    signal handler.
    """

    def __init__(
        self,
        connect: Callable[[], tuple[Broker, Log]],
        origin: Origin,
        limits: Limits,
        clock: Callable[[], float],
        stop: threading.Event,
        observer: Observer,
    ) -> None:
        self._connect = connect
        self._origin = origin
        self._limits = limits
        self._clock = clock
        self._stop = stop
        self._observer = observer
        self._log = structlog.get_logger("npstream.worker")
        self._refusals = Refusals()
        self._session: Session | None = None
        self._started = 0.0
        self._was_connected = False
        self._failing_since: float | None = None
        self._failures = 0

    def run(self) -> None:
        """Turns, one after another, until stopped; then leave the group."""
        while not self._stop.is_set():
            wait_s = self.turn()
            if wait_s:
                self._stop.wait(wait_s)
        self.leave()

    def turn(self) -> float:
        """One turn: start a session if there is none, else poll, process and commit once.

        Returns the seconds to wait before the next turn: 0 unless an error has
        ended the session. Never sleeps itself but in the broker's own waits.
        """
        return self._guarded(self._turn)

    def leave(self) -> None:
        """Write a last checkpoint and leave the group, if there is a session."""
        if self._session is not None:
            self._guarded(self._session.leave)
            self._session = None

    def _turn(self) -> None:
        if self._session is None:
            broker, log = self._connect()
            self._was_connected = True
            self._started = self._clock()
            self._session = Session(
                broker, log, self._origin, self._limits, self._clock, self._observer, self._refusals
            )
            self._session.join()
        self._session.turn()
        if self._session.has_committed or self._clock() - self._started > _HEALTHY_S:
            self._failing_since = None

    def _guarded(self, step: Callable[[], None]) -> float:
        """Do this; an error ends the session. Returns the seconds to wait when another session may help."""
        try:
            step()
        except Retryable as error:
            self._abandon(error)
            if not self._was_connected:
                raise Fatal(str(error)) from error
            return self._recover(error)
        except BaseException as error:
            self._abandon(error)
            raise
        return 0.0

    def _abandon(self, error: BaseException) -> None:
        if self._session is not None:
            if self._session.has_committed:
                self._failing_since = None
            self._session.abandon(error)
            self._session = None

    def _recover(self, cause: Retryable) -> float:
        now = self._clock()
        if self._failing_since is None:
            self._failing_since, self._failures = now, 0
        if now - self._failing_since > self._limits.recover_s:
            raise Fatal(f"no progress for {self._limits.recover_s:.0f} s; last error: {cause}") from cause
        wait_s = _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        self._failures += 1
        self._log.warning("session restart", cause=str(cause), retry_in_s=wait_s)
        self._observer.session_ended(cause.cause)
        return wait_s
