"""`npstream check`: is this settings file usable, and what will it cost?"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from npstream.cli.options import config_option, echo_json, json_option, load_settings, set_option

if TYPE_CHECKING:
    from npstream.settings import Settings


@click.command(
    epilog="""\b
Example:
  npstream check --config config/kafka.yaml

\b
Exit codes: 0 usable; 3 not, with every problem; 2 the file cannot be read."""
)
@config_option()
@set_option
@json_option
def check(config: Path, assignments: tuple[str, ...], as_json: bool) -> None:
    """Check a settings file: every problem at once, and sizes. Connects to nothing."""
    settings = load_settings(config, assignments)
    _ask_the_client(settings)

    from npstream.settings import masked_dump, sizes

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


def _ask_the_client(settings: "Settings") -> None:
    """Raise `SettingsError` for what only the Kafka client can tell: an option that it does not know, or not so.

    Keys and certificates are left out: where settings are written, they often are not.
    """
    if settings.kafka is None:
        return
    from npstream.errors import SettingsError
    from npstream.kafka.clients import client_problems

    problems = client_problems(replace(settings.kafka.config(settings.topic_names()), security={}))
    if problems:
        raise SettingsError(problems)


def _bytes(state: int, buffer: int, snapshot: int, keep: int) -> dict[str, int]:
    return {"state": state, "buffer": buffer, "snapshot": snapshot, "kept": snapshot * keep}


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MB" if count >= 2**20 else f"{count / 2**10:.1f} kB"
