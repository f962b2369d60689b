"""`npstream doctor`: what will go wrong, and what to do about it."""

import sys
import time
from functools import partial
from pathlib import Path

import click

from npstream.cli.exits import FAILED
from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json, progress


@click.command(
    epilog="""\b
Example:
  npstream doctor --config config/kafka.yaml

\b
Looks at brokers, topics, partition counts, cleanup and retention against event time, timeouts,
sizes, the group, stuck transactions, committed positions and checkpoints, and reads the newest
events and those that come next.
An embedded file is checked page by page and read through, record by record.
Changes nothing. Waits only when a transaction holds readers back, to see whether it is slow or
stuck.
Exit codes: 0 nothing to do; 1 findings, each with its fix; 3 settings refused; 4 brokers."""
)
@settings_options()
@click.option(
    "--sample", type=click.IntRange(1), default=100, show_default=True, help="Newest and next events to read."
)
@click.option("--no-wait", is_flag=True, help="Do not wait to see whether a log is stuck.")
@json_option
def doctor(config: Path, assignments: tuple[str, ...], sample: int, no_wait: bool, as_json: bool) -> None:
    """Look for what will go wrong; each finding comes with its fix."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.doctor.doctor import Round
    from npstream.doctor.findings import counts_against, findings_json, findings_text

    how = Round(sample, int(time.time() * 1000), time.monotonic, time.sleep, wait=not no_wait)
    found, looked_at = backend_of(settings).examine(how, partial(progress, unit="records", quiet=as_json))
    echo_json(findings_json(found, looked_at)) if as_json else click.echo(findings_text(found, looked_at))
    if counts_against(found):
        sys.exit(FAILED)
