"""`npstream check`: is this settings file usable, and what will it cost?"""

from pathlib import Path

import click
import yaml

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json


@click.command(
    epilog="""\b
Example:
  npstream check --config config/kafka.yaml

\b
Exit codes: 0 usable; 3 not, with every problem; 2 the file cannot be read."""
)
@settings_options()
@json_option
def check(config: Path, assignments: tuple[str, ...], as_json: bool) -> None:
    """Check a settings file: every problem at once, and sizes. Connects to nothing."""
    settings = load_settings(config, assignments)

    from npstream.backend import backend_of
    from npstream.errors import SettingsError
    from npstream.settings import masked_dump, sizes

    if problems := backend_of(settings).find_client_problems():
        raise SettingsError(problems)
    found = sizes(settings)
    keep = settings.checkpoint.keep
    if as_json:
        echo_json({"settings": masked_dump(settings), "bytes": _bytes(found.state, found.buffer, found.snapshot, keep)})
        return
    click.echo(yaml.safe_dump(masked_dump(settings), sort_keys=False).rstrip())
    click.echo(
        f"\n# usable. Per partition: model {_size(found.state)}, label buffer when full {_size(found.buffer)}, "
        f"snapshot at most {_size(found.snapshot)}, {keep} kept."
    )


def _bytes(state: int, buffer: int, snapshot: int, keep: int) -> dict[str, int]:
    return {"state": state, "buffer": buffer, "snapshot": snapshot, "kept": snapshot * keep}


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MB" if count >= 2**20 else f"{count / 2**10:.1f} kB"
