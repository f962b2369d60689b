"""`npstream experiment`: the paper's study and the stream comparison, as commands."""

import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npstream.cli.exits import FAILED
from npstream.cli.output import progress, write_file
from npstream.errors import UsageError

if TYPE_CHECKING:
    from npstream.study.study import Report, Study


@dataclass(frozen=True, slots=True)
class Common:
    """Options every study takes."""

    data: Path | None
    out: Path
    jobs: int
    quick: bool
    fresh: bool
    as_json: bool


_OPTIONS = (
    click.option(
        "--data",
        type=click.Path(path_type=Path),
        envvar="NPSTREAM_DATA",
        show_envvar=True,
        help="Folder of .npz (X, y), .csv (label in column y, else the last) or LIBSVM files. "
        "Without it the built-in generators are used.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=Path("out"),
        show_default=True,
        help="Folder for the CSV of every number, the figures and the page.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        default=lambda: os.cpu_count() or 1,
        show_default="number of cores",
        help="Processes to run at a time.",
    ),
    click.option("--quick", is_flag=True, help="A small version that ends within a minute."),
    click.option("--fresh", is_flag=True, help="Forget earlier results instead of continuing from them."),
    click.option("--json", "as_json", is_flag=True, help="Print the summary and the gates as JSON."),
)


