"""`--json`: one document on standard output and nothing else, from every command, on a group that has worked."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from npstream import client
from npstream.cli.exits import FAILED, OK
from npstream.testing import Stage
from tests.cli.lines import SMALL, leaves, npstream, settings_file
from tests.replay.data import write_npz

Arguments = Callable[[Path], list[str]]


def _file(*more: str) -> Arguments:
    return lambda folder: [str(write_npz(folder / "data.npz", 120)), *more]


def _at(*more: str) -> Arguments:
    return lambda folder: list(more)


def _labels(path: Path) -> Path:
    path.write_text("id,y\n7,1\nnobody,0\n")
    return path


CASES: dict[tuple[str, ...], Arguments] = {
    ("check",): _at(),
    ("init",): _at(),
    ("map",): _at(),
    ("doctor",): _at("--no-wait"),
    ("produce",): _file(),
    ("label",): lambda folder: [str(_labels(folder / "labels.csv"))],
    ("backtest",): _at("--set", "model.tau=0.1,0.2"),
    ("train",): lambda folder: ["--out", str(folder / "model.npstream")],
    ("tune",): lambda folder: ["--trials", "2", "--jobs", "1", "--out", str(folder / "best.yaml")],
    ("audit",): _at(),
    ("inspect",): _at("--partition", "0"),
    ("explain",): _at("--partition", "0", "--offset", "5"),
    ("export",): lambda folder: [str(folder / "events.jsonl")],
    ("lag",): _at(),
    ("dlq", "list"): _at(),
    ("dlq", "show"): _at("--partition", "0", "--offset", "300"),
    ("dlq", "redrive"): _at("--dry-run"),
    ("compare",): _at(),
    ("promote",): _at("--set", "model.D=16", "--set", "challenger="),
    ("rollback",): _at("--to", "0"),
    ("reset",): _at("--to", "earliest"),
    ("recover",): _at(),
}
ELSEWHERE = ("run", "demo", "monitor", "experiment", "bench", "route-labels")
"""The worker logs lines, the page is served until it is stopped; the others are long or need Kafka. They have tests of
their own."""


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with settings and a log on which a worker has decided everything; one event was bad."""
    folder = tmp_path_factory.mktemp("worked")
    challenger = {"challenger": {"D": 16}}
    stage = Stage({**SMALL, **challenger}, folder)
    good = [client.event(i, [i % 7, i % 3, 1.0], target=i % 7 > 5) for i in range(300)]
    stage.send([*good, client.Message(b"bad", b"rubbish")])
    stage.run()
    settings_file(folder, **challenger)
    return folder


def test_every_command_has_a_case() -> None:
    """A new command is tested when it is named."""
    assert {words for words, _ in leaves() if words[0] not in ELSEWHERE} == set(CASES)


@pytest.mark.parametrize("words", CASES, ids=" ".join)
@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
def test_the_output_is_plain(words: tuple[str, ...], as_json: bool, worked: Path, tmp_path: Path) -> None:
    """With --json one document, without it text; on a pipe no colour, no bar, and nothing on standard error."""
    flags = ["--json"] if as_json else []

    done = npstream(*words, *CASES[words](tmp_path), "--config", worked / "settings.yaml", *flags)

    assert done.code in (OK, FAILED), done.err
    assert done.err == ""
    assert not re.search(r"[\x1b\r\x08━█]", done.out)
    if as_json:
        json.loads(done.out)
        assert done.out.endswith("\n")
        assert "NaN" not in done.out
    else:
        assert done.out.strip()
