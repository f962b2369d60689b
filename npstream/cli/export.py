"""`npstream export`: a range of the events topic as a file that can be replayed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from npstream.cli.options import json_option, load_settings, range_options, settings_options
from npstream.cli.output import echo_json, progress


@click.command(
    epilog="""\b
Examples:
  npstream export may.jsonl --config config/kafka.yaml --from 2026-05-01T00:00:00Z --to 2026-06-01T00:00:00Z
  npstream export - --config config/kafka.yaml --partition 3 | gzip > p3.jsonl.gz

\b
One JSON object a line with partition, offset, timestamp, key, headers and value: a backtest
of the file gives the decisions a backtest of the topic gives. Reads only.
Exit codes: 0 written; 2 the range or the file cannot be used; 3 settings refused; 4 brokers;
5 stored records are damaged."""
)
@click.argument("file", type=click.Path(path_type=Path))
@settings_options()
@range_options
@json_option
def export(
    file: Path,
    config: Path,
    assignments: tuple[str, ...],
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
    as_json: bool,
) -> None:
    """Write a range of the events topic to FILE (- for standard output), one JSON object a line."""
    settings = load_settings(config, assignments)

    from contextlib import closing

    from npstream.backend import backend_of
    from npstream.cli.ranges import Range, topic_source
    from npstream.data.lines import to_line
    from npstream.errors import UsageError, plural

    to_stdout = str(file) == "-"
    if to_stdout and as_json:
        raise UsageError("--json and a file of - would mix on standard output; give a file")
    count = 0
    with closing(backend_of(settings).open_log()) as log:
        source = topic_source(log, settings.topic_names().events, Range(begin, end, only))
        total = sum(last - first for first, last in source.ranges.values())
        with _writing(file) as out, progress("exporting", total, quiet=as_json) as advance:
            for batches in source.rounds():
                for partition, records in batches:
                    out.writelines(to_line(partition, record) for record in records)
                    count += len(records)
                    advance(len(records))
    if as_json:
        echo_json({"file": str(file), "events": count, "partitions": sorted(source.ranges)})
    elif not to_stdout:
        click.echo(f"wrote {plural(count, 'event')} of {plural(len(source.ranges), 'partition')} to {file}")


@contextmanager
def _writing(file: Path) -> Iterator[BinaryIO]:
    from npstream.errors import UsageError

    if str(file) == "-":
        yield sys.stdout.buffer
        return
    try:
        out = file.open("wb")
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror})") from None
    with out:
        yield out
