"""What `rollback`, `reset` and `recover` share: plan, show the plan, and write it with `--execute`."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from npstream.cli.output import echo_json
from npstream.cli.reading import opened, past_of

if TYPE_CHECKING:
    from npstream.history.rebuild import Past
    from npstream.history.reposition import Order, Reposition
    from npstream.port import Log
    from npstream.records import Position
    from npstream.settings import Settings

_JOIN_S = 60.0
_SETTLE_S = 30.0


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
    """Plan the new position of each partition, show it, and with `execute` commit all of them in one transaction.

    Raises `UsageError` when workers are active and `execute` is asked for; with `gone` the places of static members
    are taken from them first.
    """
    from npstream.backend import backend_of
    from npstream.cli.ranges import partitions_of
    from npstream.history.published import wait_settled
    from npstream.history.reposition import Order
    from npstream.history.reposition_report import repositions_json, repositions_text
    from npstream.history.sole_member import commit_alone, require_nobody, try_committed
    from npstream.records import Channel

    backend, topics = backend_of(settings), settings.topic_names()
    order = Order(why, int(time.time() * 1000), settings.checkpoint.keep)
    planned: list[Reposition] = []
    with opened(settings) as (log, state):
        if execute:
            if gone:
                backend.remove_dead_workers()
            require_nobody(state, settings.group, backend.advise_on_members(gone))
        for partition in partitions_of(log, topics.events, only):
            committed = try_committed(state, partition)
            wait_settled(log, partition, time.monotonic, time.sleep, _SETTLE_S)
            found = plan(log, past_of(settings, log, partition), committed, order)
            planned += [] if found is None else [found]
        if execute and planned:
            count = log.partitions(Channel.EVENTS)
            positions = {item.partition: item.committed for item in planned}
            shares = [item.share for item in planned]
            commit_alone(backend.open_sole_member(), count, positions, shares, time.monotonic, _JOIN_S)
    if as_json:
        echo_json(repositions_json(planned, executed=execute))
    else:
        click.echo(repositions_text(planned, topics.decisions, executed=execute))
