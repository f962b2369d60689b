"""`npstream init`: create the topics, with the settings they need."""

from pathlib import Path

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json, waiting


@click.command(
    epilog="""\b
Example:
  npstream init --config config/kafka.yaml --partitions 12 --replication 3 --dry-run

\b
Creates what is missing, adds partitions where an output has fewer than the events,
and corrects settings npstream cannot work with. Running it again does nothing.
Exit codes: 0 done; 3 settings refused; 4 brokers or rights; 5 a damaged file."""
)
@settings_options()
@click.option("--partitions", type=click.IntRange(1), default=None, help="Partitions of a new events topic.")
@click.option("--replication", type=click.IntRange(1), default=None, help="Replicas of new topics (3 in production).")
@click.option(
    "--retention-hours", type=click.IntRange(1), help="Keep decisions and dead letters this long; forever otherwise."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
@json_option
def init(
    config: Path,
    assignments: tuple[str, ...],
    partitions: int | None,
    replication: int | None,
    retention_hours: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Create the topics with the right partition counts, compaction, retention and timestamp limits."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of

    actions, apply = backend_of(settings).plan_topics(partitions, replication, retention_hours)
    if not dry_run:
        with waiting("creating and changing topics", quiet=as_json):
            apply()
    if as_json:
        echo_json({"dry_run": dry_run, "actions": actions})
        return
    for action in actions:
        click.echo(("would " if dry_run else "") + action)
    if not actions:
        click.echo("nothing to do: all topics are as they must be")
