"""The watchdog: ends a process whose loop hangs, and no other."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from npstream.cli import exits
from npstream.monitor.watchdog import EXIT_STUCK, Pulse, Standstill, Watchdog
from tests.monitor.test_status import Clock

ROOT = Path(__file__).parents[2]
_HANGING = """
import sys, threading, time
from npstream.monitor.watchdog import Pulse, Watchdog

def a_loop_that_hangs():
    threading.Event().wait(60)

pulse = Pulse(time.monotonic)
Watchdog(pulse, 0.4, 60.0, sys.stderr, time.monotonic).start()
pulse.turned()
a_loop_that_hangs()
"""
_BEATING = """
import sys, threading, time
from npstream.monitor.watchdog import Pulse, Watchdog

pulse = Pulse(time.monotonic)
Watchdog(pulse, 1.2, 60.0, sys.stderr, time.monotonic).start()
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
while not stop.wait(0.1):
    pulse.turned()
    print("turned", flush=True)
"""


def python(program: str) -> subprocess.Popen[str]:
    """A process of its own, since the watchdog ends it."""
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_hanging_loop_ends_with_its_stacks_and_a_code_of_its_own() -> None:
    """The process is gone with the documented code, and standard error names the function it hung in."""
    process = python(_HANGING)
    out, err = process.communicate(timeout=30)

    assert process.returncode == EXIT_STUCK == exits.STUCK
    assert "loop stuck" in out
    assert "in a_loop_that_hangs" in err
    assert "npstream-watchdog" in err or "in _watch" in err


@pytest.mark.slow
def test_a_process_that_was_suspended_is_not_taken_for_a_hanging_one() -> None:
    """After SIGSTOP and SIGCONT the loop goes on: time in which nothing could run does not count."""
    process = python(_BEATING)
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGSTOP)
    threading.Event().wait(3.0)  # the suspension itself, well beyond the limit
    os.kill(process.pid, signal.SIGCONT)
    for _ in range(10):
        assert process.stdout.readline() == "turned\n"
    _, err = process.communicate("stop\n", timeout=30)

    assert (process.returncode, err) == (0, "")


def test_the_pulse_is_as_old_as_the_last_beat() -> None:
    """Age counts from the start, then from each turn."""
    clock = Clock()
    pulse = Pulse(clock)
    clock.wait(3)
    before = pulse.age_s()
    pulse.beat()
    clock.wait(2)

    assert (before, pulse.age_s(), pulse.start_s(), pulse.beats) == (3.0, 2.0, 5.0, 1)


def test_a_start_has_a_limit_of_its_own() -> None:
    """A wait that turns does not end the start, the first turn of the loop does."""
    clock = Clock()
    pulse = Pulse(clock)
    watchdog = Watchdog(pulse, 300.0, 600.0, io.StringIO(), clock)
    limits = [watchdog.limit_s()]
    for reported in (pulse.beat, pulse.turned, pulse.beat):
        reported()
        limits.append(watchdog.limit_s())

    assert limits == [600.0, 600.0, 300.0, 300.0]


def test_a_standstill_ends_with_a_beat_and_leaves_out_suspensions() -> None:
    """Seconds add up from look to look; a look that comes late, because nothing could run, adds two ticks."""
    clock = Clock()
    pulse = Pulse(clock)
    standstill = Standstill(pulse, 1.0, clock())
    found = []
    for seconds, beaten in ((1, False), (1, False), (3600, False), (1, True), (1, False)):
        clock.wait(seconds)
        if beaten:
            pulse.beat()
        found.append(standstill.look(clock()))

    assert found == [1.0, 2.0, 4.0, 0.0, 1.0]


def test_a_stopped_watchdog_does_nothing() -> None:
    """After `stop` a loop may stop: the worker is on its way out."""
    codes: list[int] = []
    watchdog = Watchdog(Pulse(time.monotonic), 0.2, 60.0, io.StringIO(), time.monotonic, codes.append)
    watchdog.start()
    watchdog.stop(5.0)

    assert codes == []
    assert "npstream-watchdog" not in {thread.name for thread in threading.enumerate()}
