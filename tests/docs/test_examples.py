"""What the pages show runs: Python examples, and every npstream command, in order, on the data that they make."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from npstream.cli import COMMANDS
from tests.docs.pages import PAGES, README, ROOT, blocks, commands, name_of
from tests.docs.reader import ON_KAFKA, lag, type_in

_PYTHON = [(page, block) for page in PAGES for block in blocks(page, "python")]
LOCAL = [line for line in commands(README, "npstream") if ON_KAFKA not in line]
OTHERS = [page for page in PAGES if page != README and commands(page, "npstream")]
# What the pages only speak of: it needs a broker of its own, or minutes.
NOT_RUN = {"bench", "route-labels"}


@pytest.mark.parametrize(("page", "block"), _PYTHON, ids=lambda value: "" if isinstance(value, str) else name_of(value))
def test_python_examples_run(page: Path, block: str) -> None:
    """Each Python example runs as it is."""
    exec(compile(block, name_of(page), "exec"), {})


@dataclass(frozen=True, slots=True)
class Walk:
    """What somebody has who followed the README: a folder, and what each command printed."""

    folder: Path
    printed: dict[str, str]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """The README's commands, those without Kafka, typed from top to bottom."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "config").symlink_to(ROOT / "config")
    return Walk(folder, {line: type_in(line, folder) for line in LOCAL})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_readme_works_without_kafka(walk: Walk) -> None:
    """Everything is decided, and audit and backtest print what the README says they do."""
    printed = {line.split()[1]: output for line, output in walk.printed.items()}
    shown = re.sub(r"\s+", " ", README.read_text())
    (fpr, low, high, detected), *_ = re.findall(
        r"^tau=0.01 +\d+ +[\d.]+% +([\d.]+) +([\d.]+)-([\d.]+) +[\d.]+ +([\d.]+)", printed["backtest"], re.MULTILINE
    )

    assert lag(walk.folder) == [0]
    assert "40000 of 40000 decisions" in printed["audit"]
    assert "40000 of 40000 decisions" in shown
    assert f"FPR {fpr} (95% interval {low} to {high}) at tau 0.01, and {float(detected):.0%} of the targets" in shown


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", OTHERS, ids=name_of)
def test_the_commands_of_a_page_work(page: Path, walk: Walk, tmp_path: Path) -> None:
    """They run in order, in the folder of somebody who has followed the README."""
    folder = tmp_path / "reader"
    shutil.copytree(walk.folder, folder, symlinks=True)

    for line in commands(page, "npstream"):
        type_in(line, folder)


def test_every_command_is_shown() -> None:
    """No command is without an example that runs."""
    shown = {line.split()[1] for page in PAGES for line in commands(page, "npstream")}

    assert set(COMMANDS) - shown == NOT_RUN
