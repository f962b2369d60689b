"""`npstream promote`: the challenger becomes the champion."""

from pathlib import Path

import click

from npstream.cli.options import execute_options, json_option, load_settings, settings_options
from npstream.cli.output import echo_json
from npstream.cli.repositioning import planned_alone


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
@execute_options
@json_option
def promote(config: Path, assignments: tuple[str, ...], execute: bool, gone: bool, as_json: bool) -> None:
    """Put the challenger in the champion's place. A dry run unless --execute is given."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.history.promotion import plan_promotion
    from npstream.history.promotion_report import promotions_json, promotions_text

    wanted = backend_of(settings).partition_config()
    planned = planned_alone(
        settings,
        (),
        lambda state, partition: state.committed(partition),
        lambda _, past, committed: plan_promotion(past, committed, settings.checkpoint.keep, wanted),
        execute=execute,
        gone=gone,
    )
    if as_json:
        echo_json(promotions_json(planned, executed=execute))
    else:
        click.echo(promotions_text(planned, executed=execute))
