"""What a command says while something takes long."""

import threading
import time

import pytest

from npstream.cli.output import notified_when_slow, waiting

_TIMEOUT_S = 60.0


def test_what_takes_long_is_said_again_and_again() -> None:
    """The first time after a while, then at intervals, with the seconds that have passed."""
    said: list[float] = []
    twice = threading.Event()

    def say(seconds: float) -> None:
        said.append(seconds)
        if len(said) == 2:
            twice.set()

    with notified_when_slow(say, first_s=0.001, every_s=0.001):
        assert twice.wait(_TIMEOUT_S)

    assert 0 < said[0] < said[1]


def test_what_is_quick_is_not_mentioned() -> None:
    """Nothing is said before its time, and nothing after the end."""
    said: list[float] = []
    with notified_when_slow(said.append, first_s=_TIMEOUT_S):
        pass

    assert said == []


def test_an_error_ends_the_messages() -> None:
    """What fails is raised as it is, and nothing goes on talking."""
    before = threading.active_count()
    with pytest.raises(ValueError, match="broken"), notified_when_slow(lambda seconds: None, first_s=_TIMEOUT_S):
        raise ValueError("broken")

    assert threading.active_count() == before


def test_a_wait_is_written_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """On a pipe as well, and never where a command's result goes."""
    deadline = time.monotonic() + _TIMEOUT_S
    out = err = ""
    with waiting("compiling", first_s=0.001):
        while not err and time.monotonic() < deadline:
            out, err = capsys.readouterr()

    assert (out, err[:11]) == ("", "compiling, ")


def test_scripts_are_not_disturbed() -> None:
    """Where one JSON document was asked for nobody is there to talk."""
    before = threading.active_count()
    with waiting("compiling", quiet=True, first_s=_TIMEOUT_S):
        assert threading.active_count() == before
