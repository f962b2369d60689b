"""`npstream tune`: search the settings that detect most while the rate holds."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from npstream.cli.options import (
    delay_option,
    environment,
    file_argument,
    json_option,
    label_option,
    partitions_option,
    range_options,
    settings_options,
)
from npstream.cli.output import check_writable, compile_kernel, echo_json, progress, write_file
from npstream.cli.replaying import EventInput, history
from npstream.errors import UsageError, plural

if TYPE_CHECKING:
    from npstream.model import Params
    from npstream.partition import PartitionConfig
    from npstream.replay.candidates import Candidate
    from npstream.replay.tune import Search, Trial
    from npstream.settings import Settings

_SHOWN = 5
_HEADER = ("trial", "preset", "D", "g", "eta", "FPR", "FPR/tau", "TPR", "NP-score")


@click.command(
    epilog="""\b
Examples:
  npstream tune data.npz --set model.tau=0.01 --trials 20 --out best.yaml
  npstream tune --config config/kafka.yaml --from 2026-05-01T00:00:00Z --out best.yaml

\b
Every trial is a replay: each event is decided by what was learned before it. Finished
trials are kept beside --out (best.trials.csv); run again and the search goes on, or with
more --trials goes further. Reads only: the live group stays as it is.
Exit codes: 0 written; 2 file or range cannot be used; 3 settings refused; 4 brokers, or
a process died; 5 stored records are damaged; 130 stopped by Ctrl-C."""
)
@file_argument
@settings_options(required=False)
@range_options
@partitions_option
@delay_option
@label_option
@click.option("--trials", type=click.IntRange(1), default=40, show_default=True, help="Trials in all.")
@click.option(
    "--preset",
    "presets",
    type=click.Choice(["plus", "paper"]),
    multiple=True,
    default=("plus", "paper"),
    show_default=True,
    help="Presets to try; repeatable.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=lambda: os.cpu_count() or 1,
    show_default="number of cores",
    help="Trials at a time.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("best.yaml"), show_default=True, help="The best settings."
)
@click.option("--fresh", is_flag=True, help="Forget earlier trials instead of going on from them.")
@json_option
def tune(
    file: Path | None,
    config: Path | None,
    assignments: tuple[str, ...],
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
    partitions: int,
    delay: int,
    label: str | None,
    trials: int,
    presets: tuple[str, ...],
    jobs: int,
    out: Path,
    fresh: bool,
    as_json: bool,
) -> None:
    """Search g, D, eta and preset for the lowest NP-score on FILE, or on a range of the events topic.

    The NP-score is the share of targets missed, plus what the false-positive rate
    is above tau, in units of tau. The first trial is the settings as they are.
    """
    from npstream.replay.tune import Search

    check_writable(out)
    past = history(file, label, begin, end, only, partitions, delay)
    bench = _Bench.of(past, config, assignments)
    # click has checked the words.
    search = Search(bench.base, presets, trials, jobs, bench.configure)  # type: ignore[arg-type]
    done = _search(search, past, bench.settings, out.with_suffix(".trials.csv"), fresh=fresh, quiet=as_json)
    best = min(done, key=lambda trial: trial.rank)
    write_file(out, bench.winner(best, done[0]))
    _print(done, best, out, as_json)


@dataclass(frozen=True, slots=True)
class _Bench:
    """The settings a search starts from: as they were written (`own`), and with the environment's values (`full`)."""

    own: dict[str, Any]
    full: dict[str, Any]
    settings: "Settings"

    @staticmethod
    def of(past: EventInput, config: Path | None, assignments: tuple[str, ...]) -> "_Bench":
        """Raises `SettingsError`, and `UsageError` where there is nothing to search."""
        from npstream.settings.source import overridden, read_yaml

        raw = past.defaults(assignments) if config is None else read_yaml(config)
        env = {} if config is None else environment()
        settings = past.settings(config, assignments)
        if settings.model.preset == "external":
            raise UsageError("preset external brings its own scores: there is nothing to search; choose another preset")
        own = overridden(raw, {}, assignments)
        for path in (assignment.partition("=")[0].strip() for assignment in assignments):
            section, _, name = path.partition(".")
            if section == "model":
                own["model"][name] = getattr(settings.model, name)  # a number, where the command line has text
        return _Bench(own, overridden(raw, env, assignments), settings)

    @property
    def base(self) -> "Params":
        return self.settings.model

    def configure(self, candidate: "Candidate") -> "PartitionConfig":
        """The rules of a candidate. Raises `SettingsError` when they cannot be."""
        from npstream.settings import from_mapping
        from npstream.settings.source import ENV_PREFIX

        env = {name: value for name, value in environment().items() if not name.startswith(ENV_PREFIX)}
        return from_mapping(self._with(self.full, candidate), env).partition_config()

    def winner(self, best: "Trial", base: "Trial") -> str:
        """A settings file with the best candidate in it; secrets stay the references they were."""
        score, before = best.score, base.score
        note = (
            f"# Found by `npstream tune`: NP-score {score.np_score:.4f} (before: {before.np_score:.4f}), "
            f"FPR {score.fpr:.4f}, TPR {score.tpr:.4f} over {score.events} events.\n"
            "# A group that has learned takes what is other than in its own file under `challenger` first, then by "
            "`npstream promote`.\n"
        )
        return note + yaml.safe_dump(self._with(self.own, best.candidate), sort_keys=False)

    def _with(self, raw: dict[str, Any], candidate: "Candidate") -> dict[str, Any]:
        model = {**(raw.get("model") or {}), **candidate.fields(self.base)}
        found = {**raw, "model": {name: value for name, value in model.items() if value is not None}}
        found.pop("challenger", None)  # of another model than this one
        return found


