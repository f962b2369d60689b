"""Command lines for the tests: every command there is, run as a user would, and what it said."""

import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click
import yaml

from npstream.cli import COMMANDS, cli, main

SMALL: dict[str, Any] = {
    "embedded": {"path": "log.db"},
    "topics": {"events": "events"},
    "model": {"d": 3, "D": 8, "tau": 0.1, "budget": 5},
    "http": "off",
}
"""Settings whose model compiles and learns quickly."""


@dataclass(frozen=True, slots=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str


class _Captured(TextIOWrapper):
    """Standard output or error that is not a terminal."""

    def __init__(self) -> None:
        super().__init__(BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        buffer = self.buffer
        assert isinstance(buffer, BytesIO)
        return buffer.getvalue().decode()


def npstream(*arguments: str | Path) -> Done:
    """Run a command line in this process, through the entry point of the installed command."""
    out, err = _Captured(), _Captured()
    code: Any = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
    return Done(0 if code is None else int(code), out.text(), err.text())


def settings_file(folder: Path, **sections: Any) -> Path:
    """A settings file on an embedded log in `folder`; `sections` replace the small ones, None removes."""
    given = {**SMALL, "embedded": {"path": str(folder / "log.db")}, **sections}
    path = folder / "settings.yaml"
    path.write_text(
        yaml.safe_dump({name: section for name, section in given.items() if section is not None}, sort_keys=False)
    )
    return path


def leaves() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, groups opened, with the words that call it."""
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield from _opened((name,), command)


def _opened(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from _opened((*words, name), below)


def takes(command: click.Command, option: str) -> bool:
    """Whether a command has an option."""
    return any(option in parameter.opts for parameter in command.params)


def filled(command: click.Command, folder: Path) -> list[str]:
    """Values for everything a command cannot be called without, but --config."""
    found: list[str] = []
    for parameter in command.params:
        if not parameter.required or "--config" in parameter.opts:
            continue
        value = _value(parameter, folder)
        found += [value] if isinstance(parameter, click.Argument) else [parameter.opts[0], value]
    return found


def _value(parameter: click.Parameter, folder: Path) -> str:
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    if isinstance(parameter.type, click.Path):
        return str(folder / "events.jsonl")
    return "0"


PYTHON = sys.executable
ENTRY = "import sys; from npstream.cli import main; main(sys.argv[1:])"
"""The installed command, as a program for `python -c`."""
