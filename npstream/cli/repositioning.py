"""What `rollback`, `reset` and `recover` share: plan, show the plan, and write it with `--execute`."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from npstream.cli.output import echo_json
from npstream.cli.reading import opened, past_of

if TYPE_CHECKING:
    from npstream.history.rebuild import Past
    from npstream.history.reposition import Move, Order
    from npstream.port import Log
    from npstream.records import Position
    from npstream.settings import Settings

_JOIN_S = 60.0
_SETTLE_S = 30.0


def move(
    settings: "Settings",
    only: tuple[int, ...],
    why: str,
    plan: "Callable[[Log, Past, Position | None, Order], Move | None]",
    *,
    execute: bool,
    gone: bool,
    as_json: bool,
) -> None:
    """Plan the move of each partition, show it, and commit all of them in one transaction when told to.

    Raises `UsageError` when workers are active and `execute` is asked for; with `gone` the places of static members
    are taken from them first.
    """
    from npstream.backend import backend_of
    from npstream.cli.ranges import partitions_of
    from npstream.history.published import wait_settled
    from npstream.history.reposition import Order
    from npstream.history.reposition_report import moves_json, moves_text
    from npstream.history.sole_member import commit_alone, require_nobody, try_committed
    from npstream.records import Channel

    backend, topics = backend_of(settings), settings.topic_names()
    order = Order(why, int(time.time() * 1000), settings.checkpoint.keep)
    moves: list[Move] = []
    with opened(settings) as (log, state):
        if execute:
            if gone:
                backend.remove_dead_workers()
            require_nobody(state, settings.group, backend.advise_on_members(gone))
        for partition in partitions_of(log, topics.events, only):
            stood = try_committed(state, partition)
            wait_settled(log, partition, time.monotonic, time.sleep, _SETTLE_S)
            planned = plan(log, past_of(settings, log, partition), stood, order)
            if planned is not None:
                moves.append(planned)
        if execute and moves:
            stood_at = {planned.partition: planned.stood for planned in moves}
            shares = [planned.share for planned in moves]
            count = log.partitions(Channel.EVENTS)
            commit_alone(backend.open_sole_member(), count, stood_at, shares, time.monotonic, _JOIN_S)
    if as_json:
        echo_json(moves_json(moves, executed=execute))
    else:
        click.echo(moves_text(moves, topics.decisions, executed=execute))
