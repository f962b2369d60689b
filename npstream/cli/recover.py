"""`npstream recover`: a group that has lost its offsets, or all its checkpoints, finds its place again."""

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
Example:
  npstream recover --config config/kafka.yaml
  npstream recover --config config/kafka.yaml --execute

\b
For a group whose committed offsets were deleted or have expired. Every decision and dead letter
names its event, so the place is known: the state is recomputed from the newest kept checkpoint
up to the last event that was decided, compared with what was published, and committed. No
decision is repeated and none is lost.

\b
For a partition whose checkpoints are all gone (make a deleted topic again with `npstream init`)
the state is rebuilt from its first event with these settings, and must prove to be the
committed one. Where first events were trimmed, or settings changed on the way, it says so and
what works instead. Partitions that have their offset and a checkpoint are left alone.
Exit codes: 0 planned or done; 2 workers are active, or it cannot be recomputed; 3 settings
refused; 4 brokers; 5 what was committed or published is not what these settings lead to."""
)
@settings_options()
@reposition_options
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
    """Bring back lost positions and lost checkpoints. A dry run unless --execute is given."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.history.reposition import plan_recovery

    def plan(log: "Log", past: "Past", committed: "Position | None", order: "Order") -> "Reposition | None":
        return plan_recovery(past, committed, order, backend_of(settings).partition_config(), settings.start_at())

    reposition(
        settings, only, why or "offsets or checkpoints were lost", plan, execute=execute, gone=gone, as_json=as_json
    )
