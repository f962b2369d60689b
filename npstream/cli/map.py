"""`npstream map`: a first mapping from a sample of events."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json
from npstream.cli.reading import opened

if TYPE_CHECKING:
    from npstream.records import Record


@click.command(
    epilog="""\b
Examples:
  npstream map payment.json > events.yaml
  npstream map --config config/kafka.yaml --topic payments

\b
Prints the section `events` of a settings file: id, label and features by path, each feature
with a kind by its values and a comment with some of them. It is a guess to begin with:
names, scales and what to leave out are yours to decide. Reads only.
Exit codes: 0 printed; 2 no events to read; 3 settings refused; 4 brokers."""
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@settings_options(required=False)
@click.option("--topic", help="Topic to sample, instead of the events topic of the settings.")
@click.option("--sample", type=click.IntRange(1), default=1000, show_default=True, help="Most events to look at.")
@json_option
def map_(
    file: Path | None,
    config: Path | None,
    assignments: tuple[str, ...],
    topic: str | None,
    sample: int,
    as_json: bool,
) -> None:
    """Write a first mapping from a sample of events, for you to edit."""
    import orjson
    import yaml

    from npstream.data.lines import read_events
    from npstream.errors import UsageError
    from npstream.settings.guess import guess_events

    if file is not None:
        records = read_events(file)[:sample]
    elif config is not None:
        wanted = (*assignments, f"topics.events={topic}") if topic else assignments
        records = _newest(config, wanted, sample)
    else:
        raise UsageError("give a file of events, or --config (and --topic) to sample a topic")
    documents = []
    for record in records:
        try:
            documents.append(orjson.loads(record.value or b""))
        except orjson.JSONDecodeError:
            continue
    guessed = guess_events(documents)
    echo_json(yaml.safe_load(guessed)) if as_json else click.echo(guessed, nl=False)


def _newest(config: Path, assignments: tuple[str, ...], sample: int) -> list["Record"]:
    """The newest events of the topic, from all partitions."""
    from npstream.records import Channel

    settings = load_settings(config, assignments)
    with opened(settings) as (log, _):
        count = log.partitions(Channel.EVENTS)
        share = -(-sample // count)
        found: list[Record] = []
        for partition in range(count):
            ends = log.ends(Channel.EVENTS, partition)
            begin = max(ends.begin, ends.stable - share)
            found += islice(log.read(Channel.EVENTS, partition, begin, ends.stable), share)
    return found[:sample]
