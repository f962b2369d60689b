"""`npstream inspect`: what does a partition know?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json, write_file
from npstream.cli.reading import opened, past_of

if TYPE_CHECKING:
    from npstream.codec.snapshot import Snapshot
    from npstream.history.rebuild import Past
    from npstream.port import Log, StateReader
    from npstream.settings import Settings


@click.command(
    epilog="""\b
Examples:
  npstream inspect --config config/kafka.yaml
  npstream inspect --config config/kafka.yaml --partition 3
  npstream inspect --config config/kafka.yaml --partition 3 --history
  npstream inspect --config config/kafka.yaml --partition 3 --diff 120000 130000
  npstream inspect --config config/kafka.yaml --partition 3 --export model.npstream

\b
Shows the newest checkpoint, or with --at the kept one at that input offset. Reads only,
beside running workers. An exported file holds the model and nothing of single events;
give it to new partitions with the setting start_from.
Exit codes: 0 shown; 2 no such checkpoint; 3 settings refused; 4 brokers; 5 unreadable state."""
)
@settings_options()
@click.option("--partition", type=click.IntRange(0), help="Input partition; all of them, a line each, when left out.")
@click.option("--at", type=click.IntRange(0), help="The kept checkpoint at this input offset (see --history).")
@click.option("--history", is_flag=True, help="List kept checkpoints, changes of settings and resets.")
@click.option("--diff", nargs=2, type=click.IntRange(0), metavar="A B", help="Compare the kept checkpoints at A and B.")
@click.option("--export", "export", type=click.Path(path_type=Path), help="Write the model to this file.")
@json_option
def inspect(
    config: Path,
    assignments: tuple[str, ...],
    partition: int | None,
    at: int | None,
    history: bool,
    diff: tuple[int, int] | None,
    export: Path | None,
    as_json: bool,
) -> None:
    """Show what a partition's checkpoint holds."""
    settings = load_settings(config, assignments)

    from npstream.cli.ranges import partitions_of
    from npstream.errors import UsageError

    if partition is None and (at is not None or history or diff is not None or export is not None):
        raise UsageError("say which partition: --partition P")
    with opened(settings) as (log, state):
        chosen = partitions_of(log, settings.topic_names().events, () if partition is None else (partition,))
        if partition is None:
            _overview(settings, log, chosen, as_json)
            return
        past = past_of(settings, log, partition)
        if history:
            _history(past, as_json)
        elif diff is not None:
            _diff(past, diff, as_json)
        elif export is not None:
            _export(_pick(past, state, at), export, as_json)
        else:
            _one(_pick(past, state, at), state, as_json)


def _overview(settings: "Settings", log: "Log", partitions: list[int], as_json: bool) -> None:
    from npstream.errors import UsageError
    from npstream.history.inspect import describe
    from npstream.history.inspect_report import overview_text

    newest = [past_of(settings, log, partition).history.newest for partition in partitions]
    cards = [describe(kept.snapshot) for kept in newest if kept is not None]
    if not cards:
        raise UsageError(f"group {settings.group!r} has no checkpoint: check the group, or start a worker first")
    echo_json(cards) if as_json else click.echo(overview_text(cards))


def _pick(past: "Past", state: "StateReader", at: int | None) -> "Snapshot":
    """The snapshot the committed position points to, or the kept one at an offset. Raises `UsageError` without one."""
    from npstream.history.rebuild import kept_at
    from npstream.state import committed_snapshot

    position = state.committed(past.partition) if at is None else None
    if position is not None:
        return committed_snapshot(state, past.log, past.group, past.topic, past.partition, position)
    return kept_at(past, at).snapshot


def _one(snapshot: "Snapshot", state: "StateReader", as_json: bool) -> None:
    from npstream.history.inspect import describe
    from npstream.history.inspect_report import describe_text

    card = describe(snapshot)
    position = state.committed(snapshot.partition)
    committed = None if position is None else position.next_offset
    echo_json({**card, "committed_offset": committed}) if as_json else click.echo(describe_text(card, committed))


def _history(past: "Past", as_json: bool) -> None:
    from npstream.history.inspect_report import history_json, history_text

    echo_json(history_json(past.history)) if as_json else click.echo(history_text(past.history))


def _diff(past: "Past", offsets: tuple[int, int], as_json: bool) -> None:
    from npstream.history.inspect import describe
    from npstream.history.inspect_report import difference, difference_text
    from npstream.history.rebuild import kept_at

    cards: list[dict[str, Any]] = [describe(kept_at(past, offset).snapshot) for offset in offsets]
    found = difference(*cards)
    echo_json(found) if as_json else click.echo(difference_text(found))


def _export(snapshot: "Snapshot", path: Path, as_json: bool) -> None:
    from npstream.partition.model_file import model_file
    from npstream.state import processor_of

    processor = processor_of(snapshot)
    data = model_file(processor, processor.config)
    write_file(path, data)
    if as_json:
        echo_json({"file": str(path), "bytes": len(data), "next_offset": snapshot.next_offset})
    else:
        click.echo(f"wrote {path}: the model of {snapshot.name}, {len(data)} bytes")
