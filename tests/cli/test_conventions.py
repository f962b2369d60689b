"""What every command keeps to, made from the table of commands, so that a new one is tested when it is named."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npstream.cli import COMMANDS
from npstream.cli.exits import FATAL, MEANINGS, OK, SETTINGS, USAGE
from tests.cli.lines import ENTRY, PYTHON, Done, filled, leaves, npstream, settings_file, takes

LEAVES = dict(leaves())
WITH_CONFIG = [words for words, command in LEAVES.items() if takes(command, "--config")]
TOOLS = [words for words in WITH_CONFIG if words not in {("check",), ("run",)}]
"""Commands that look at topics: check connects to nothing, and the worker has a log of its own."""
ALSO: dict[tuple[str, ...], list[str]] = {
    ("explain",): ["--partition", "0", "--offset", "0"],
    ("rollback",): ["--to", "0"],
    ("route-labels",): ["--set", "labels.topic=labels"],
}
"""What a command wants although no single option of it is required."""
HEAVY = ("numpy", "numba", "pydantic", "confluent_kafka", "rich", "yaml")


def called(words: tuple[str, ...]) -> str:
    """The name of a test: the command as typed."""
    return " ".join(words)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command writes by default goes to the test's folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A loopback port that nobody listens on, and nobody can take meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def command_line(words: tuple[str, ...], config: Path, *more: str) -> list[str]:
    """A command with a settings file, a small file where it wants one, and values for what it must be given."""
    folder = config.parent
    (folder / "events.jsonl").write_text('{"id":"a","x":[1,2,3],"y":1}\n')
    return [*words, *filled(LEAVES[words], folder), *ALSO.get(words, []), "--config", str(config), *more]


def assert_one_message(done: Done, code: int) -> None:
    """An error is reported on standard error, once and without a traceback; standard output stays empty."""
    assert (done.code, done.out) == (code, ""), done.err
    assert "Traceback" not in done.err
    assert done.err.startswith("npstream: ")
    assert done.err.count("npstream: ") == 1


@pytest.mark.parametrize("words", [*LEAVES, *((name,) for name in COMMANDS if (name,) not in LEAVES)], ids=called)
def test_help_has_an_example(words: tuple[str, ...]) -> None:
    """`--help` ends well and shows how the command is called."""
    done = npstream(*words, "--help")

    assert done.code == OK
    assert "Example" in done.out
    assert f"npstream {called(words)}" in done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize("words", LEAVES, ids=called)
def test_every_command_speaks_json(words: tuple[str, ...]) -> None:
    """Scripts can ask any command for JSON."""
    assert takes(LEAVES[words], "--json")


@pytest.mark.parametrize("words", LEAVES, ids=called)
def test_help_lists_the_exit_codes(words: tuple[str, ...]) -> None:
    """Success, refused settings where there are any, and no code that the table of exit codes does not explain."""
    _, _, reported = npstream(*words, "--help").out.partition("Exit codes:")

    codes = [int(clause.split()[0]) for clause in reported.rstrip().rstrip(".").split(";")]
    assert codes[0] == OK
    assert set(codes) <= set(MEANINGS)
    assert SETTINGS in codes or words not in WITH_CONFIG


def test_help_loads_nothing_heavy() -> None:
    """`npstream --help` responds at once because it reads a table and imports no command."""
    program = f"import sys\ntry:\n    exec({ENTRY!r})\nfinally:\n    print(*sys.modules, file=sys.stderr)"

    done = subprocess.run([PYTHON, "-c", program, "--help"], capture_output=True, text=True, timeout=60, check=True)

    assert all(name in done.stdout for name in COMMANDS)
    assert set(HEAVY) & set(done.stderr.split()) == set()


@pytest.mark.parametrize("words", WITH_CONFIG, ids=called)
def test_a_missing_settings_file_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    """A wrong path to the settings ends with the usage code."""
    done = npstream(*command_line(words, tmp_path / "nowhere.yaml"))

    assert_one_message(done, USAGE)
    assert "nowhere.yaml" in done.err


@pytest.mark.parametrize("words", WITH_CONFIG, ids=called)
def test_every_problem_of_the_settings_is_printed(words: tuple[str, ...], tmp_path: Path) -> None:
    """Wrong settings end with their code and all problems, not the first."""
    config = settings_file(tmp_path, model={"d": 3, "tau": 7, "bugdet": 1}, chekpoint={}, labels={"buffer_max": -1})

    done = npstream(*command_line(words, config))

    assert_one_message(done, SETTINGS)
    for path in ("model.tau", "model.bugdet", "chekpoint", "labels.buffer_max"):
        assert path in done.err
    assert "did you mean budget?" in done.err


@pytest.mark.parametrize("words", WITH_CONFIG, ids=called)
def test_an_unknown_setting_on_the_command_line_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    """`--set` knows the same settings as the file."""
    done = npstream(*command_line(words, settings_file(tmp_path), "--set", "model.taw=0.5"))

    assert_one_message(done, SETTINGS)
    assert "model.taw: unknown setting; did you mean tau?" in done.err


@pytest.mark.parametrize("words", TOOLS, ids=called)
def test_a_missing_log_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    """Without its embedded log a command ends with the code for brokers and names the file; init makes it."""
    done = npstream(*command_line(words, settings_file(tmp_path)))

    if words == ("init",):
        assert done.code == OK
        return
    if words == ("route-labels",):
        assert_one_message(done, USAGE)  # it copies between topics of Kafka
        return
    assert_one_message(done, FATAL)
    assert "log.db" in done.err
    assert "npstream init" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("words", TOOLS, ids=called)
def test_brokers_out_of_reach_are_named(words: tuple[str, ...], tmp_path: Path, closed_port: int) -> None:
    """A closed port ends every tool with the code for brokers, after the time the settings grant."""
    done = npstream(*command_line(words, _on_kafka(tmp_path, closed_port)))

    assert_one_message(done, FATAL)
    assert f"127.0.0.1:{closed_port}" in done.err


@pytest.mark.slow
def test_a_worker_that_never_reached_its_brokers_ends(tmp_path: Path, closed_port: int) -> None:
    """`run` ends with the code for brokers after kafka.connect_timeout_ms; it prints its log alone."""
    config = _on_kafka(tmp_path, closed_port)

    done = subprocess.run(
        [PYTHON, "-c", ENTRY, "run", "--config", str(config), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == FATAL
    assert f"127.0.0.1:{closed_port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert "starting" in [json.loads(line)["event"] for line in done.stdout.splitlines()]


def _on_kafka(folder: Path, port: int, **sections: Any) -> Path:
    kafka = {"bootstrap": f"127.0.0.1:{port}", "group": "g", "worker_name": "w", "connect_timeout_ms": 1000}
    return settings_file(folder, embedded=None, kafka=kafka, **sections)


@pytest.mark.parametrize("arguments", [["nosuch"], ["backtest", "--nosuch"], ["check", "--config"]], ids=" ".join)
def test_a_wrong_command_line_ends_with_the_usage_code(arguments: list[str]) -> None:
    """What the command line itself gets wrong is reported without a traceback."""
    done = npstream(*arguments)

    assert (done.code, done.out) == (USAGE, "")
    assert "Error:" in done.err
    assert "Traceback" not in done.err
