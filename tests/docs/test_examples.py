"""What the pages show runs: Python examples, and every npstream command, in order, on the data that they make."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from npstream.cli import COMMANDS
from npstream.codec.decisions import decode_decision
from tests.broker import Kafka
from tests.docs.pages import PAGES, README, ROOT, blocks, commands, name_of

_PYTHON = [(page, block) for page in PAGES for block in blocks(page, "python")]
_ON_KAFKA = "payments.yaml"
LOCAL = [line for line in commands(README, "npstream") if _ON_KAFKA not in line]
OTHERS = [page for page in PAGES if page != README and commands(page, "npstream")]
# What the pages only speak of: it needs a broker of its own, or minutes.
NOT_RUN = {"bench"}


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
        r"^tau=0.01 +\d+ +([\d.]+) +([\d.]+)-([\d.]+) +[\d.]+ +([\d.]+)", printed["backtest"], re.MULTILINE
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


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_readme_works_on_kafka(kafka: Kafka, tmp_path: Path) -> None:
    """Its settings and its commands, on a broker; its event and label are taken, and the decision has its fields."""
    settings, (event, decision) = blocks(README, "yaml")[0], blocks(README, "json")
    (tmp_path / _ON_KAFKA).write_text(settings)
    (tmp_path / "events.jsonl").write_text(event)
    on_broker = {"NPSTREAM__KAFKA__BOOTSTRAP": kafka.bootstrap}
    init, *others = [line for line in commands(README, "npstream") if _ON_KAFKA in line]

    for line in (init, f"npstream produce events.jsonl --config {_ON_KAFKA}", *others):
        type_in(line, tmp_path, on_broker)

    found = npstream(f"npstream inspect --config {_ON_KAFKA} --json", tmp_path, on_broker).stdout
    assert "labels_joined" in found
    assert decode_decision(decision.strip().encode()).id == "order-17"


def test_every_command_is_shown() -> None:
    """No command is without an example that runs."""
    shown = {line.split()[1] for page in PAGES for line in commands(page, "npstream")}

    assert set(COMMANDS) - shown == NOT_RUN


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
        assert worker.poll() is None, "the worker ended by itself"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0


def lag(folder: Path, config: str = "config/local.yaml", environment: Mapping[str, str] | None = None) -> list[int]:
    """What `npstream lag --json` says of each partition."""
    found = npstream(f"npstream lag --config {config} --json", folder, environment).stdout
    return [partition["records"] for partition in orjson.loads(found)["partitions"]]
