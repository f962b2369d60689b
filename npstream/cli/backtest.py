"""`npstream backtest`: replay a file or a range of the events topic, with other settings side by side."""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.exits import FAILED
from npstream.cli.options import (
    delay_option,
    file_argument,
    json_option,
    label_option,
    partitions_option,
    range_options,
)
from npstream.cli.output import check_writable, compile_kernel, echo_json, progress, write_file
from npstream.cli.replaying import EventInput, history
from npstream.errors import SettingsError, UsageError, plural

if TYPE_CHECKING:
    from npstream.model import Model
    from npstream.partition.merges import Merger
    from npstream.replay.report import Run
    from npstream.replay.source import Source
    from npstream.settings import Settings

_Named = tuple[str, "Settings"]


@click.command(
    epilog="""\b
Examples:
  npstream backtest data.npz --set model.tau=0.01,0.05
  npstream backtest data.npz --partitions 12 --delay 1000 --report out/
  npstream backtest --config config/kafka.yaml --from 2026-05-01T00:00:00Z --set model.tau=0.005,0.01

\b
Reads only: the live group, its offsets and its topics stay as they are.
Exit codes: 0 done; 1 a partition stopped at the cap on dead letters; 2 file or range
cannot be used; 3 settings refused; 4 brokers; 5 stored records are damaged."""
)
@file_argument
@click.option(
    "--config", "-c", "configs", type=click.Path(path_type=Path), multiple=True, help="Settings file; several compare."
)
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE[,VALUE...]", help="Override a setting; lists compare."
)
@range_options
@partitions_option
@delay_option
@label_option
@click.option(
    "--as-decided", is_flag=True, help="With labels.topic: merge it as the decisions record, not by timestamps."
)
@click.option("--start-from", type=click.Path(path_type=Path), help="Model file every partition starts from.")
@click.option("--report", type=click.Path(path_type=Path), help="Folder for report.html and samples.csv.")
@click.option("--plan", is_flag=True, help="Say how many events and about how long, and stop.")
@json_option
def backtest(
    file: Path | None,
    configs: tuple[Path, ...],
    assignments: tuple[str, ...],
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
    partitions: int,
    delay: int,
    label: str | None,
    as_decided: bool,
    start_from: Path | None,
    report: Path | None,
    plan: bool,
    as_json: bool,
) -> None:
    """Replay FILE, or a range of the events topic, through the processor of the worker.

    FILE is .npz (arrays X and y), .csv, LIBSVM (.libsvm, .svm, .txt), .parquet, or
    .jsonl: events as they are sent, or an export of a topic.
    """
    if report is not None and not plan:
        check_writable(report / "report.html")
    past = history(file, label, begin, end, only, partitions, delay)
    wanted = _all_settings(past, configs, assignments)
    if as_decided and (past.file is not None or all(settings.labels.topic is None for _, settings in wanted)):
        raise UsageError("--as-decided follows decisions on a topic whose labels have one of their own (labels.topic)")
    if plan:
        _print_plan(past, wanted, as_json)
        return
    past.say_columns(wanted[0][1], quiet=as_json)
    runs = [_run(name, settings, past, start_from, as_decided, quiet=as_json) for name, settings in wanted]
    _print(runs, report, as_json, past.name)
    _stop_if_halted(runs)


def _all_settings(past: EventInput, configs: tuple[Path, ...], assignments: tuple[str, ...]) -> list[_Named]:
    """Every set of settings to compare, all read before the first run. Raises `SettingsError` with all problems."""
    from npstream.replay.variants import named, variants

    found: list[_Named] = []
    problems: list[str] = []
    for name, config, variant in named(configs, variants(assignments)):
        try:
            settings = past.settings(config, variant.assignments)
            found.append((name, settings.alone))
            if settings.challenger is not None:
                found.append((f"{name} challenger".removeprefix("run "), settings.promoted))
        except SettingsError as error:
            where = f"{name}: " if len(configs) > 1 or variant.name != "run" else ""
            problems += [where + problem for problem in error.problems]
    if problems:
        raise SettingsError(problems)
    return found


def _run(
    name: str, settings: "Settings", past: EventInput, start_from: Path | None, as_decided: bool, *, quiet: bool
) -> "Run":
    from npstream.replay.replay import replay
    from npstream.replay.report import Run
    from npstream.replay.source import size_of
    from npstream.settings import masked_dump

    config = settings.partition_config()
    seed = _seed(start_from or settings.start_from)
    with past.source(settings) as source:
        if as_decided:
            source = _as_decided(source, settings)
        compile_kernel(config, quiet=quiet)
        started = time.monotonic()
        with progress(name, size_of(source), quiet=quiet) as advance:
            result = replay(config, source, group=settings.group, seed=seed, progress=advance)
        return Run(name, masked_dump(settings), result, time.monotonic() - started)


def _as_decided(source: "Source", settings: "Settings") -> "Source":
    """The source, its labels merged as the decisions record it, where they have a topic."""
    from npstream.history.merges import RecordedMerges
    from npstream.replay.source import TopicSource
    from npstream.state import kept_history

    topic = settings.labels.topic
    if not isinstance(source, TopicSource) or topic is None:
        return source

    def merger(partition: int) -> "Merger":
        resets = kept_history(source.log, settings.group, source.topic, partition).resets
        merges = RecordedMerges(source.log, topic, partition, source.ranges[partition][0], None, resets)
        return lambda records: merges.up_to(records[-1].offset)

    return replace(source, recorded=merger)


def _seed(path: Path | None) -> "Model | None":
    from npstream import app

    return None if path is None else app.read_model(path)


def _print(runs: list["Run"], report: Path | None, as_json: bool, source: str) -> None:
    from npstream.replay.report import to_csv, to_html, to_json, to_text

    if report is not None:
        write_file(report / "report.html", to_html(runs, source))
        write_file(report / "samples.csv", to_csv(runs))
    if as_json:
        echo_json([to_json(run) for run in runs])
        return
    click.echo(to_text(runs))
    if report is not None:
        click.echo(f"report: {report / 'report.html'}")


def _stop_if_halted(runs: list["Run"]) -> None:
    halted = [(run.name, part.halted) for run in runs for part in run.result.partitions if part.halted is not None]
    for name, reason in halted:
        click.echo(f"npstream: {name}: stopped early: {reason}", err=True)
    if halted:
        raise click.exceptions.Exit(FAILED)


def _print_plan(past: EventInput, wanted: list[_Named], as_json: bool) -> None:
    from npstream.replay.forecast import forecast

    _, settings = wanted[0]
    with past.source(settings) as source:
        compile_kernel(settings.partition_config(), quiet=as_json)
        found = forecast(settings.partition_config(), source, time.perf_counter)
    if as_json:
        echo_json({"runs": len(wanted), **asdict(found)})
        return
    click.echo(
        f"{found.events:,} events in {plural(found.partitions, 'partition')}, about {found.bytes / 2**20:,.1f} MB; "
        f"{plural(len(wanted), 'run')} of about {found.seconds:,.1f} s each on this machine"
    )
