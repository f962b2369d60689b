"""`npstream dlq`: look at dead letters, send them back."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from npstream.cli.options import json_option, load_settings, one_partition_option, range_options, settings_options
from npstream.cli.output import echo_json
from npstream.errors import UsageError, plural

if TYPE_CHECKING:
    from npstream.history.dead_letters import DeadLetterFilter
    from npstream.port import Log
    from npstream.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_CHUNK = 500


@click.group(
    epilog="""\b
Examples:
  npstream dlq list --config config/kafka.yaml
  npstream dlq show --config config/kafka.yaml --partition 3 --offset 120412
  npstream dlq redrive --config config/kafka.yaml --reason wrong_length --dry-run"""
)
def dlq() -> None:
    """Look at dead letters and send them back once their cause is fixed."""


def _choice_options(function: F) -> F:
    function = range_options(function)
    return click.option(
        "--reason", "reasons", multiple=True, help="Only this reason, for instance wrong_length. Repeatable."
    )(function)


@dlq.command(
    "list",
    epilog="""\b
Example:
  npstream dlq list --config config/kafka.yaml --reason not_json --from 2026-05-01T00:00:00Z

\b
--from and --to are times of the events, or their input offsets. Reads only.
Exit codes: 0 listed; 2 unknown reason or range; 3 settings refused; 4 brokers;
5 stored records are damaged.""",
)
@settings_options()
@_choice_options
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Dead letters shown one by one.")
@json_option
def list_dead_letters(
    config: Path,
    assignments: tuple[str, ...],
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
    reasons: tuple[str, ...],
    limit: int,
    as_json: bool,
) -> None:
    """Count dead letters by reason and show the first of them."""
    settings = load_settings(config, assignments)

    from npstream.history.dead_letters import chosen, counted, dead_letter_json, list_text

    with _opened(settings, only, reasons, begin, end) as (log, choice):
        found, few = counted(chosen(log, choice), limit)
    if as_json:
        dead_letters = [dead_letter_json(dead_letter) for dead_letter in few]
        echo_json({"total": found.total(), "by_reason": dict(found.most_common()), "dead_letters": dead_letters})
    else:
        click.echo(list_text(found, few))


@dlq.command(
    epilog="""\b
Example:
  npstream dlq show --config config/kafka.yaml --partition 3 --offset 120412

\b
The offset is that of the event, as `npstream dlq list` shows it. Reads only.
Exit codes: 0 shown; 2 no such dead letter; 3 settings refused; 4 brokers;
5 stored records are damaged."""
)
@settings_options()
@one_partition_option
@click.option("--offset", type=click.IntRange(0), required=True, help="Input offset of the event.")
@json_option
def show(config: Path, assignments: tuple[str, ...], partition: int, offset: int, as_json: bool) -> None:
    """Show one dead letter in full: the event as it was sent, and what is wrong with it."""
    settings = load_settings(config, assignments)

    from npstream.history.dead_letters import chosen, dead_letter_json, dead_letter_text

    with _opened(settings, (partition,), (), str(offset), str(offset + 1)) as (log, choice):
        found = list(chosen(log, choice))
    if not found:
        raise UsageError(f"no dead letter for offset {offset} of partition {partition}; see `npstream dlq list`")
    echo_json(dead_letter_json(found[-1])) if as_json else click.echo(dead_letter_text(found[-1]))


@dlq.command(
    epilog="""\b
Example:
  npstream dlq redrive --config config/kafka.yaml --reason wrong_length --rate 100 --dry-run

\b
Each event is appended to the partition it came from, as it was first sent, with its own
key, headers and timestamp. ORDER IS NOT KEPT: it comes after everything that followed it,
and a label that was waiting for it may have expired. Dead letters stay where they are, so
running it twice sends twice.
Exit codes: 0 sent; 2 unknown reason or range; 3 settings refused; 4 brokers;
5 stored records are damaged."""
)
@settings_options()
@_choice_options
@click.option("--dry-run", is_flag=True, help="Say what would be sent and send nothing.")
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help="Events per second; by default as fast as possible."
)
@json_option
def redrive(
    config: Path,
    assignments: tuple[str, ...],
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
    reasons: tuple[str, ...],
    dry_run: bool,
    rate: float | None,
    as_json: bool,
) -> None:
    """Send dead letters back to the end of the topic they came from: events, or labels."""
    settings = load_settings(config, assignments)

    from npstream.history.dead_letters import chosen, paced
    from npstream.history.dead_letters import redrive as send_back

    topics = settings.topic_names()
    with _opened(settings, only, reasons, begin, end) as (log, choice):
        pace = paced(None if dry_run else rate, time.monotonic, time.sleep)
        chunk = _CHUNK if rate is None else max(1, min(_CHUNK, int(rate / 20)))
        found = send_back(log, topics, chosen(log, choice), dry_run=dry_run, pace=pace, chunk=chunk)
    if as_json:
        partitions = {str(partition): count for partition, count in found.by_partition.items()}
        counts = {"dry_run": dry_run, "sent": found.sent, "foreign": found.foreign, "truncated": found.truncated}
        echo_json({**counts, "partitions": partitions})
        return
    where = topics.events if topics.labels is None else f"{topics.events} and {topics.labels}"
    click.echo(
        f"{'would send' if dry_run else 'sent'} {plural(found.sent, 'event')} to the end of {where}; order is not kept"
    )
    if found.foreign:
        click.echo(f"left out {found.foreign} that came from another topic")
    if found.truncated:
        click.echo(f"left out {found.truncated} that are not whole: send them again from where they came from")


@contextmanager
def _opened(
    settings: "Settings", only: tuple[int, ...], reasons: tuple[str, ...], begin: str | None, end: str | None
) -> Iterator[tuple["Log", "DeadLetterFilter"]]:
    from npstream.backend import backend_of
    from npstream.cli.ranges import NEITHER, moment_ms, partitions_of
    from npstream.codec.decoder import REASONS
    from npstream.history.dead_letters import DeadLetterFilter

    unknown = [reason for reason in reasons if reason not in REASONS]
    if unknown:
        raise UsageError(f"--reason {unknown[0]}: unknown; known are {', '.join(REASONS)}")
    bounds: dict[str, int] = {}
    for name, text in (("first", begin), ("end", end)):
        if text is not None:
            bounds |= {f"{name}_offset": int(text)} if text.isdecimal() else {f"{name}_ms": moment_ms(text, NEITHER)}
    with closing(backend_of(settings).open_log()) as log:
        if only:
            partitions_of(log, settings.topic_names().events, only)
        yield log, DeadLetterFilter(only, reasons, **bounds)
