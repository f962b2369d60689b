"""Options that several commands share."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from npstream.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def settings_options(*, required: bool = True) -> Callable[[F], F]:
    """`--config FILE`, the settings file, and `--set section.key=value`, any number of times."""
    config = click.option(
        "--config",
        "-c",
        "config",
        type=click.Path(path_type=Path),
        required=required,
        envvar="NPSTREAM_CONFIG",
        show_envvar=True,
        help="Settings file (YAML).",
    )
    assign = click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override one setting, for instance --set model.tau=0.05. Repeatable.",
    )
    return lambda function: config(assign(function))


def label_option(function: F) -> F:
    """`--label NAME`: which column of a table says what is a target."""
    return click.option(
        "--label",
        metavar="NAME",
        help="Label column of a .csv or .parquet file with named columns; by default that of events.label, else y, "
        "label, target or class.",
    )(function)


def json_option(function: F) -> F:
    """`--json`: one JSON document on standard output and nothing else."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")(function)


def range_options(function: F) -> F:
    """`--from`, `--to` and `--partition`: a part of the topic."""
    function = _only_option(function)
    function = click.option(
        "--to", "end", metavar="WHEN", help="End, not included: ISO timestamp with zone, or an input offset."
    )(function)
    return click.option(
        "--from", "begin", metavar="WHEN", help="First event: ISO timestamp with zone, or an input offset."
    )(function)


def one_partition_option(function: F) -> F:
    """`--partition P`, which partition to look at."""
    return click.option(
        "--partition", type=click.IntRange(0), required=True, help="Input partition to look at, from 0."
    )(function)


def file_argument(function: F) -> F:
    """FILE, optional: without it the topic of the settings is read."""
    return click.argument("file", type=click.Path(path_type=Path), required=False)(function)


def delay_option(function: F) -> F:
    """`--delay N`: labels of a data set come later."""
    return click.option(
        "--delay", type=click.IntRange(0), default=0, help="Labels of a data set come this many rows later."
    )(function)


def partitions_option(function: F) -> F:
    """`--partitions N`: how many models share a file."""
    return click.option(
        "--partitions", type=click.IntRange(1), default=1, show_default=True, help="Models to spread a file over."
    )(function)


def reposition_options(function: F) -> F:
    """`--partition`, `--why`, and those of `execute_options`."""
    function = click.option("--why", default="", help="Reason to remember with it.")(execute_options(function))
    return _only_option(function)


def _only_option(function: F) -> F:
    """`--partition`, which partitions: all without."""
    return click.option(
        "--partition", "only", type=int, multiple=True, metavar="P", help="Only this partition, from 0. Repeatable."
    )(function)


def execute_options(function: F) -> F:
    """`--execute` and `--workers-are-gone`."""
    function = click.option(
        "--workers-are-gone",
        "gone",
        is_flag=True,
        help="With --execute: do not wait until the group forgets stopped workers. One that runs after all loses its "
        "place, what it has not committed is decided again.",
    )(function)
    return click.option("--execute", is_flag=True, help="Do it; without, only say what would be done.")(function)


def load_settings(config: Path, assignments: tuple[str, ...]) -> "Settings":
    """Settings of a file, the environment and the command line. Raises `SettingsError`, `UsageError`."""
    from npstream.settings import load

    return load(config, environment(), assignments)


def environment() -> dict[str, str]:
    """The environment; HOSTNAME, by default the worker's name, is there even when the shell does not export it."""
    return {"HOSTNAME": socket.gethostname(), **os.environ}
