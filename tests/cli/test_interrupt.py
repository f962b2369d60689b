"""Ctrl-C in the middle of a search: reported in one line, nothing lost that was finished."""

import json
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from npstream.cli.exits import INTERRUPTED
from npstream.cli.output import COMPILING
from tests.cli.lines import ENTRY, PYTHON, npstream
from tests.replay.data import write_npz

_QUICK = ("--set", "model.D=8", "--set", "model.tau=0.1", "--jobs", "2")


@pytest.mark.slow
def test_an_interrupted_search_keeps_its_trials(tmp_path: Path) -> None:
    """The process ends with the code for Ctrl-C and no traceback, and the next search begins with what is there."""
    data, out, kept = write_npz(tmp_path / "data.npz", 2000), tmp_path / "best.yaml", tmp_path / "best.trials.csv"
    command = [PYTHON, "-c", ENTRY, "tune", str(data), *_QUICK, "--trials", "5000", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        _wait_for_rows(kept, process)
        process.send_signal(signal.SIGINT)
        printed, err = process.communicate(timeout=100)

    assert (process.returncode, printed) == (INTERRUPTED, "")
    *waiting, last = filter(None, err.splitlines())  # an empty one ends the terminal's ^C
    assert last == "npstream: stopped by Ctrl-C"
    assert [line for line in waiting if not line.startswith(COMPILING)] == []  # said where compiling takes long
    assert not out.exists()
    finished = kept.read_text()
    assert 1 < finished.count("\n") < 5000
    again = npstream("tune", data, *_QUICK[:-1], "1", "--trials", "3", "--out", out, "--json")
    assert len(json.loads(again.out)["trials"]) == 3
    assert kept.read_text().startswith(finished)


def _wait_for_rows(path: Path, process: "subprocess.Popen[str]") -> None:
    """Until a finished trial is on disk; fails when the process ends before, or two minutes pass."""
    end, pause = time.monotonic() + 120, threading.Event()
    while not path.exists() or path.read_text().count("\n") < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        pause.wait(0.05)
