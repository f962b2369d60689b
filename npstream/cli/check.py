"""`npstream check`: is this settings file usable, and what will it cost?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json

if TYPE_CHECKING:
    from npstream.codec.decoder import EventConfig
    from npstream.settings import Settings

_SHOWN_MAX = 5
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


class Seconds(click.ParamType[float]):
    """A length of time with its unit."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """In seconds."""
        text = str(value)
        try:
            return float(text[:-1]) * _UNITS[text[-1:]]
        except (ValueError, KeyError):
            self.fail(f"{text!r} is not a number with a unit: 90s, 15m, 12h or 30d", param, ctx)


@click.command(
    epilog="""\b
Example:
  npstream check --config config/kafka.yaml

\b
With --rate (and --label-delay) it warns of what rate, delay, expiry and buffer will do together.
With --events, each of its events is read as a worker would: the first is shown column by
column, and a function of events.transform is run twice on each, to see that it is pure.
Exit codes: 0 usable; 3 not, with every problem; 2 the file cannot be read."""
)
@settings_options()
@click.option(
    "--events",
    "sample",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Events to try: .jsonl, or one as .json.",
)
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Observations per second of one partition.")
@click.option("--label-delay", type=Seconds(), metavar="TIME", help="How late labels come: 90s, 15m, 12h or 30d.")
@json_option
def check(
    config: Path,
    assignments: tuple[str, ...],
    sample: Path | None,
    rate: float | None,
    label_delay: float | None,
    as_json: bool,
) -> None:
    """Check a settings file: every problem at once, columns, sizes, and what will hurt. Connects to nothing."""
    if label_delay is not None and rate is None:
        raise click.UsageError("--label-delay needs --rate: how many wait depends on both")
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.codec.sample import column_lines
    from npstream.errors import SettingsError
    from npstream.partition.foresight import enough_per_s
    from npstream.settings import masked_dump, sizes

    if problems := backend_of(settings).find_client_problems():
        raise SettingsError(problems)
    found = sizes(settings)
    keep, archived = settings.checkpoint.keep, settings.checkpoint.archive_keep
    events = settings.partition_config().events
    read = [] if sample is None else _try_events(sample, events)
    warnings = [] if rate is None else _foreseen(settings, rate, label_delay)
    if as_json:
        size = _bytes(found.state, found.buffer, found.snapshot, keep, archived)
        columns = {"columns": events.columns, "contract": events.contract, "sample": read}
        echo_json({"settings": masked_dump(settings), "bytes": size, **columns, "warnings": warnings})
        return
    click.echo(yaml.safe_dump(masked_dump(settings), sort_keys=False).rstrip())
    click.echo(
        f"\n# usable. Per partition: model {_size(found.state)}, label buffer when full {_size(found.buffer)}, "
        f"snapshot at most {_size(found.snapshot)}, {keep} kept, {archived} archived "
        f"({_size(archived * found.snapshot)}, and what waited then)."
    )
    if rate is None and (enough := enough_per_s(settings.partition_config())) is not None:
        click.echo(f"# The label buffer keeps them until they expire at up to {enough:.3g} observations/s; see --rate.")
    for warning in warnings:
        click.echo(f"# warning: {warning}.")
    if events.mapping is not None:
        click.echo(f"# {len(events.columns or ())} columns, feature contract {events.contract}:")
        click.echo("\n".join(f"#   {line}" for line in column_lines(events.mapping)))
    if read:
        click.echo("\n".join(f"# {line}" for line in read))


def _foreseen(settings: "Settings", rate: float, label_delay: float | None) -> list[str]:
    from npstream.partition.foresight import Traffic, foresee

    traffic, seeded = Traffic(rate, label_delay), settings.start_from is not None
    return [f"{found.problem}; {found.fix}" for found in foresee(settings.partition_config(), traffic, seeded=seeded)]


def _try_events(path: Path, events: "EventConfig") -> list[str]:
    """How the events of a file are read. Raises `SettingsError` when a function is not pure."""
    from npstream.codec.decoder import EventDecoder
    from npstream.codec.sample import read_sample, unstable
    from npstream.data.lines import read_events
    from npstream.errors import SettingsError

    records = read_events(path)
    if changed := unstable(records, events):
        raise SettingsError([f"events.transform: {changed}"])
    errors = EventDecoder(events).decode(records).errors
    lines = [f"{path.name}: {len(records) - len(errors)} of {len(records)} events can be read"]
    lines += [f"{error.reason}, event {index}: {error.detail}" for index, error in [*errors.items()][:_SHOWN_MAX]]
    return lines + read_sample(records[0], events).lines()


def _bytes(state: int, buffer: int, snapshot: int, keep: int, archived: int) -> dict[str, int]:
    kept = {"kept": snapshot * keep, "archived": snapshot * archived}
    return {"state": state, "buffer": buffer, "snapshot": snapshot, **kept}


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MB" if count >= 2**20 else f"{count / 2**10:.1f} kB"
