"""The wheel and the source archive in an environment that has nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.tools import DEPLOY, ROOT, full_check, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` makes, in a folder outside of the checkout."""
    full_check()
    made = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(made), cwd=ROOT)
    return made


def run(*words: str, cwd: Path, **variables: str) -> str:
    """What a command writes; it must end with 0."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")} | variables
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_the_demo_runs_where_only_the_lock_and_what_was_built_are(folder: Path, kind: str) -> None:
    """What `make dist` makes and what deploy/requirements.txt allows are enough, outside of the checkout."""
    (built,) = folder.glob(kind)
    uv, python = program("uv"), str(folder / "empty/bin/python")
    # The same place for both, so that the second one need not compile.
    run(uv, "venv", "--clear", "--python", sys.executable, "empty", cwd=folder)
    requirements = str(DEPLOY / "requirements.txt")
    run(uv, "pip", "install", "--python", python, "--require-hashes", "-r", requirements, cwd=folder)
    # The source archive is built as its users build it, with the backend that it asks for.
    run(uv, "pip", "install", "--python", python, "--no-deps", str(built), cwd=folder)

    where = run(python, "-c", "import npstream; print(npstream.__file__)", cwd=folder)
    said = run(str(folder / "empty/bin/npstream"), "demo", cwd=folder, NUMBA_CACHE_DIR=str(folder / "compiled"))

    assert Path(where.strip()).is_relative_to(folder / "empty")
    assert "decisions are identical, bit for bit" in said
