"""Machine code that came with the image is used though its folder cannot be written to."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.tools import ROOT

BASELINE = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}
# As where nothing can be written beside the program.
READ_ONLY_PROGRAM = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator,UserWideCacheLocator"}
# One small compiled function is enough for all: the decorator is the same.
PROGRAM = """
from npstream.model.generator import uniform
import numpy as np
print(uniform(np.uint64(7), 3), sum(uniform.stats.cache_hits.values()), sum(uniform.stats.cache_misses.values()))
"""


def call(cache: Path, home: Path, **variables: str) -> tuple[str, int, int]:
    """(result, cache hits, cache misses) of the function in a process of its own, which obeys permissions."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "NUMBA_CACHE_DIR": str(cache), **BASELINE, **variables}
    done = subprocess.run(
        [*obedient(), sys.executable, "-B", "-c", PROGRAM],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result, hits, misses = done.stdout.split()
    return result, int(hits), int(misses)


def obedient() -> list[str]:
    """How to start a program that even as root cannot write where permissions forbid it."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root may write everywhere and setpriv is not installed to take that right away")
    return [setpriv, "--bounding-set=-dac_override"]


def forbid_writing(folder: Path) -> None:
    """As on a read-only root."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that can be written to, as /tmp in a pod."""
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture
def baked(tmp_path: Path, home: Path) -> Path:
    """A cache with the function's code in it, which nobody may write to."""
    cache = tmp_path / "baked"
    assert call(cache, home)[1:] == (0, 1)
    forbid_writing(cache)
    return cache


def test_baked_code_is_loaded_from_a_folder_that_cannot_be_written(baked: Path, home: Path) -> None:
    """A worker of the image compiles nothing, and nothing is written anywhere."""
    before = sorted(baked.rglob("*"))

    result, hits, misses = call(baked, home)

    assert (hits, misses) == (1, 0)
    assert 0.0 <= float(result) < 1.0
    assert sorted(baked.rglob("*")) == before
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_another_processor_compiles_for_itself_and_keeps_it(baked: Path, home: Path) -> None:
    """Where the baked code does not fit, the first start compiles, with the same number; the next one loads that."""
    expected, _, _ = call(baked, home)

    first, second = (call(baked, home, NUMBA_CPU_NAME="x86-64-v2", **READ_ONLY_PROGRAM) for _ in range(2))

    assert first == (expected, 0, 1)
    assert second == (expected, 1, 0)
    assert [*home.rglob("*.nbc")] != []
