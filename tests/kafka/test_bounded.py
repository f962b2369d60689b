"""Calls that must end, though the client may not."""

import threading

import pytest

from npstream.kafka.bounded import BoundedCaller


class TimeOver(Exception):
    """The wait has been ended."""


def never_over() -> float:
    return 30.0


def test_a_call_runs_with_its_arguments_and_its_error_comes_back() -> None:
    """What the work does and raises is what the caller sees, call after call."""
    caller = BoundedCaller("test")
    seen: list[tuple[int, int]] = []

    def work(a: int, b: int) -> None:
        seen.append((a, b))
        if a == b:
            raise ValueError("equal")

    caller.call(work, 1, 2, slice_s=0.1, left_s=never_over)
    with pytest.raises(ValueError, match="equal"):
        caller.call(work, 3, 3, slice_s=0.1, left_s=never_over)
    caller.call(work, 4, 5, slice_s=0.1, left_s=never_over)

    assert seen == [(1, 2), (3, 3), (4, 5)]
    assert not caller.stuck
    caller.close(lambda: None)


def test_a_call_that_does_not_come_back_is_left_alone() -> None:
    """The wait ends when its time is over; what was to be done last is done once the call has returned."""
    caller = BoundedCaller("test")
    entered, release, last = threading.Event(), threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        release.wait(30)

    def left_s() -> float:
        if entered.is_set():
            raise TimeOver
        return 30.0

    with pytest.raises(TimeOver):
        caller.call(hang, slice_s=0.01, left_s=left_s)
    assert caller.stuck
    caller.close(last.set)
    assert not last.is_set()

    release.set()
    assert last.wait(30)
