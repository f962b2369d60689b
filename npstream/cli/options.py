"""Options that several commands share."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson

if TYPE_CHECKING:
    from npstream.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def config_option(*, required: bool = True) -> Callable[[F], F]:
    """`--config FILE`, the settings file."""
    return click.option(
        "--config",
        "-c",
        "config",
        type=click.Path(path_type=Path),
        required=required,
        envvar="NPSTREAM_CONFIG",
        show_envvar=True,
        help="Settings file (YAML).",
    )


def set_option(function: F) -> F:
    """`--set section.key=value`, any number of times."""
    return click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override one setting, for instance --set model.tau=0.05. May be given often.",
    )(function)


def label_option(function: F) -> F:
    """`--label NAME`: which column of a table says what is a target."""
    return click.option(
        "--label",
        metavar="NAME",
        help="Label column of a .csv or .parquet file with named columns; by default y, label, target or class.",
    )(function)


def json_option(function: F) -> F:
    """`--json`: one JSON document on standard output and nothing else."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")(function)


def load_settings(config: Path, assignments: tuple[str, ...]) -> "Settings":
    """Settings of a file, the environment and the command line. Raises `SettingsError`, `UsageError`."""
    from npstream.settings import load

    return load(config, environment(), assignments)


def environment() -> dict[str, str]:
    """The environment; HOSTNAME, which names the worker's slot, is there even when the shell does not export it."""
    return {"HOSTNAME": socket.gethostname(), **os.environ}


def echo_json(document: object) -> None:
    """Print a JSON document."""
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())