def common(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the common options, handed over as one value."""

    @wraps(command)
    def wrapped(data: Path | None, out: Path, jobs: int, quick: bool, fresh: bool, as_json: bool, **own: Any) -> None:
        command(Common(data, out, jobs, quick, fresh, as_json), **own)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


_gates = click.option("--gates", is_flag=True, help="Exit with code 1 when a gate fails.")
_seeds = click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Runs of each set.")
_sets = click.option("--sets", multiple=True, metavar="NAME", help="Only these data sets. Repeatable.")


_EXITS = "Exit codes: 0 done; 1 a gate failed (with --gates); 2 wrong options or data; 130 interrupted."


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EXITS)
def experiment() -> None:
    """The paper's study and the stream comparison.

    Every number goes to a CSV in --out, with figures (SVG) and one HTML page
    beside it. An interrupted run continues where it stopped.

    \b
    Examples:
      npstream experiment streams --quick
      npstream experiment streams --data DATA --gates
      npstream experiment table --data DATA --sets banana
    """


def _stream_study(name: str, about: str) -> None:
    """The command of a study of data sets as streams, `npstream.study.NAME`."""

    @experiment.command(
        name, help=f"{about}\n\n\b\nExample:\n  npstream experiment {name} --data DATA --gates", epilog=_EXITS
    )
    @common
    @_sets
    @_seeds
    @_gates
    def run(options: Common, sets: tuple[str, ...], seeds: int, gates: bool) -> None:
        _run(options, _study(name, options, names=sets, seeds=seeds), gates)


_stream_study("streams", "One pass over each stream, four classifiers, five target rates.")
_stream_study("delays", "Labels late by 100, 1,000 and 5,000 events.")
_stream_study("inputs", "Categories against one-hot columns, missing numbers against their mean.")
_stream_study("tiers", "Two rates from one model, each beside a model of its own.")


@experiment.command(epilog=_EXITS)
@common
@_sets
@_seeds
@_gates
def stress(options: Common, sets: tuple[str, ...], seeds: int, gates: bool) -> None:
    """Flipped labels, jumps, changed units, drift, 1% and 0.1% targets.

    The streams are generated; --data is not used.

    \b
    Example:
      npstream experiment stress --gates
    """
    from npstream.study import stress as module

    _run(options, module.study(names=sets, seeds=seeds, quick=options.quick), gates)


@experiment.command(epilog=_EXITS)
@common
@click.option("--seeds", type=click.IntRange(1, 1000), default=20, show_default=True, help="Streams of each kind.")
@_gates
def desk(options: Common, seeds: int, gates: bool) -> None:
    """A chargeback desk with known truth: late, selective, mistaken labels.

    \b
    Example:
      npstream experiment desk --gates
    """
    from npstream.study import desk as module

    _run(options, module.study(seeds=seeds, quick=options.quick), gates)


_permutations = click.option(
    "--permutations", type=click.IntRange(1, 1000), default=15, show_default=True, help="Random orders of each set."
)
_grid = click.option(
    "--grid",
    type=click.Choice(["small", "paper"]),
    default="small",
    show_default=True,
    help="Cross-validated values: a coarse grid and 30,000 training samples, or the paper's grid and 150,000.",
)


@experiment.command(epilog=_EXITS)
@common
@_sets
@_permutations
@_grid
def table(options: Common, sets: tuple[str, ...], permutations: int, grid: str) -> None:
    """The paper's table: NP-NN, OLNP, NPROC-LOG, NPROC-SVM.

    TPR, FPR, NP-score and AUC at target rates .05 .1 .2 .3 .4. Needs
    scikit-learn: pip install 'npstream[sklearn]'.

    \b
    Example:
      npstream experiment table --data DATA --sets banana --permutations 5
    """
    _run(options, _paper_study("table", options, sets, permutations, grid))


@experiment.command(epilog=_EXITS)
@common
@_sets
@_permutations
@_grid
def roc(options: Common, sets: tuple[str, ...], permutations: int, grid: str) -> None:
    """The paper's ROC figure, from the rows of `table`.

    \b
    Example:
      npstream experiment roc --data DATA --sets banana --permutations 5
    """
    _run(options, _paper_study("roc", options, sets, permutations, grid))


@experiment.command(epilog=_EXITS)
@common
@_sets
@_permutations
def banana(options: Common, sets: tuple[str, ...], permutations: int) -> None:
    """Boundaries and FPR convergence on two features.

    \b
    Example:
      npstream experiment banana --data DATA
    """
    _run(options, _study("banana", options, names=sets, permutations=permutations))


@experiment.command(epilog=_EXITS)
@common
@_sets
@_permutations
def large(options: Common, sets: tuple[str, ...], permutations: int) -> None:
    """Large streams at tau .01 and .005, rates over time.

    \b
    Example:
      npstream experiment large --data DATA --permutations 5
    """
    _run(options, _study("large", options, names=sets, permutations=permutations))


def _study(module: str, options: Common, **own: Any) -> "Study":
    """That of a module of `npstream.study`, on the data of the options."""
    from npstream.study.datasets import DatasetSource

    study: Study = importlib.import_module(f"npstream.study.{module}").study(
        DatasetSource(options.data), quick=options.quick, **own
    )
    return study


def _paper_study(name: str, options: Common, sets: tuple[str, ...], permutations: int, grid: str) -> "Study":
    from npstream.study import protocol

    values = protocol.PAPER_GRID if grid == "paper" else protocol.SMALL_GRID
    return _study("table", options, name=name, names=sets, permutations=permutations, grid=values)


def _run(options: Common, study: "Study", gates: bool = False) -> None:
    """Run what is missing, write the report, print it; exit 1 when `gates` are asked for and one fails."""
    if not study.tasks:
        raise UsageError(f"{study.name}: nothing to run with these options; see --help")
    with progress(study.name, len(study.tasks), unit="runs", quiet=options.as_json) as advance:
        report = study.run(options.out, options.jobs, fresh=options.fresh, progress=_steps(advance))
    _write(options.out, study.name, report)
    if options.as_json:
        click.echo(json.dumps({**report.summary, "gates": [gate.to_dict() for gate in report.gates]}, indent=2))
    else:
        _print(options.out, study, report)
    if gates and not report.gates:
        raise UsageError(f"{study.name}: --gates was asked for, but none applies to what was run; run more of it")
    if gates and not all(gate.passed for gate in report.gates):
        sys.exit(FAILED)


def _write(out: Path, name: str, report: "Report") -> None:
    from npstream.report.page import PageSection, page

    verdicts = [PageSection(heading="Gates", text=[gate.line() for gate in report.gates])] if report.gates else []
    write_file(out / f"{name}.html", page(f"npstream experiment {name}", [*report.sections, *verdicts]))
    for stem, figure in report.figures.items():
        write_file(out / f"{stem}.svg", figure + "\n")


def _print(out: Path, study: "Study", report: "Report") -> None:
    from npstream.report.page import text_table

    for section in report.sections:
        click.secho(section.heading, bold=True)
        for text in section.text:
            click.echo(text)
        for table in section.tables:
            click.echo(f"\n{table.caption}\n{text_table(table.header, table.rows)}")
        click.echo()
    for gate in report.gates:
        click.echo(gate.line())
    click.echo(f"numbers: {out / study.file}.csv   page: {out / study.name}.html")


def _steps(advance: Callable[[int], None]) -> Callable[[int, int], None]:
    """A study says how many tasks are done in all, a bar takes how many more."""
    shown = 0

    def step(done: int, total: int) -> None:
        nonlocal shown
        advance(done - shown)
        shown = done

    return step
