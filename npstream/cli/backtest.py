"""`npstream backtest`: replay a file or a range of the events topic, with other settings side by side."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.options import echo_json, environment, json_option
from npstream.cli.progress import progress

if TYPE_CHECKING:
    from npstream.backtest.inputs import Range
    from npstream.backtest.report import Run
    from npstream.backtest.source import Source
    from npstream.settings import Settings


@click.command(
    epilog="""\b
Examples:
  npstream backtest data.npz --set model.tau=0.01,0.05
  npstream backtest data.npz --partitions 12 --delay 1000 --report out/
  npstream backtest --config config/kafka.yaml --from 2026-05-01T00:00:00Z --set model.tau=0.005,0.01

\b
Reads only: the live group, its offsets and its topics stay as they are.
Exit codes: 0 done; 2 file or range cannot be used; 3 settings refused; 4 brokers."""
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--config", "-c", "configs", type=click.Path(path_type=Path), multiple=True, help="Settings file; several compare."
)
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE[,VALUE...]", help="Override a setting; lists compare."
)
@click.option("--from", "begin", metavar="WHEN", help="First event of a topic: ISO timestamp with zone, or an offset.")
@click.option("--to", "end", metavar="WHEN", help="End of the range, not included: ISO timestamp or offset.")
@click.option("--partition", "only", type=int, multiple=True, help="Only these partitions of the topic.")
@click.option(
    "--partitions", type=click.IntRange(1), default=1, show_default=True, help="Models to spread a file over."
)
@click.option("--delay", type=click.IntRange(0), default=0, help="Labels of a file come this many events later.")
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
    start_from: Path | None,
    report: Path | None,
    plan: bool,
    as_json: bool,
) -> None:
    """Replay FILE, or a range of the events topic, through the processor of the worker."""
    from npstream.backtest.inputs import Range

    where = Range(begin, end, only)
    runs: list[Run] = []
    for name, settings in _all_settings(file, configs, assignments):
        with _source(settings, file, where, partitions, delay) as source:
            if plan:
                _print_plan(settings, source, as_json)
                return
            runs.append(_run(name, settings, source, start_from, quiet=as_json))
    _print(runs, report, as_json, str(file or "topic"))


def _all_settings(
    file: Path | None, configs: tuple[Path, ...], assignments: tuple[str, ...]
) -> Iterator[tuple[str, "Settings"]]:
    from npstream.backtest.inputs import features_of
    from npstream.backtest.runs import file_mapping, variants
    from npstream.errors import UsageError
    from npstream.settings import from_mapping, load

    if file is None and not configs:
        raise UsageError("give a file to replay, or --config with the topic to replay")
    for variant in variants(assignments):
        for config in configs:
            name = variant.name if len(configs) == 1 else f"{config.stem} {variant.name}".removesuffix(" run")
            yield name, load(config, environment(), variant.assignments)
        if not configs:
            assert file is not None
            yield variant.name, from_mapping(file_mapping(features_of(file)), {}, variant.assignments)


@contextmanager
def _source(settings: "Settings", file: Path | None, where: "Range", partitions: int, delay: int) -> Iterator["Source"]:
    from npstream import app
    from npstream.backtest.inputs import file_source, topic_source

    if file is not None:
        yield file_source(file, settings.model.d, partitions, delay)
        return
    with closing(app.open_log(settings)) as log:
        yield topic_source(log, settings.topic_names().events, where)


def _run(name: str, settings: "Settings", source: "Source", start_from: Path | None, *, quiet: bool) -> "Run":
    from npstream import app
    from npstream.backtest.replay import replay
    from npstream.backtest.report import Run
    from npstream.settings import masked_dump

    seed_path = start_from or settings.start_from
    seed = None if seed_path is None else app.read_model(seed_path)
    total = sum(end - begin for begin, end in source.ranges.values())
    app.warm_up(settings.partition_config())
    started = time.monotonic()
    with progress(name, total, quiet=quiet) as advance:
        result = replay(settings.partition_config(), source, group=settings.group, seed=seed, progress=advance)
    return Run(name, masked_dump(settings), result, time.monotonic() - started)


def _print(runs: list["Run"], report: Path | None, as_json: bool, source: str) -> None:
    from npstream.backtest.report import to_csv, to_html, to_json, to_text

    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
        (report / "report.html").write_text(to_html(runs, source))
        (report / "samples.csv").write_text(to_csv(runs))
    if as_json:
        echo_json([to_json(run) for run in runs])
        return
    click.echo(to_text(runs))
    for run in runs:
        for partition in run.result.partitions:
            if partition.halted is not None:
                click.echo(f"{run.name}: stopped early: {partition.halted}", err=True)
    if report is not None:
        click.echo(f"report: {report / 'report.html'}")


def _print_plan(settings: "Settings", source: "Source", as_json: bool) -> None:
    from npstream.backtest.inputs import plan_of

    plan = plan_of(settings.partition_config(), source)
    if as_json:
        echo_json(plan)
        return
    click.echo(
        f"{plan['events']:,} events in {plan['partitions']} partitions, about {plan['bytes'] / 2**20:,.1f} MB, "
        f"about {plan['seconds']:,.1f} s a run on this machine ({plan['us_per_event']:.1f} microseconds an event)"
    )
