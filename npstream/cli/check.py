"""`npstream check`: is this settings file usable, and what will it cost?"""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json

if TYPE_CHECKING:
    from npstream.codec.decoder import EventConfig

_SHOWN_MAX = 5


@click.command(
    epilog="""\b
Example:
  npstream check --config config/kafka.yaml

\b
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
@json_option
def check(config: Path, assignments: tuple[str, ...], sample: Path | None, as_json: bool) -> None:
    """Check a settings file: every problem at once, columns and sizes. Connects to nothing."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.codec.sample import column_lines
    from npstream.errors import SettingsError
    from npstream.settings import masked_dump, sizes

    if problems := backend_of(settings).find_client_problems():
        raise SettingsError(problems)
    found = sizes(settings)
    keep = settings.checkpoint.keep
    events = settings.partition_config().events
    read = [] if sample is None else _try_events(sample, events)
    if as_json:
        size = _bytes(found.state, found.buffer, found.snapshot, keep)
        columns = {"columns": events.columns, "contract": events.contract, "sample": read}
        echo_json({"settings": masked_dump(settings), "bytes": size, **columns})
        return
    click.echo(yaml.safe_dump(masked_dump(settings), sort_keys=False).rstrip())
    click.echo(
        f"\n# usable. Per partition: model {_size(found.state)}, label buffer when full {_size(found.buffer)}, "
        f"snapshot at most {_size(found.snapshot)}, {keep} kept."
    )
    if events.mapping is not None:
        click.echo(f"# {len(events.columns or ())} columns, feature contract {events.contract}:")
        click.echo("\n".join(f"#   {line}" for line in column_lines(events.mapping)))
    if read:
        click.echo("\n".join(f"# {line}" for line in read))


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


def _bytes(state: int, buffer: int, snapshot: int, keep: int) -> dict[str, int]:
    return {"state": state, "buffer": buffer, "snapshot": snapshot, "kept": snapshot * keep}


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MB" if count >= 2**20 else f"{count / 2**10:.1f} kB"
