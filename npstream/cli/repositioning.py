"""What `rollback`, `reset`, `recover` and `promote` share: plan every partition, commit all with `--execute`."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from npstream.cli.output import echo_json
from npstream.cli.reading import opened, past_of

if TYPE_CHECKING:
    from npstream.history.rebuild import Past
    from npstream.history.reposition import Order, Reposition
    from npstream.port import Log, StateReader
    from npstream.records import Position, Share
    from npstream.settings import Settings

_JOIN_S = 60.0
_SETTLE_S = 30.0


class PlannedShare(Protocol):
    """What is to become of a partition: the share to commit, and the position that it was planned from."""

    @property
    def partition(self) -> int: ...
    @property
    def committed(self) -> "Position | None": ...
    @property
    def share(self) -> "Share": ...


P = TypeVar("P", bound=PlannedShare)


def reposition(
    settings: "Settings",
    only: tuple[int, ...],
    why: str,
    plan: "Callable[[Log, Past, Position | None, Order], Reposition | None]",
    *,
    execute: bool,
    gone: bool,
    as_json: bool,
) -> None:
    """Plan the new position of each partition, commit it with `execute`, and show it. Raises as `planned_alone`."""
    from npstream.history.reposition import Order
    from npstream.history.reposition_report import repositions_json, repositions_text
    from npstream.history.sole_member import try_committed

    order = Order(why, int(time.time() * 1000), settings.checkpoint.keep)
    planned = planned_alone(
        settings,
        only,
        try_committed,
        lambda log, past, committed: plan(log, past, committed, order),
        execute=execute,
        gone=gone,
    )
    if as_json:
        echo_json(repositions_json(planned, executed=execute))
    else:
        click.echo(repositions_text(planned, settings.topic_names().decisions, executed=execute))


def planned_alone(
    settings: "Settings",
    only: tuple[int, ...],
    committed_of: "Callable[[StateReader, int], Position | None]",
    plan: "Callable[[Log, Past, Position | None], P | None]",
    *,
    execute: bool,
    gone: bool,
) -> list[P]:
    """Plan each partition when it has settled; with `execute` commit what was planned in one transaction.

    Raises `UsageError` when workers are active and `execute` is asked for; with `gone` the places of static members
    are taken from them first.
    """
    from npstream.backend import backend_of
    from npstream.cli.ranges import partitions_of
    from npstream.history.published import wait_settled
    from npstream.history.sole_member import commit_alone, require_nobody
    from npstream.records import Channel

    backend = backend_of(settings)
    planned: list[P] = []
    with opened(settings) as (log, state):
        if execute:
            if gone:
                backend.remove_dead_workers()
            require_nobody(state, settings.group, backend.advise_on_members(gone))
        for partition in partitions_of(log, settings.topic_names().events, only):
            committed = committed_of(state, partition)
            wait_settled(log, partition, time.monotonic, time.sleep, _SETTLE_S)
            found = plan(log, past_of(settings, log, partition), committed)
            planned += [] if found is None else [found]
        if execute and planned:
            count = log.partitions(Channel.EVENTS)
            positions = {item.partition: item.committed for item in planned}
            shares = [item.share for item in planned]
            commit_alone(backend.open_sole_member(), count, positions, shares, time.monotonic, _JOIN_S)
    return planned
