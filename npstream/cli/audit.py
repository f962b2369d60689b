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
and timestamp. Reads only, beside running workers.
Exit codes: 0 all reproduced bit for bit; 1 a difference, the first is shown;
2 the range cannot be audited; 3 settings refused; 4 brokers; 5 stored records are damaged."""
)
@settings_options()
@range_options
@json_option
def audit(
    config: Path,
    assignments: tuple[str, ...],
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
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
    if not all(verdict.holds for verdict in verdicts):
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
    from npstream.history.audit import earliest
    from npstream.history.published import decided_below, wait_settled

    position = state.committed(partition)
    wait_settled(log, partition, time.monotonic, time.sleep, _SETTLE_S)
    past = past_of(settings, log, partition)
    decided = decided_below(log, partition, position)
    if decided == 0:
        return None
    first = earliest(past) if begin is None else offset_of(log, partition, begin, 0)
    last = min(decided, offset_of(log, partition, end, decided))
    if first >= last:
        return None
    with progress(f"partition {partition}", last - first, quiet=quiet) as advance:
        return audit_partition(past, first, last, position, advance)
