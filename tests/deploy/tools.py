"""The programs that judge what deploy/ holds, and where things are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHECK_VARIABLE = "NPSTREAM_DEPLOY_CHECK"


def program(name: str) -> str:
    """A program that came with the development requirements, or one on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    return found or _without(f"{name} is not installed; `make lint` brings it with the development requirements")


def promtool() -> str:
    """Prometheus' own judge of rules and settings; a system package."""
    return shutil.which("promtool") or _without("promtool is not installed; install the package `prometheus`")


def full_check() -> None:
    """Skip unless `make deploy-check` asked for what takes minutes."""
    if os.environ.get(CHECK_VARIABLE) != "1":
        pytest.skip("takes minutes; run `make deploy-check`")


def run(*command: str, cwd: Path = ROOT, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; the caller looks at how it ended."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout_s, check=False)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """All that a program wrote, for a failed assertion."""
    return f"{' '.join(map(str, done.args))}\n{done.stdout}\n{done.stderr}"


def _without(reason: str) -> NoReturn:
    """Skip at a desk, fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs it: {reason}", pytrace=False)
    pytest.skip(reason)
