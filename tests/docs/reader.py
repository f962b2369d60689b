"""Somebody who reads a page and types what it shows."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import chdir, suppress
from pathlib import Path
from unittest.mock import patch

import orjson

from tests.cli.lines import npstream as in_this_process

ON_KAFKA = "payments.yaml"
"""The settings file of the README's Kafka section; commands that name it need a broker."""


def type_in(line: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run one command line as a reader would, and return what it printed; a doctor may have findings."""
    if line.startswith("npstream run"):
        work_until_idle(line, folder, environment or {})
        return ""
    done = npstream(line, folder, environment)
    assert done.returncode == 0 or " doctor " in line, (line, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr, line
    return done.stdout


def npstream(
    line: str, folder: Path, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """What one command line leaves behind."""
    words, env = [sys.executable, "-m", *line.split()], {**os.environ, **(environment or {})}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


def work_until_idle(line: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Run the worker until the group has caught up, then stop it as an operator would."""
    env = {**os.environ, **environment, "NPSTREAM__HTTP__PORT": "0"}
    worker = subprocess.Popen([sys.executable, "-m", *line.split()], cwd=folder, env=env, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while any(lag(folder, line.rsplit(maxsplit=1)[-1], environment)):
        assert time.monotonic() < deadline
        with suppress(subprocess.TimeoutExpired):
            worker.wait(0.2)
        assert worker.poll() is None, "the worker ended by itself"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0


def lag(folder: Path, config: str = "config/local.yaml", environment: Mapping[str, str] | None = None) -> list[int]:
    """What `npstream lag --json` says of each partition. In this process: starting another takes longer."""
    with chdir(folder), patch.dict(os.environ, environment or {}):
        found = in_this_process("lag", "--config", config, "--json").out
    return [partition["records"] for partition in orjson.loads(found)["partitions"]]
