"""Waiting for a condition, with a deadline: time that has passed proves nothing."""

import time
from collections.abc import Callable

TURN_S = 0.05


def wait_until(
    condition: Callable[[], bool], what: str, timeout_s: float = 120.0, check: Callable[[], None] = lambda: None
) -> None:
    """Return when the condition holds; `check` raises when waiting has become pointless. Raises `TimeoutError`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(TURN_S)
