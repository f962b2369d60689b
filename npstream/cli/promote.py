"""`npstream promote`: the challenger becomes the champion."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json
from npstream.cli.reading import opened, past_of

if TYPE_CHECKING:
    from npstream.history.promotion import Promotion

_JOIN_S = 60.0
_SETTLE_S = 30.0


@click.command(
    epilog="""\b
Examples:
  npstream promote --config config/kafka.yaml
  npstream promote --config config/kafka.yaml --execute

\b
First write into `model` (and events.features) what `challenger` says, and take `challenger`
out or put the next one there: workers start with this file afterwards. Every partition goes
on where it is with what its challenger has learned, in one transaction with a record of the
change; group, topics, history, the budget and observations that wait stay. Needs all
workers stopped.
Exit codes: 0 planned or done; 2 workers are active, no challenger, or the settings are not
its own; 3 settings refused; 4 brokers; 5 unreadable state."""
)
@settings_options()
@click.option(
    "--workers-are-gone",
    "gone",
    is_flag=True,
    help="With --execute: do not wait until the group forgets stopped workers.",
)
@click.option("--execute", is_flag=True, help="Do it; without, only say what would be done.")
@json_option
def promote(config: Path, assignments: tuple[str, ...], gone: bool, execute: bool, as_json: bool) -> None:
    """Put the challenger in the champion's place. A dry run unless --execute is given."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.cli.ranges import partitions_of
    from npstream.history.promotion import plan_promotion
    from npstream.history.promotion_report import promotions_json, promotions_text
    from npstream.history.published import wait_settled
    from npstream.history.sole_member import commit_alone, require_nobody
    from npstream.records import Channel

    backend = backend_of(settings)
    wanted = backend.partition_config()
    planned: list[Promotion] = []
    with opened(settings) as (log, state):
        if execute:
            if gone:
                backend.remove_dead_workers()
            require_nobody(state, settings.group, backend.advise_on_members(gone))
        for partition in partitions_of(log, settings.topic_names().events, ()):
            committed = state.committed(partition)
            wait_settled(log, partition, time.monotonic, time.sleep, _SETTLE_S)
            found = plan_promotion(past_of(settings, log, partition), committed, settings.checkpoint.keep, wanted)
            planned += [] if found is None else [found]
        if execute and planned:
            count = log.partitions(Channel.EVENTS)
            positions = {item.partition: item.committed for item in planned}
            shares = [item.share for item in planned]
            commit_alone(backend.open_sole_member(), count, positions, shares, time.monotonic, _JOIN_S)
    if as_json:
        echo_json(promotions_json(planned, executed=execute))
    else:
        click.echo(promotions_text(planned, executed=execute))
