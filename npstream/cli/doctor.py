"""`npstream doctor`: what will go wrong, and what to do about it."""

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.exits import FAILED
from npstream.cli.options import config_option, echo_json, json_option, load_settings, set_option
from npstream.cli.progress import progress

if TYPE_CHECKING:
    from npstream.doctor.doctor import Round
    from npstream.doctor.findings import Finding
    from npstream.port import Log
    from npstream.settings import Settings


@click.command(
    epilog="""\b
Example:
  npstream doctor --config config/kafka.yaml

\b
Looks at brokers, topics, partition counts, cleanup and retention against event time, timeouts,
sizes, the group, stuck transactions, committed positions and checkpoints, and reads the newest
events and those that come next.
An embedded file is checked page by page and read through, record by record.
Changes nothing. Waits only when a transaction holds readers back, to tell a slow one from a
stuck one.
Exit codes: 0 nothing to do; 1 findings, each with its fix; 3 settings refused; 4 brokers."""
)
@config_option()
@set_option
@click.option(
    "--sample", type=click.IntRange(1), default=100, show_default=True, help="Newest and next events to read."
)
@click.option("--no-wait", is_flag=True, help="Do not wait to see whether a log is stuck.")
@json_option
def doctor(config: Path, assignments: tuple[str, ...], sample: int, no_wait: bool, as_json: bool) -> None:
    """Look for what will go wrong; each finding comes with its fix."""
    settings = load_settings(config, assignments)

    from npstream.doctor.doctor import Round
    from npstream.doctor.findings import counts_against, findings_json, findings_text

    how = Round(sample, int(time.time() * 1000), time.monotonic, time.sleep, wait=not no_wait)
    if settings.embedded is not None:
        found, looked_at = _embedded(settings, how, quiet=as_json)
    else:
        found, looked_at = _kafka(settings, how)
    echo_json(findings_json(found, looked_at)) if as_json else click.echo(findings_text(found, looked_at))
    if counts_against(found):
        sys.exit(FAILED)


def _embedded(settings: "Settings", how: "Round", *, quiet: bool) -> tuple[list["Finding"], list[str]]:
    from npstream import app
    from npstream.doctor.doctor import examine_file
    from npstream.doctor.file_checks import RESTORE, check_pages
    from npstream.doctor.findings import Finding
    from npstream.doctor.group_checks import Patient
    from npstream.embedded import EmbeddedLog
    from npstream.errors import StateCorrupt

    assert settings.embedded is not None
    name, topics = str(settings.embedded.path), settings.topic_names()
    found: list[Finding] = []
    try:
        with (
            closing(EmbeddedLog(settings.embedded.path, topics)) as log,
            closing(app.open_state(settings)) as state,
        ):
            with progress("pages of the file", None, quiet=quiet):
                found += check_pages(name, log.quick_check())
            patient = Patient(log, state, settings.group, topics, settings.partition_config())
            with progress("records", _records(log), unit="records", quiet=quiet) as advance:
                found += examine_file(patient, how, advance)
    except StateCorrupt as error:
        found.append(Finding("error", name, str(error), RESTORE))
    return found, [name]


def _records(log: "Log") -> int:
    from npstream.records import Channel

    places = [(channel, partition) for channel in Channel for partition in range(log.partitions(channel))]
    return sum(ends.stable - ends.begin for ends in log.all_ends(places).values())


def _kafka(settings: "Settings", how: "Round") -> tuple[list["Finding"], list[str]]:
    from npstream.doctor.doctor import examine_cluster
    from npstream.doctor.group_checks import Patient
    from npstream.kafka import KafkaLog, KafkaStateReader

    assert settings.kafka is not None
    topics = settings.topic_names()
    config = settings.kafka.config(topics)
    with closing(KafkaLog(config)) as log, closing(KafkaStateReader(config)) as state:
        patient = Patient(log, state, settings.group, topics, settings.partition_config())
        found = examine_cluster(config, settings.worker.poll_ms, patient, log, how)
        return found, [f"brokers at {config.bootstrap}", f"group {config.group}", *topics.names()]
