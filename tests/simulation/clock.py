"""Clocks of a cluster: one that only moves when somebody sleeps, and the machine's."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and lets it pass."""

    def __call__(self) -> float:
        """Monotonic seconds."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class Seconds:
    """Stands still until somebody sleeps."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


class RealSeconds:
    """The machine's, for tests that share a cluster between threads."""

    def __call__(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
