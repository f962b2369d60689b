"""Which tests a run takes, and in what order."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """
import pytest

def test_plain(): pass
def test_of_a_broker(private_kafka): pass
@pytest.mark.slow
def test_that_takes_long(): pass
@pytest.mark.kafka
def test_that_says_so(request): pass
def test_that_asks_late(request): request.getfixturevalue("kafka")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of tests under the fixtures of this project, the cheap one first by name."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text("from tests.conftest import *\n")
    (tests / "test_a.py").write_text("def test_cheap(): pass\n")
    (tests / "test_b.py").write_text(PROGRAM)
    return tmp_path


def lines_of(folder: Path, *arguments: str) -> list[str]:
    """What pytest prints for this folder."""
    command = [sys.executable, "-m", "pytest", "--rootdir", str(folder), "-c", "/dev/null", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *arguments, "tests"],
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_quick_leaves_out_brokers_and_long_tests_and_counts_them(folder: Path) -> None:
    """What asks for a broker is found by its fixtures; what asks at run time fails and must say so."""
    lines = lines_of(folder, "--quick", "-n", "2", "--dist", "loadfile", "-q")

    assert "quick: 3 tests; left out 3 (2 kafka, 0 browser, 1 slow, 0 deploy/): make test runs them" in lines
    assert "this test starts a broker: give it the mark `kafka`" in lines
    assert lines[-1].startswith("1 failed, 2 passed")


@pytest.mark.slow
def test_dear_files_come_first(folder: Path) -> None:
    """Whole files are ordered by what their tests cost; within a file nothing moves."""
    found = [line for line in lines_of(folder, "--collect-only", "-q") if "::" in line]

    names = ["test_plain", "test_of_a_broker", "test_that_takes_long", "test_that_says_so", "test_that_asks_late"]
    assert found == [*(f"tests/test_b.py::{name}" for name in names), "tests/test_a.py::test_cheap"]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "outcome"), [(("--quick",), "2 passed"), ((), "1 failed, 1 passed")])
def test_a_quick_run_draws_few_examples_whatever_a_property_asks_for(
    tmp_path: Path, arguments: tuple[str, ...], outcome: str
) -> None:
    """The property asks for 300, and the test behind it for less than 30."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text("from tests.conftest import *\n")
    (tests / "test_a.py").write_text(
        "from hypothesis import given, settings, strategies\n"
        "drawn = []\n"
        "@settings(max_examples=300, database=None)\n"
        "@given(strategies.integers())\n"
        "def test_property(n): drawn.append(n)\n"
        "def test_drawn(): assert len(drawn) < 30\n"
    )

    assert lines_of(tmp_path, *arguments, "-q")[-1].startswith(outcome)
