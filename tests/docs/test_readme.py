"""The README tells the truth: generated parts are in step, and what it shows runs."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import orjson
import pytest

from npstream.cli import COMMANDS
from tests.docs.generated import README, SECTIONS, rendered

ROOT = README.parent
TEXT = README.read_text()


def blocks(language: str) -> list[str]:
    """The README's code blocks in one language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def commands() -> list[str]:
    """Every npstream command line of the README's shell blocks."""
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.startswith("npstream ")]


def test_generated_parts_are_in_step() -> None:
    """`make docs` would change nothing, and every part has its place."""
    assert rendered(TEXT) == TEXT
    assert all(f"<!-- begin {name} -->" in TEXT for name in SECTIONS)


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.splitlines()[0])
def test_python_examples_run(block: str) -> None:
    """Each Python example runs as it stands."""
    exec(compile(block, "README.md", "exec"), {})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_shell_examples_run(tmp_path: Path) -> None:
    """The npstream commands run in order, in an empty folder with a small data set."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.3, 1, -1).astype(np.int8)
    np.savez(tmp_path / "data.npz", X=(rng.normal(size=(600, 8)) + y[:, None]).astype(np.float32), y=y)
    (tmp_path / "config").symlink_to(ROOT / "config")
    assert len(commands()) > len(set(COMMANDS) - {"demo", "experiment", "bench"})
    for line in commands():
        if line.startswith("npstream run"):
            work_until_idle(line, tmp_path)
        else:
            done = npstream(line, tmp_path)
            assert done.returncode == 0 or " doctor " in line, (line, done.stdout, done.stderr)
            assert "Traceback" not in done.stderr, line


def npstream(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run one command line of the README."""
    words = [sys.executable, "-m", *line.split()]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def work_until_idle(line: str, folder: Path) -> None:
    """Run the worker until the group has caught up, then stop it as an operator would."""
    env = {**os.environ, "NPSTREAM__HTTP__PORT": "0"}
    worker = subprocess.Popen([sys.executable, "-m", *line.split()], cwd=folder, env=env, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while any(p["records"] != 0 for p in lag(folder)):
        assert time.monotonic() < deadline
        assert worker.poll() is None, "the worker ended by itself"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0


def lag(folder: Path) -> list[dict[str, int]]:
    """What `npstream lag --json` says of each partition."""
    found = orjson.loads(npstream("npstream lag --config config/local.yaml --json", folder).stdout)
    return list(found["partitions"])


def test_links_lead_somewhere() -> None:
    """Every relative link names a file of the repository."""
    targets = re.findall(r"\]\((?!http|#)([^)#]+)", TEXT)
    assert targets
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert missing == []
