"""`npstream recover`: a group that has lost its offsets finds its place again."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.moving import move, moving_options
from npstream.cli.options import config_option, json_option, load_settings, set_option

if TYPE_CHECKING:
    from npstream.backtest.moves import Move, Order
    from npstream.backtest.rebuild import Past
    from npstream.port import Log
    from npstream.records import Position


@click.command(
    epilog="""\b
Example:
  npstream recover --config config/kafka.yaml
  npstream recover --config config/kafka.yaml --execute

\b
For a group whose committed offsets were deleted or have expired. Every decision and dead letter
names its event, so the place is known: the state is recomputed from the newest kept checkpoint
up to the last event that was answered, compared with what was published, and committed. No
decision is repeated and none is lost. Partitions that have their offset are left alone.
Exit codes: 0 planned or done; 2 workers are active, or it cannot be recomputed; 3 settings
refused; 4 brokers; 5 what was published is not what these settings lead to."""
)
@config_option()
@set_option
@moving_options
@json_option
def recover(
    config: Path,
    assignments: tuple[str, ...],
    only: tuple[int, ...],
    why: str,
    execute: bool,
    gone: bool,
    as_json: bool,
) -> None:
    """Compute lost positions anew from what was published. A dry run unless --execute is given."""
    settings = load_settings(config, assignments)

    from npstream.backtest.moves import plan_recovery

    def plan(log: "Log", past: "Past", stood: "Position | None", order: "Order") -> "Move | None":
        return None if stood is not None else plan_recovery(past, order, settings.partition_config())

    move(settings, only, why or "the group's offsets were lost", plan, execute=execute, gone=gone, as_json=as_json)
