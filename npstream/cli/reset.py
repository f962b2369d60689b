"""`npstream reset`: start over at another offset."""

from dataclasses import replace
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
  npstream reset --config config/kafka.yaml --to earliest
  npstream reset --config config/kafka.yaml --partition 3 --to latest --keep-model --execute
  npstream reset --config config/kafka.yaml --to 2026-05-01T00:00:00Z --start-from model.npstream --execute

\b
Without --keep-model everything learned is forgotten and the partition starts over there, from
a random start or from a model file. With it the model stays and the events in between are
skipped. Decisions already published stay; events that come again are decided again, and
readers see both. To return to an earlier state use `npstream rollback`. Needs all workers stopped.
Exit codes: 0 planned or done; 2 workers are active, or the place cannot be used;
3 settings refused; 4 brokers; 5 unreadable state."""
)
@settings_options()
@click.option(
    "--to", "to", metavar="WHEN", required=True, help="earliest, latest, an input offset or an ISO timestamp."
)
@click.option("--keep-model", is_flag=True, help="Keep what was learned and only skip events.")
@click.option("--start-from", type=click.Path(path_type=Path), help="Model file to begin with.")
@reposition_options
@json_option
def reset(
    config: Path,
    assignments: tuple[str, ...],
    to: str,
    keep_model: bool,
    start_from: Path | None,
    only: tuple[int, ...],
    why: str,
    execute: bool,
    gone: bool,
    as_json: bool,
) -> None:
    """Start partitions over at another place. A dry run unless --execute is given."""
    settings = load_settings(config, assignments)

    from npstream import app
    from npstream.backend import backend_of
    from npstream.cli.ranges import offset_of
    from npstream.errors import UsageError
    from npstream.history.reposition import plan_fresh, plan_kept
    from npstream.records import Channel

    if keep_model and start_from is not None:
        raise UsageError("--keep-model and --start-from: one of them; a model is kept or replaced")

    def plan(log: "Log", past: "Past", committed: "Position | None", order: "Order") -> "Reposition | None":
        ends = log.ends(Channel.EVENTS, past.partition)
        words = {"earliest": ends.begin, "latest": ends.stable}
        place = words[to] if to in words else offset_of(log, past.partition, to, 0)
        if not ends.begin <= place <= ends.stable:
            raise UsageError(f"{past.name}: offset {place} is not there; kept are {ends.begin} to {ends.stable}")
        if keep_model:
            return plan_kept(past, committed, order, place)
        if start_from is not None:
            past = replace(past, seed=lambda: app.read_model(start_from))
        return plan_fresh(past, committed, order, backend_of(settings).partition_config(), place)

    reposition(settings, only, why, plan, execute=execute, gone=gone, as_json=as_json)
