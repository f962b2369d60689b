"""`npstream route-labels`: copy labels from a topic that is keyed otherwise."""

import threading
from pathlib import Path

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json
from npstream.cli.run import stop_on_signals
from npstream.errors import UsageError, plural


@click.command(
    epilog="""\b
Examples:
  npstream route-labels --config config/kafka.yaml --source verdicts --key card.id
  npstream route-labels --config config/kafka.yaml --source verdicts --broadcast

\b
Copies each record as it is, with the event's key, to labels.topic, in transactions: a crash
loses and doubles nothing. Run one for each group; a second one fences the first.
Exit codes: 0 stopped; 2 labels.topic is not set, wrong options, or an embedded log; 3 settings
refused; 4 brokers, rights or topics; 5 labels were deleted before they were copied."""
)
@settings_options()
@click.option("--source", required=True, help="Topic to copy labels from.")
@click.option("--key", help="Path of the event's key in a label; without: the key of its record.")
@click.option("--broadcast", is_flag=True, help="Copy each label to all partitions, where it has only the event's id.")
@click.option("--until-end", is_flag=True, help="Stop when everything that is there has been copied.")
@json_option
def route_labels(
    config: Path,
    assignments: tuple[str, ...],
    source: str,
    key: str | None,
    broadcast: bool,
    until_end: bool,
    as_json: bool,
) -> None:
    """Copy labels to labels.topic, by the key of their events or to all partitions, exactly once."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.codec.features import steps_of
    from npstream.kafka.router import by_key, to_all

    if broadcast and key is not None:
        raise UsageError("--key and --broadcast: give one of them")
    try:
        path = None if key is None else steps_of(key)
    except ValueError as error:
        raise UsageError(f"--key: {error}") from None
    stop = threading.Event()
    router = backend_of(settings).open_router(source)
    copied = 0
    try:
        count = router.open()
        stop_on_signals(stop)
        place = to_all(count) if broadcast else by_key(count, path)
        if not as_json:
            click.echo(f"copying from {source} to {settings.labels.topic}   (stop with Ctrl-C)", err=True)
        while not stop.is_set():
            read = router.turn(place)
            copied += read
            if until_end and not read and router.at_end:
                break
    finally:
        router.close()
    if as_json:
        echo_json({"source": source, "topic": settings.labels.topic, "copied": copied})
    else:
        click.echo(f"{plural(copied, 'label')} copied from {source} to {settings.labels.topic}")
