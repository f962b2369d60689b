"""`npstream produce`: a file onto the events topic, as an upstream service would send it."""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.options import json_option, label_option, load_settings, settings_options
from npstream.cli.output import echo_json, progress
from npstream.errors import plural

if TYPE_CHECKING:
    from npstream.client import Message
    from npstream.port import Log

_CHUNK = 2000


@click.command(
    epilog="""\b
Examples:
  npstream produce events.jsonl --config config/kafka.yaml
  npstream produce data.npz --config config/kafka.yaml --rate 1000 --delay 500

\b
JSONL lines are events and are sent as they are, keyed by their id. Rows of .npz, .csv,
LIBSVM and Parquet files become events as the settings have them: with id, x and y, or
with a mapping's paths. Columns that have names are taken by them: those of
events.features (every column of numbers without), `id` or events.id is the id, and y,
label, target, class or events.label is the label; --label names another, --label none
sends rows without. Partitions are chosen by the murmur2 hash of the key, as Java clients do.
Exit codes: 0 sent; 2 the file cannot be used; 3 settings refused; 4 brokers;
5 the embedded file is damaged."""
)
@click.argument("file", type=click.Path(path_type=Path))
@settings_options()
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help="Events per second; as fast as possible else."
)
@click.option("--delay", type=click.IntRange(0), default=0, help="Send labels on their own, this many rows later.")
@label_option
@json_option
def produce(
    file: Path,
    config: Path,
    assignments: tuple[str, ...],
    rate: float | None,
    delay: int,
    label: str | None,
    as_json: bool,
) -> None:
    """Send FILE to the events topic."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.data.messages import messages_of_file

    outgoing = messages_of_file(file, settings.partition_config().events, delay, label)
    log = backend_of(settings).open_log()
    if outgoing.columns is not None and not as_json:
        click.echo(f"{file.name}: {outgoing.columns}", err=True)
    started = time.monotonic()
    try:
        sent = _send(log, outgoing.messages, outgoing.total, rate, quiet=as_json)
    finally:
        log.close()
    seconds = time.monotonic() - started
    if as_json:
        echo_json({"sent": sent, "seconds": seconds, "events_per_s": sent / max(seconds, 1e-9)})
    else:
        click.echo(f"sent {plural(sent, 'event')} to {settings.topic_names().events} in {seconds:.1f} s")


def _send(log: "Log", messages: Iterator["Message"], total: int, rate: float | None, *, quiet: bool) -> int:
    from npstream.client import partition_for
    from npstream.records import Channel

    count = log.partitions(Channel.EVENTS)
    chunk = _CHUNK if rate is None else max(1, min(_CHUNK, int(rate / 20)))
    started, sent = time.monotonic(), 0
    with progress("sending", total, quiet=quiet) as advance:
        while batch := list(islice(messages, chunk)):
            by_partition: dict[int, list[Message]] = {}
            for message in batch:
                by_partition.setdefault(partition_for(message.key, count), []).append(message)
            now_ms = int(time.time() * 1000)
            for partition, items in by_partition.items():
                log.append(
                    Channel.EVENTS, partition, [(m.key, m.value, m.headers, m.timestamp_ms or now_ms) for m in items]
                )
            sent += len(batch)
            advance(len(batch))
            if rate is not None:
                time.sleep(max(0.0, started + sent / rate - time.monotonic()))
    return sent
