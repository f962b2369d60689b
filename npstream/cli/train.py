"""`npstream train`: learn from history, so that new partitions need not start from nothing."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npstream.cli.options import delay_option, file_argument, json_option, label_option, range_options, settings_options
from npstream.cli.output import check_writable, compile_kernel, echo_json, progress, write_file
from npstream.cli.replaying import EventInput, history

if TYPE_CHECKING:
    from npstream.replay.report import Run
    from npstream.replay.source import Source
    from npstream.settings import Settings


@click.command(
    epilog="""\b
Examples:
  npstream train data.npz --set model.tau=0.05 --out model.npstream
  npstream train --config config/kafka.yaml --to 2026-05-01T00:00:00Z --out model.npstream

\b
Name the file in the settings (start_from: model.npstream): partitions without state start
from what it has learned. Their budget, rates and counters are their own.
Reads only: the live group, its offsets and its topics stay as they are.
Exit codes: 0 written; 2 file or range cannot be used; 3 settings refused; 4 brokers;
5 most events are bad, or stored ones are damaged."""
)
@file_argument
@settings_options(required=False)
@range_options
@delay_option
@label_option
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("model.npstream"), show_default=True, help="The model file."
)
@click.option(
    "--holdout",
    type=click.IntRange(0),
    default=2000,
    show_default=True,
    help="Last labelled events to compare cold and warm starts on, in at most a fifth of all; 0 compares nothing.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1),
    multiple=True,
    default=(1, 12),
    show_default=True,
    help="Compare with a data set spread over so many models; repeatable.",
)
@click.option("--report", type=click.Path(path_type=Path), help="Folder for report.html and samples.csv.")
@json_option
def train(
    file: Path | None,
    config: Path | None,
    assignments: tuple[str, ...],
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
    delay: int,
    label: str | None,
    out: Path,
    holdout: int,
    partitions: tuple[int, ...],
    report: Path | None,
    as_json: bool,
) -> None:
    """Learn from FILE, or from a range of the events topic, and write a model file.

    All partitions become one model. What it is worth is measured first: a model
    without the last events decides them, beside random starts. The file then
    holds what was learned from everything.
    """
    for path in (out, *([report / "report.html"] if report is not None else [])):
        check_writable(path)
    past = history(file, label, begin, end, only, delay=delay)
    settings = past.settings(config, assignments)
    with past.source(settings) as source:
        past.say_columns(settings, quiet=as_json)
        runs = _compare(settings, source, holdout, partitions, quiet=as_json)
        trained = _train(settings, source, out, quiet=as_json)
    _print(past, trained, runs, report, as_json)


def _compare(
    settings: "Settings", source: "Source", holdout: int, partitions: tuple[int, ...], *, quiet: bool
) -> list["Run"]:
    from npstream.replay.report import Run
    from npstream.replay.source import size_of
    from npstream.replay.split import hold_back
    from npstream.replay.train import compare, train
    from npstream.settings import masked_dump

    config = settings.alone.partition_config()
    compile_kernel(config, quiet=quiet)
    earlier, later = hold_back(source, holdout, config.events)
    if not size_of(later):
        return []
    with progress("learning from all but the last", size_of(earlier), quiet=quiet) as advance:
        model = train(config, earlier, group=settings.group, progress=advance).model
    started = time.monotonic()
    with progress("deciding the last", None, quiet=quiet) as advance:
        found = compare(config, later, model, partitions, advance)
    dump, seconds = masked_dump(settings), (time.monotonic() - started) / len(found)
    return [Run(name, dump, result, seconds) for name, result in found]


def _train(settings: "Settings", source: "Source", out: Path, *, quiet: bool) -> dict[str, Any]:
    from npstream.partition.model_file import model_file
    from npstream.replay.source import size_of
    from npstream.replay.train import train

    config = settings.alone.partition_config()
    with progress("learning from all", size_of(source), quiet=quiet) as advance:
        processor = train(config, source, group=settings.group, progress=advance)
    content = model_file(processor, config)
    write_file(out, content)
    model = processor.model
    return {
        "model": str(out),
        "bytes": len(content),
        "events": processor.tally.events,
        "learned": model.t,
        "dead_letters": processor.tally.dead_letters,
        "digest": model.digest(),
    }


def _print(past: EventInput, trained: dict[str, Any], runs: list["Run"], report: Path | None, as_json: bool) -> None:
    from npstream.replay.report import to_csv, to_html, to_json, to_text

    if report is not None:
        write_file(report / "report.html", to_html(runs, f"the last events of {past.name}"))
        write_file(report / "samples.csv", to_csv(runs))
    if as_json:
        echo_json({**trained, "comparison": [to_json(run) for run in runs]})
        return
    if runs:
        click.echo(f"The last {runs[0].result.events} events of {past.name}, not seen before:\n")
        click.echo(to_text(runs) + "\n")
        if not any(run.result.rates.measured for run in runs):
            click.echo("nothing was measured: the labels of these events are missing, or of one class alone\n")
    click.echo(f"learned {trained['learned']} labels of {trained['events']} events; model {trained['digest'][:12]}")
    click.echo(f"written to {trained['model']} ({trained['bytes']} bytes); settings: start_from: {trained['model']}")
