"""Every command that opens the embedded log says in one line what is wrong with its path."""

from pathlib import Path

import pytest

from npstream.cli import exits
from tests.cli.lines import npstream, settings_file
from tests.stage.command import npstream as as_process

COMMANDS = (
    ("init",),
    ("produce", "{events}"),
    ("backtest",),
    ("train", "--out", "{folder}/model"),
    ("tune", "--out", "{folder}/best.yaml"),
    ("audit",),
    ("inspect", "--partition", "0"),
    ("explain", "--partition", "0", "--offset", "0"),
    ("export", "{folder}/exported.jsonl"),
    ("lag",),
    ("monitor",),
    ("dlq", "list"),
    ("doctor",),
    ("compare",),
    ("promote", "--execute"),
    ("rollback", "--to", "0", "--execute"),
    ("reset", "--to", "earliest", "--execute"),
    ("recover", "--execute"),
)
PATHS = {
    "a folder that cannot be made": "/proc/x/n.db",
    "a folder that nobody may write to": "/proc/n.db",
    "a folder": "{folder}",
    "a file as a folder": "{folder}/settings.yaml/n.db",
    "a name too long": "{folder}/" + 300 * "n",
}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_a_path_that_cannot_be_used_is_one_line_and_an_exit_code(
    tmp_path: Path, command: tuple[str, ...], path: str
) -> None:
    """The line names the path; the code is the one for access refused, whatever the command."""
    events = tmp_path / "events.jsonl"
    events.write_text('{"x": [1, 2, 3], "y": 1}\n')
    settings_file(tmp_path)
    path = path.format(folder=tmp_path)
    words = [word.format(folder=tmp_path, events=events) for word in command]

    done = npstream(*words, "--config", tmp_path / "settings.yaml", "--set", f"embedded.path={path}")

    assert (done.code, done.out) == (exits.FATAL, "")
    assert done.err.startswith("npstream: ")
    assert path in done.err
    assert done.err.count("\n") == 1


@pytest.mark.slow
def test_a_worker_says_the_same(tmp_path: Path) -> None:
    """Its log is on standard output; what ended it is the last word on standard error."""
    settings = settings_file(tmp_path)
    done = as_process("run", "--config", str(settings), "--set", f"embedded.path={tmp_path}")

    assert done.returncode == exits.FATAL
    assert done.stderr == f"npstream: {tmp_path} is a folder: embedded.path must name a file in it\n"
