"""What `rollback`, `reset` and `recover` share: look, plan, and write when told to."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from npstream.cli.options import echo_json
from npstream.cli.tooling import opened, past_of

if TYPE_CHECKING:
    from npstream.history.rebuild import Past
    from npstream.history.reposition import Move, Order
    from npstream.port import Log
    from npstream.records import Position
    from npstream.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_JOIN_S = 60.0
_SETTLE_S = 30.0


def moving_options(function: F) -> F:
    """`--partition`, `--why`, `--execute` and `--workers-are-gone`."""
    function = click.option(
        "--workers-are-gone",
        "gone",
        is_flag=True,
        help="With --execute: do not wait until the group forgets stopped workers. One that runs after all loses its "
        "place, what it has not committed is decided again.",
    )(function)
    function = click.option("--execute", is_flag=True, help="Do it; without, only say what would be done.")(function)
    function = click.option("--why", default="", help="Reason to remember with it.")(function)
    return click.option("--partition", "only", type=int, multiple=True, help="Only these partitions.")(function)


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
    from npstream import app
    from npstream.cli.ranges import partitions_of
    from npstream.history.published import wait_settled
    from npstream.history.reposition import Order
    from npstream.history.reposition_report import moves_json, moves_text
    from npstream.history.sole_member import commit_alone, require_nobody, try_committed
    from npstream.records import Channel

    topics = settings.topic_names()
    order = Order(why, int(time.time() * 1000), settings.checkpoint.keep)
    moves: list[Move] = []
    with opened(settings) as (log, state):
        if execute:
            if gone:
                app.dismiss_workers(settings)
            require_nobody(state, settings.group, _advice(settings, gone))
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
            commit_alone(app.open_tool_broker(settings), count, stood_at, shares, time.monotonic, _JOIN_S)
    if as_json:
        echo_json(moves_json(moves, executed=execute))
    else:
        click.echo(moves_text(moves, topics.decisions, executed=execute))


def _advice(settings: "Settings", gone: bool) -> str:
    """What to do about members that are stopped already; a file has none."""
    if settings.kafka is None:
        return ""
    forgotten = f"is forgotten {settings.kafka.session_timeout_ms / 1000:g} s after it"
    if gone:
        return f" A worker without static membership that was killed {forgotten} died; others have joined since."
    return f" A stopped worker {forgotten} stopped; --workers-are-gone does not wait for that."
