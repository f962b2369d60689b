"""`npstream rollback`: return partitions to an earlier state."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.options import json_option, load_settings, reposition_options, settings_options
from npstream.cli.repositioning import reposition

if TYPE_CHECKING:
    from npstream.history.rebuild import Past
    from npstream.history.reposition import Order, Reposition
    from npstream.port import Log
    from npstream.records import Position


@click.command(
    epilog="""\b
Examples:
  npstream inspect  --config config/kafka.yaml --partition 3 --history
  npstream rollback --config config/kafka.yaml --partition 3 --to-checkpoint 120000
  npstream rollback --config config/kafka.yaml --to 2026-05-01T12:00:00Z --why "wrong labels" --execute

\b
The partition goes on from that place with the state it had there: whatever it learned
later is forgotten. Decisions already published stay, and the events from there on are
decided again: readers of the decisions topic see them twice. Needs all workers stopped.
Exit codes: 0 planned or done; 2 workers are active, or no checkpoint leads there;
3 settings refused; 4 brokers; 5 unreadable state."""
)
@settings_options()
@click.option("--to-checkpoint", "checkpoint", type=click.IntRange(0), help="A kept checkpoint, by its input offset.")
@click.option("--to", "to", metavar="WHEN", help="An input offset, or an ISO timestamp with zone.")
@reposition_options
@json_option
def rollback(
    config: Path,
    assignments: tuple[str, ...],
    checkpoint: int | None,
    to: str | None,
    only: tuple[int, ...],
    why: str,
    execute: bool,
    gone: bool,
    as_json: bool,
) -> None:
    """Return partitions to a kept checkpoint, an offset or a time. A dry run unless --execute is given."""
    settings = load_settings(config, assignments)

    from npstream.cli.ranges import offset_of
    from npstream.errors import UsageError
    from npstream.history.reposition import plan_rollback

    if (checkpoint is None) == (to is None):
        raise UsageError("say where to: --to-checkpoint OFFSET or --to WHEN, one of them")

    def plan(log: "Log", past: "Past", committed: "Position | None", order: "Order") -> "Reposition | None":
        if past.history.newest is None and committed is None:
            return None
        offset = None if to is None else offset_of(log, past.partition, to, 0)
        return plan_rollback(past, committed, order, checkpoint, offset)

    reposition(settings, only, why, plan, execute=execute, gone=gone, as_json=as_json)
