"""The wheel in an environment that has nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.tools import DEPLOY, ROOT, full_check, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def run(*words: str, cwd: Path) -> str:
    """What a command writes; it must end with 0."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def test_the_demo_runs_where_only_the_lock_and_the_wheel_are(tmp_path: Path) -> None:
    """What `make dist` makes and what deploy/requirements.txt allows are enough, outside of the checkout."""
    full_check()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    python = str(tmp_path / "empty/bin/python")
    uv = program("uv")
    run(uv, "venv", "--python", sys.executable, "empty", cwd=tmp_path)
    requirements = str(DEPLOY / "requirements.txt")
    run(uv, "pip", "install", "--python", python, "--require-hashes", "-r", requirements, cwd=tmp_path)
    run(uv, "pip", "install", "--python", python, "--no-deps", "--no-index", str(wheel), cwd=tmp_path)

    said = run(str(tmp_path / "empty/bin/npstream"), "demo", cwd=tmp_path)

    assert "decisions are identical, bit for bit" in said
