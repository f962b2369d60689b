"""`npstream init`: create the topics, with the settings they need."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.options import config_option, echo_json, json_option, load_settings, set_option
from npstream.cli.progress import waiting

if TYPE_CHECKING:
    from npstream.settings import Settings


@click.command(
    epilog="""\b
Example:
  npstream init --config config/kafka.yaml --partitions 12 --replication 3 --dry-run

\b
Creates what is missing, adds partitions where an output has fewer than the events,
and corrects settings npstream cannot work with. Running it again does nothing.
Exit codes: 0 done; 3 settings refused; 4 brokers or rights; 5 a damaged file."""
)
@config_option()
@set_option
@click.option("--partitions", type=click.IntRange(1), default=None, help="Partitions of a new events topic.")
@click.option("--replication", type=click.IntRange(1), default=None, help="Replicas of new topics (3 in production).")
@click.option(
    "--retention-hours", type=click.IntRange(1), help="Keep decisions and dead letters this long (else ever)."
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
    if settings.embedded is not None:
        actions = _init_embedded(settings, partitions, dry_run)
    else:
        actions = _init_kafka(settings, partitions or 1, replication or 1, retention_hours, dry_run, quiet=as_json)
    if as_json:
        echo_json({"dry_run": dry_run, "actions": actions})
        return
    for action in actions:
        click.echo(("would " if dry_run else "") + action)
    if not actions:
        click.echo("nothing to do: all topics are as they must be")


def _init_embedded(settings: "Settings", partitions: int | None, dry_run: bool) -> list[str]:
    from npstream.embedded import create_topics

    assert settings.embedded is not None
    count = partitions or settings.embedded.partitions
    if not dry_run:
        create_topics(settings.embedded.path, settings.topic_names(), count)
    return [f"make {settings.embedded.path} with {count} partitions in each of the four topics"]


def _init_kafka(
    settings: "Settings", partitions: int, replication: int, hours: int | None, dry_run: bool, *, quiet: bool
) -> list[str]:
    from npstream.kafka.admin import Admin
    from npstream.kafka.topics import Wishes, summary

    assert settings.kafka is not None
    admin = Admin(settings.kafka.config(settings.topic_names()))
    retention_ms = -1 if hours is None else hours * 3_600_000
    actions = admin.plan(Wishes(partitions, replication, retention_ms))
    if not dry_run:
        with waiting("creating and changing topics", quiet=quiet):
            admin.prepare(actions)
    return summary(actions)
