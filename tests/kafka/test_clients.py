"""Closing a client takes as long as it is given, whatever the client does."""

import subprocess
import sys
from pathlib import Path

import pytest

from npstream.kafka.clients import close_quietly

_SLOW = """
import threading
from npstream.kafka.clients import close_quietly

going = threading.Event()
assert not close_quietly("client", lambda: going.wait(30), 0.01, held_s=2.0)
assert not going.wait(3.0)
"""


_HOLDING = """
import ctypes
from npstream.kafka.clients import close_quietly

def a_close_that_holds_the_interpreter():
    ctypes.PyDLL(None).sleep(60)

close_quietly("client", a_close_that_holds_the_interpreter, 0.1, held_s=0.5)
"""


_HOLDING_BESIDE_ANOTHER = """
import ctypes, threading
from npstream.kafka.clients import close_quietly

ended = threading.Event()

def a_close_that_holds_the_interpreter():
    ended.wait(30)
    ctypes.PyDLL(None).sleep(60)

def another():
    close_quietly("other", lambda: None, 30)
    ended.set()

threading.Thread(target=another).start()
close_quietly("client", a_close_that_holds_the_interpreter, 2.0, held_s=0.5)
"""


def _run(program: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, since it may end it."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_a_close_that_ends_and_one_that_fails_are_both_over() -> None:
    """Closing never raises: what goes is not used again."""
    assert close_quietly("client", lambda: None, 30)
    assert close_quietly("client", lambda: 1 / 0, 30)


@pytest.mark.slow
def test_a_slow_close_is_left_behind() -> None:
    """The caller goes on when its time is over, and nothing ends the process later."""
    done = _run(_SLOW)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("program", [_HOLDING, _HOLDING_BESIDE_ANOTHER], ids=["alone", "another ends meanwhile"])
def test_a_close_that_holds_the_interpreter_ends_the_process_with_its_stacks(program: str) -> None:
    """No thread of ours can run any more, so nothing of ours could take note of a timeout."""
    done = _run(program)

    assert done.returncode == 1
    assert "in a_close_that_holds_the_interpreter" in done.stderr


_LEFT_OPEN = """
from npstream.kafka.clients import close_quietly

class Reader:
    def __del__(self):
        close_quietly("left open", lambda: None, 1.0, held_s=1.0)

kept = Reader()
kept.itself = kept
"""


def test_what_is_open_at_the_end_of_the_interpreter_does_not_keep_it() -> None:
    """A reader that was not read to its end would else wait for a thread that can never start."""
    done = subprocess.run([sys.executable, "-c", _LEFT_OPEN], capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
