"""`npstream monitor`: the page of a whole group."""

import threading
from pathlib import Path

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json

_LOOK_S = 1.0
"""How often to look whether a signal came: the one it is handed to may be another thread, and this one sleeps on."""


@click.command(
    epilog="""\b
Examples:
  npstream monitor --config config/kafka.yaml
  npstream monitor --config config/kafka.yaml --json

\b
Every partition of the group as it is committed: position, lag, rates, budget, what came of
the events over the last day and month. It needs no worker, joins no group and writes nothing;
rates are those of the newest checkpoint. SIGTERM and SIGINT end it.
Exit codes: 0 stopped or shown; 3 settings refused; 4 brokers, port; 5 stored state is damaged."""
)
@settings_options()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="0 takes any free one.")
@json_option
def monitor(config: Path, assignments: tuple[str, ...], host: str, port: int, as_json: bool) -> None:
    """Show the whole group on a page, or once as JSON."""
    settings = load_settings(config, assignments)

    from npstream import app
    from npstream.backend import backend_of
    from npstream.cli.run import stop_on_signals

    watch = app.build_group_watch(settings)
    watch.connect()  # what is wrong with a file, the brokers or the settings is said here, not on the page
    if as_json:
        watch.look()
        echo_json(backend_of(settings).secrets().mask(watch.document()))
        watch.close()
        return

    from npstream.monitor.group_page import GroupPage

    stop = threading.Event()
    stop_on_signals(stop)
    page = GroupPage(host, port, watch, backend_of(settings).secrets())
    page.start()  # before its address is printed
    click.echo(f"group {settings.group}: {page.url}   (stop with Ctrl-C)")
    try:
        while not stop.wait(_LOOK_S):
            pass
    finally:
        page.stop()
