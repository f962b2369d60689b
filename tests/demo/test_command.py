"""`npstream demo` as a person runs it: to its end, on a pipe, interrupted, on a broker."""

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import IO

import pytest

from npstream.cli.exits import FATAL, INTERRUPTED, OK, USAGE
from npstream.data.files import read_rows
from npstream.demo.stream import make_stream
from tests.broker import Kafka
from tests.cli.lines import ENTRY, PYTHON, npstream
from tests.stage.command import get

SHORT = ("--events", "4000", "--seconds", "1", "--tau", "0.05")


def started(folder: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """The demo as a process of its own, whose temporary files go to the folder."""
    return subprocess.Popen(
        [PYTHON, "-c", ENTRY, "demo", "--out", str(folder / "out"), *arguments],
        env={"TMPDIR": str(folder), "PATH": "/usr/bin:/bin", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line_with(stream: IO[str] | None, words: str) -> str:
    """Read lines until one has these words; fails when the stream ends before."""
    assert stream is not None
    for line in stream:
        if words in line:
            return line
    pytest.fail(f"the process ended without saying {words!r}")


@pytest.mark.slow
def test_on_a_pipe_it_prints_plain_lines_and_leaves_a_report(tmp_path: Path) -> None:
    """Lines without colour or cursor moves, the table at the end, files in --out, nothing else left behind."""
    process = started(tmp_path, *SHORT)

    out, err = process.communicate(timeout=170)

    assert process.returncode == OK, err
    assert not re.search(r"[\x1b\r]", out + err)
    assert "live page: http://127.0.0.1:" in err
    assert "identical, bit for bit" in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["demo.html", "demo.svg"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
def test_the_page_is_there_when_its_address_is_printed(tmp_path: Path) -> None:
    """On a first run too, while the kernel is compiled: whoever opens the address at once sees the page."""
    process = started(tmp_path, *SHORT, NUMBA_CACHE_DIR=str(tmp_path / "nothing compiled yet"))
    try:
        address = line_with(process.stderr, "live page:").split()[2]
        page, start = get(address), get(address + "startz")
    finally:
        process.kill()
        _, later = process.communicate(timeout=60)

    assert page[0] == 200
    assert start[0] == 503
    assert "kernel ready" not in later


@pytest.mark.slow
def test_ctrl_c_ends_it_politely(tmp_path: Path) -> None:
    """Interrupted while the worker runs: one line, the code for it, no traceback, no temporary file."""
    process = started(tmp_path, "--events", "40000", "--seconds", "600")
    line_with(process.stderr, "records/s")

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)

    assert (process.returncode, out) == (INTERRUPTED, "")
    assert "npstream: stopped by Ctrl-C" in err
    assert "Traceback" not in err
    assert list(tmp_path.glob("npstream-demo-*")) == []


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_it_runs_on_a_broker(kafka: Kafka, tmp_path: Path) -> None:
    """The same stream through Kafka, and the same proof: a replay of the topic gives the live decisions."""
    process = started(tmp_path, *SHORT, "--kafka", kafka.bootstrap, "--json")

    out, err = process.communicate(timeout=200)

    assert process.returncode == OK, err
    reported = json.loads(out)
    assert reported["identical"] is True
    assert reported["events"] == 4000
    assert reported["ways"][0]["name"] == "npstream"


@pytest.mark.slow
def test_a_broker_out_of_reach_is_named(tmp_path: Path) -> None:
    """A port nobody listens on ends the demo with the code for brokers, before anything is generated or written."""
    done = npstream("demo", "--kafka", "127.0.0.1:1", "--out", tmp_path / "out")

    assert (done.code, done.out) == (FATAL, "")
    assert "127.0.0.1:1" in done.err


def test_a_report_that_cannot_be_written_is_an_error_before_the_work(tmp_path: Path) -> None:
    """A file where the folder should be is refused at once."""
    (tmp_path / "file").write_text("")

    done = npstream("demo", "--out", tmp_path / "file")

    assert (done.code, done.out) == (USAGE, "")
    assert "cannot write" in done.err


def test_the_stream_can_be_had_as_a_data_set(tmp_path: Path) -> None:
    """--data writes the very events of the demo, readable by every command that takes a file, and runs nothing."""
    data = tmp_path / "demo.csv"

    done = npstream("demo", "--events", "4000", "--data", data, "--out", tmp_path / "out", "--json")

    assert (done.code, json.loads(done.out)) == (OK, {"events": 4000, "data": str(data)})
    rows, stream = read_rows(data), make_stream(4000, 300, 7)
    assert (rows.x.tobytes(), rows.ids) == (stream.x.tobytes(), list(range(4000)))
    assert rows.y is not None
    assert rows.y.tobytes() == stream.y.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["demo.csv"]


def test_a_data_set_of_another_kind_is_refused(tmp_path: Path) -> None:
    """A name that no reader would take for CSV is refused, and nothing is written."""
    done = npstream("demo", "--data", tmp_path / "demo.parquet")

    assert (done.code, done.out) == (USAGE, "")
    assert "ends in .csv" in done.err
    assert list(tmp_path.iterdir()) == []
