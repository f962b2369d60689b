"""What the commands that look at a running group share: options, and the clients they look with."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from npstream.history.rebuild import Past
    from npstream.port import Log, StateReader
    from npstream.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def range_options(function: F) -> F:
    """`--from`, `--to` and `--partition`: a part of the topic."""
    function = click.option("--partition", "only", type=int, multiple=True, help="Only these partitions.")(function)
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


@contextmanager
def opened(settings: "Settings") -> Iterator[tuple["Log", "StateReader"]]:
    """A plain reader and a state of the group, closed at the end."""
    from npstream import app

    with closing(app.open_log(settings)) as log, closing(app.open_state(settings)) as state:
        yield log, state


def past_of(settings: "Settings", log: "Log", partition: int) -> "Past":
    """What the topics still tell of one partition of these settings' group."""
    from npstream import app
    from npstream.history.rebuild import read_past

    origin = app.origin_of(settings)
    return read_past(log, origin.group, origin.topic, partition, origin.seed)
