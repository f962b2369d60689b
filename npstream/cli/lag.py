"""`npstream lag`: how large is the group's lag?"""

import time
from contextlib import suppress
from pathlib import Path

import click
import orjson

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json
from npstream.cli.reading import opened


@click.command(
    epilog="""\b
Examples:
  npstream lag --config config/kafka.yaml
  npstream lag --config config/kafka.yaml --watch --interval 10

\b
records: what is committed, stable and not yet decided. seconds: how long the oldest of it
has waited, by its timestamp. held back: after the start of an open transaction, so that
nobody can read it yet; when that lasts, run `npstream doctor`. labels, with labels.topic:
labels that are not learned yet; they are taken with the next event. Reads only.
Exit codes: 0 shown; 3 settings refused; 4 brokers; 5 stored state is damaged."""
)
@settings_options()
@click.option("--watch", is_flag=True, help="Repeat until interrupted; one JSON document a line with --json.")
@click.option("--interval", type=click.FloatRange(0.1), default=5.0, show_default=True, help="Seconds between rounds.")
@click.option("--count", type=click.IntRange(1), help="With --watch: stop after this many rounds.")
@json_option
def lag(
    config: Path, assignments: tuple[str, ...], watch: bool, interval: float, count: int | None, as_json: bool
) -> None:
    """Show records and seconds between the group's position and the end of each partition."""
    settings = load_settings(config, assignments)

    from npstream.monitor.group_lag import group_lag, lag_json, lag_text
    from npstream.records import Channel

    looks = 0
    with opened(settings) as (log, state), suppress(KeyboardInterrupt):
        while True:
            partitions = range(log.partitions(Channel.EVENTS))
            found = group_lag(log, state, partitions, settings.start_at(), int(time.time() * 1000))
            looks += 1
            if not as_json:
                click.echo(lag_text(found))
            elif watch:
                click.echo(orjson.dumps(lag_json(found)).decode())
            else:
                echo_json(lag_json(found))
            if not watch or looks == count:
                return
            time.sleep(interval)