def _search(
    search: "Search", past: EventInput, settings: "Settings", trials: Path, *, fresh: bool, quiet: bool
) -> list["Trial"]:
    from npstream.jobs import Results
    from npstream.replay.trials import COLUMNS
    from npstream.replay.tune import in_memory, tune

    with past.source(settings) as source:
        past.say_columns(settings, quiet=quiet)
        data = in_memory(source)
    kept = Results(trials, COLUMNS, fresh=fresh)
    compile_kernel(settings.partition_config(), quiet=quiet)
    with progress("trials", search.trials, unit="trials", quiet=quiet) as advance:
        return tune(search, data, kept, _one(advance))


def _one(advance: Callable[[int], None]) -> "Callable[[Trial], None]":
    return lambda trial: advance(1)


def _print(trials: list["Trial"], best: "Trial", out: Path, as_json: bool) -> None:
    from npstream.report.page import text_table

    if as_json:
        found = [_json(trial) for trial in trials]
        echo_json({"out": str(out), "best": _json(best), "base": found[0], "trials": found})
        return
    ranked = sorted(trials, key=lambda trial: trial.rank)[:_SHOWN]
    rows = [_row(trials.index(trial), trial) for trial in ranked]
    if trials[0] not in ranked:
        rows.append(_row(0, trials[0]))
    click.echo(text_table(_HEADER, rows))
    click.echo(f"\nbest of {plural(len(trials), 'trial')} written to {out}; trial 0 is the settings as they were")


def _row(number: int, trial: "Trial") -> list[str]:
    candidate, score = trial.candidate, trial.score
    settings = [candidate.preset, str(candidate.D), f"{candidate.g:.4g}", f"{candidate.eta:.4g}"]
    rates = [f"{score.fpr:.4f}", f"{score.fpr / trial.config.params.tau:.2f}", f"{score.tpr:.3f}"]
    return [str(number), *settings, *rates, f"{score.np_score:.4f}"]


def _json(trial: "Trial") -> dict[str, Any]:
    candidate = trial.candidate
    settings = {"preset": candidate.preset, "D": candidate.D, "g": candidate.g, "eta": candidate.eta}
    return {**settings, "tau": trial.config.params.tau, **trial.score._asdict()}
