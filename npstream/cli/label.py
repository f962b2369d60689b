"""`npstream label`: labels from a file, each published with its event."""

import gc
import os
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import check_writable, echo_json, progress, write_file
from npstream.errors import plural

if TYPE_CHECKING:
    from npstream.codec.finder import EventFinder
    from npstream.data.label_file import FileLabels
    from npstream.history.label_events import Matched, Stretch, StretchFound
    from npstream.port import Log
    from npstream.settings import Settings

_CHUNK = 2_000
_ALONE_MAX = 100_000
"""Events that are looked through sooner than another process has started."""
_STRETCHES_PER_PROCESS = 6
_SHOWN = 10


@click.command(
    epilog="""\b
Examples:
  npstream label chargebacks.csv --config config/kafka.yaml --id payment_id --label fraud
  npstream label chargebacks.csv --config config/kafka.yaml --since 2026-03-01T00:00:00Z --dry-run

\b
Looks for the events of these ids in the events topic, as far back as it reaches, and
appends each once more with its label (header npstream-learn): an event that waits for its
label gets it, one that is long gone from memory is learned from all the same. A label that
was published before is skipped, so that a file can be given again, after a crash too.
FILE is .csv, .parquet or .jsonl. Values of the label are those of labels.label where labels
have a topic, else events.label; ids are compared as text. Needs the right to write to the
events topic.
Exit codes: 0 published, or nothing to do; 2 the file cannot be used; 3 settings refused;
4 brokers, rights, or another npstream label is running; 5 stored records are damaged."""
)
@click.argument("file", type=click.Path(path_type=Path))
@settings_options()
@click.option("--id", "id_column", metavar="NAME", help="Column of ids; by default that of events.id, or id.")
@click.option(
    "--label",
    "label_column",
    metavar="NAME",
    help="Column of labels; by default that of the setting, else y, label, target or class.",
)
@click.option("--since", metavar="WHEN", help="Look at events from here on: ISO timestamp with zone.")
@click.option("--dry-run", is_flag=True, help="Say what would be published, and publish nothing.")
@click.option(
    "--not-found",
    "not_found_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the ids of labels without an event to this file, a line each.",
)
@click.option("--jobs", type=click.IntRange(1), default=lambda: os.cpu_count() or 1, help="Processes; one per core.")
@json_option
def label(
    file: Path,
    config: Path,
    assignments: tuple[str, ...],
    id_column: str | None,
    label_column: str | None,
    since: str | None,
    dry_run: bool,
    not_found_file: Path | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Give labels in FILE, by id, to events however old."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.cli.ranges import moment_ms
    from npstream.data.label_file import read_labels
    from npstream.history.label_events import match, publish

    rule = settings.events.label if settings.labels.topic is None else settings.labels.label
    given = read_labels(file, id_column, label_column, settings.events.id, rule)
    since_ms = None if since is None else moment_ms(since)
    if not_found_file is not None:
        check_writable(not_found_file)
    backend = backend_of(settings)
    with closing(backend.open_log()) as log, closing(backend.open_labelling()) as writer:
        if not dry_run:
            writer.open()
        began = time.monotonic()
        ranges = _ranges(log, since_ms)
        matched = match(given.signs, _look_through(settings, ranges, given.signs, jobs, quiet=as_json))
        seconds = time.monotonic() - began
        if not dry_run:
            with progress("publishing", matched.to_publish, unit="labels", quiet=as_json) as advance:
                for count in publish(log, writer, matched, _CHUNK):
                    advance(count)
    events = sum(end - begin for begin, end in ranges.values())
    if not_found_file is not None:
        write_file(not_found_file, "".join(f"{name}\n" for name in matched.not_found))
    if as_json:
        echo_json(_json(given, matched, dry_run=dry_run) | {"events": events, "seconds": seconds})
    else:
        click.echo(f"looked through {plural(events, 'event')} in {seconds:.1f} s")
        click.echo(_text(given, matched, settings.topic_names().events, dry_run=dry_run))


def _ranges(log: "Log", since_ms: int | None) -> dict[int, tuple[int, int]]:
    """The offsets to look at, by partition."""
    from npstream.port import DEFAULT_START
    from npstream.records import Channel

    start = DEFAULT_START if since_ms is None else since_ms
    partitions = range(log.partitions(Channel.EVENTS))
    ranges = {
        partition: (log.offset_at(partition, start), log.ends(Channel.EVENTS, partition).stable)
        for partition in partitions
    }
    return {partition: (begin, end) for partition, (begin, end) in ranges.items() if begin < end}


def _look_through(
    settings: "Settings", ranges: dict[int, tuple[int, int]], names: Iterable[str], jobs: int, *, quiet: bool
) -> list["StretchFound"]:
    """What the topic holds of these ids, looked for by several processes when there is much to look at."""
    from functools import partial

    from npstream.history.label_events import check_size, stretches
    from npstream.jobs import Workers

    total = sum(end - begin for begin, end in ranges.values())
    processes = jobs if total > _ALONE_MAX else 1
    findings: list[StretchFound] = []
    try:
        with (
            progress("looking for events", total, quiet=quiet) as advance,
            Workers(processes, partial(_open_reader, settings, [*names]), here=True) as workers,
        ):
            for stretch, finding in workers.each(_look, stretches(ranges, _STRETCHES_PER_PROCESS * processes)):
                findings.append(finding)
                check_size([found for each in findings for found in each.found])
                advance(stretch.end - stretch.begin)
    finally:
        _close_reader()
    return findings


_readers: "list[tuple[Log, EventFinder]]" = []
"""What this process reads with: the last of them."""


def _open_reader(settings: "Settings", names: list[str]) -> None:
    from npstream.backend import backend_of
    from npstream.codec.finder import EventFinder

    gc.disable()  # records hold no cycles, and looking for some among them takes a third of the time
    _readers[:] = [(backend_of(settings).open_log(), EventFinder(settings.partition_config().events, names))]


def _close_reader() -> None:
    """In this process; the others have ended with theirs."""
    gc.enable()
    for log, _ in _readers:
        log.close()
    _readers.clear()


def _look(stretch: "Stretch") -> "StretchFound":
    from npstream.history.label_events import look_through

    log, finder = _readers[-1]
    return look_through(log, finder, stretch)


def _json(given: "FileLabels", matched: "Matched", *, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "rows": given.rows,
        "unlabelled": given.unlabelled,
        "overruled": given.overruled,
        "labels": len(given.signs),
        "published": matched.to_publish,
        "corrected": matched.corrected,
        "known": matched.known,
        "with_label": matched.with_label,
        "other_label": matched.other_label,
        "bad": matched.bad,
        "not_found": matched.not_found,
    }


def _text(given: "FileLabels", matched: "Matched", topic: str, *, dry_run: bool) -> str:
    done = "would be published" if dry_run else "published"
    lines = [
        f"{plural(matched.to_publish, 'label')} {done} to {topic}, of {plural(len(given.signs), 'id')} in the file"
    ]
    if matched.corrected:
        lines.append(f"  {matched.corrected} of them correct another label that was published before")
    if matched.known:
        lines.append(f"  {matched.known} published before: skipped")
    if matched.with_label:
        other = f", {matched.other_label} of them with another one" if matched.other_label else ""
        lines.append(f"  {matched.with_label} came with a label of their own{other}: skipped")
    if matched.bad:
        lines.append(f"  {len(matched.bad)} are bad events, which cannot be learned: {_few(matched.bad)}")
    if matched.not_found:
        lines.append(f"  {len(matched.not_found)} not found, deleted or never sent: {_few(matched.not_found)}")
    if given.unlabelled:
        lines.append(f"  {plural(given.unlabelled, 'row')} without a label: left out")
    if given.overruled:
        lines.append(
            f"  {plural(given.overruled, 'row')} with another label than a later one for the same id: left out"
        )
    return "\n".join(lines)


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"{name:.80}" for name in names[:_SHOWN]) + more
