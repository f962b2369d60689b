"""Recent behaviour read off counters that only grow, in bounded memory."""

from collections import deque

_MARKS = 64
"""Old counts kept per window: its length is exact to a 64th."""

STILL_AFTER = 1000
"""Labelled non-targets, or decisions, without any movement after which a value counts as pinned."""


class Recent:
    """Hits among about the last `size` trials.

    Starts empty at the first counts it sees, so that it never mixes in what
    happened before this worker looked.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._step = max(1, size // _MARKS)
        self._marks: deque[tuple[int, int]] = deque()
        self._now = (0, 0)

    def update(self, trials: int, hits: int) -> None:
        """Take note of cumulative counts; counts that went back start it again."""
        if not self._marks or trials < self._now[0]:
            self._marks.clear()
            self._marks.append((trials, hits))
        elif trials - self._marks[-1][0] >= self._step:
            self._marks.append((trials, hits))
        while len(self._marks) > 1 and trials - self._marks[1][0] >= self._size:
            self._marks.popleft()
        self._now = (trials, hits)

    def counts(self) -> tuple[int, int]:
        """(hits, trials) inside the window."""
        if not self._marks:
            return 0, 0
        return self._now[1] - self._marks[0][1], self._now[0] - self._marks[0][0]


class Stillness:
    """Finds out when a value that should move with every few events of a kind has stopped moving."""

    def __init__(self) -> None:
        self._value: float | None = None
        self._since = 0

    def update(self, value: float, events: int) -> bool:
        """Whether the value has been exactly this one for `STILL_AFTER` such events or more."""
        if value != self._value or events < self._since:
            self._value, self._since = value, events
        return events - self._since >= STILL_AFTER


def window_for(tau: float) -> int:
    """Events to judge a rate of alarms by: about 50 expected ones, within reason."""
    return min(max(round(50 / tau), 500), 50_000)


TARGETS_WINDOW = 500
"""Labelled targets to judge a detection rate by."""
