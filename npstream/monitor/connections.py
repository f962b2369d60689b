"""The open connections of the HTTP side: bounded in number and time, and never all in the hands of slow clients.

When every place is taken, the connection that has been open longest gives way
to the new one. A probe takes milliseconds, so those that give way are the slow
and the silent.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from socket import SHUT_RDWR, socket


@dataclass(slots=True)
class _Place:
    connection: socket
    opened_at: float
    at_work: bool = False


class Connections:
    """At most `most` connections, none open for longer than `deadline_s`. For any thread; `clock` is monotonic."""

    def __init__(self, most: int, deadline_s: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._deadline_s = deadline_s
        self._clock = clock
        self._lock = threading.Lock()
        self._places: dict[socket, _Place] = {}  # oldest first

    def admit(self, connection: socket) -> bool:
        """Give it a place, the oldest one's where all are taken; False when this worker is busy in every place."""
        with self._lock:
            if len(self._places) >= self._most:
                oldest = next((place for place in self._places.values() if not place.at_work), None)
                if oldest is None:
                    return False
                self._drop(oldest)
            self._places[connection] = _Place(connection, self._clock())
            return True

    @contextmanager
    def at_work(self, connection: socket) -> Iterator[None]:
        """While its response is made the client is not the slow one: it keeps its place."""
        self._mark(connection, at_work=True)
        try:
            yield
        finally:
            self._mark(connection, at_work=False)

    def _mark(self, connection: socket, *, at_work: bool) -> None:
        with self._lock:
            if connection in self._places:
                self._places[connection].at_work = at_work

    def leave(self, connection: socket) -> None:
        """The exchange is over. Safe to call for a connection that was dropped."""
        with self._lock:
            self._places.pop(connection, None)

    def drop_overdue(self) -> None:
        """Drop every connection that has been open for longer than the deadline."""
        with self._lock:
            latest = self._clock() - self._deadline_s
            for place in [place for place in self._places.values() if place.opened_at < latest]:
                self._drop(place)

    def drop_all(self) -> None:
        """Nobody is served any more."""
        with self._lock:
            for place in list(self._places.values()):
                self._drop(place)

    def _drop(self, place: _Place) -> None:
        """Whoever reads or writes there sees the end of it, and closes it."""
        del self._places[place.connection]
        with suppress(OSError):  # the client was faster
            place.connection.shutdown(SHUT_RDWR)
