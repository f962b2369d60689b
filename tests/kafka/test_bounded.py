"""Calls that must end, though the client may not."""

import threading
from collections.abc import Callable

import pytest

from npstream.kafka.bounded import BoundedCaller


class TimeOver(Exception):
    """The wait has been ended."""


def never_over() -> float:
    return 30.0


def test_what_a_call_returns_or_raises_comes_back() -> None:
    """The outcome of the work is what the caller sees, call after call."""
    caller = BoundedCaller[int]("test")

    def ask(work: Callable[[], int]) -> int:
        caller.start(work)
        assert caller.busy
        return caller.wait(0.1, never_over)

    assert ask(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        ask(lambda: 1 // 0)
    assert ask(lambda: 5) == 5

    assert not caller.busy
    caller.close(lambda: None, 30)


def test_whoever_started_a_call_may_do_something_else() -> None:
    """The work goes on while nobody waits for it."""
    caller = BoundedCaller[None]("test")
    done = threading.Event()

    caller.start(done.set)

    assert done.wait(30)
    caller.wait(0.1, never_over)
    caller.close(lambda: None, 30)


def test_a_result_counts_however_late_it_is_asked_for() -> None:
    """The time for waiting may be over by then; it is not needed any more."""
    caller = BoundedCaller[int]("test")

    def over() -> float:
        raise TimeOver

    caller.start(lambda: 7)
    caller.close(lambda: None, 30)  # the thread has ended, so its result is there

    assert caller.wait(0.1, over) == 7


def test_a_call_that_does_not_come_back_is_left_alone() -> None:
    """The wait ends when its time is over; what was to be done last is done once the call has returned."""
    caller = BoundedCaller[None]("test")
    entered, release, last = threading.Event(), threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        release.wait(30)

    def left_s() -> float:
        if entered.is_set():
            raise TimeOver
        return 30.0

    caller.start(hang)
    with pytest.raises(TimeOver):
        caller.wait(0.01, left_s)
    assert caller.busy
    caller.close(last.set, 0.0)
    assert not last.is_set()

    release.set()
    assert last.wait(30)
