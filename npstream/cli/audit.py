"""`npstream audit`: prove that what was published is what the events lead to."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.exits import FAILED
from npstream.cli.options import json_option, load_settings, range_options, settings_options
from npstream.cli.output import echo_json, progress
from npstream.cli.reading import opened, past_of

if TYPE_CHECKING:
    from npstream.history.audit import Verdict
    from npstream.port import Log, StateReader
    from npstream.settings import Settings

_SETTLE_S = 30.0


@click.command(
    epilog="""\b
Examples:
  npstream audit --config config/kafka.yaml
  npstream audit --config config/kafka.yaml --partition 3 --from 2026-05-01T00:00:00Z --json

\b
Recomputes every decision and dead letter from the events, starting at a kept checkpoint
or at the beginning, through every change of settings, and compares key, value, headers
and timestamp. Says for each partition what is published, what of it can be recomputed,
and why not more. Reads only, beside running workers.
Exit codes: 0 all reproduced bit for bit; 1 a difference, the first is shown, or something
published cannot be recomputed (with --allow-partial only when nothing can be);
2 nothing was decided in the range; 3 settings refused; 4 brokers; 5 stored records are damaged."""
)
@settings_options()
@range_options
@click.option("--allow-partial", is_flag=True, help="Accept that some published decisions cannot be recomputed.")
@json_option
def audit(
    config: Path,
    assignments: tuple[str, ...],
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
    allow_partial: bool,
    as_json: bool,
) -> None:
    """Recompute a range of decisions and compare them with the published ones, bit for bit."""
    settings = load_settings(config, assignments)

    from npstream.cli.ranges import partitions_of
    from npstream.errors import UsageError
    from npstream.history.audit_report import audit_json, audit_text

    verdicts = []
    with opened(settings) as (log, state):
        for partition in partitions_of(log, settings.topic_names().events, only):
            verdict = _audit_one(settings, log, state, partition, begin, end, quiet=as_json)
            if verdict is not None:
                verdicts.append(verdict)
    if not verdicts:
        raise UsageError(
            f"group {settings.group!r} has decided nothing between {begin or 'the start'} and {end or 'the end'}: "
            "check kafka.group or embedded.group, topics and the range"
        )
    echo_json(audit_json(verdicts)) if as_json else click.echo(audit_text(verdicts))
    whole = all(verdict.coverage.is_whole for verdict in verdicts)
    some = any(not verdict.coverage.is_empty for verdict in verdicts)
    if not (all(verdict.holds for verdict in verdicts) and (whole or (allow_partial and some))):
        sys.exit(FAILED)


def _audit_one(
    settings: "Settings",
    log: "Log",
    state: "StateReader",
    partition: int,
    begin: str | None,
    end: str | None,
    *,
    quiet: bool,
) -> "Verdict | None":
    """The verdict on one partition, None when the range holds nothing decided."""
    from npstream.cli.ranges import offset_of
    from npstream.history.audit import audit as audit_partition
    from npstream.history.coverage import cover
    from npstream.history.published import decided_below, wait_settled

    position = state.committed(partition)
    wait_settled(log, partition, time.monotonic, time.sleep, _SETTLE_S)
    past = past_of(settings, log, partition)
    decided = decided_below(log, partition, position)
    if decided == 0:
        return None
    first = None if begin is None else offset_of(log, partition, begin, 0)
    coverage = cover(past, first, offset_of(log, partition, end, decided), decided)
    if coverage is None:
        return None
    with progress(f"partition {partition}", coverage.end - coverage.begin, quiet=quiet) as advance:
        return audit_partition(past, coverage, position, advance)
