"""`npstream explain`: why was this event decided so?"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json
from npstream.cli.reading import opened, past_of

if TYPE_CHECKING:
    from npstream.codec.resets import Reset
    from npstream.history.find_decision import Hit, Sought
    from npstream.port import Log


@click.command(
    epilog="""\b
Examples:
  npstream explain --config config/kafka.yaml --partition 3 --offset 120412
  npstream explain --config config/kafka.yaml --id payment-4711 --since 2026-05-01T10:00:00Z

\b
The event is named by its offset, which every decision carries in its npstream-offset
header, or is found in the decisions topic by its id or its key; of several decisions
the newest is explained. --since and --until are about the time of the event.
"moved the score by" is gradient times standardised value: to first order, what the
feature adds to the score of an average event. Reads only.
Exit codes: 0 explained; 1 the published decision is another; 2 no such event, or it cannot
be recomputed; 3 settings refused; 4 brokers; 5 stored records are damaged."""
)
@settings_options()
@click.option("--partition", type=click.IntRange(0), help="Input partition; all are searched for an id or a key.")
@click.option("--offset", type=click.IntRange(0), help="Input offset of the event.")
@click.option("--id", "identity", metavar="ID", help="Id of the event, as its decision has it.")
@click.option("--key", metavar="KEY", help="Key of the event's record, as UTF-8 text.")
@click.option("--since", metavar="WHEN", help="Search from this time of the event on: ISO timestamp with zone.")
@click.option("--until", metavar="WHEN", help="Search up to this time of the event, not included.")
@json_option
@click.pass_context
def explain(
    context: click.Context,
    config: Path,
    assignments: tuple[str, ...],
    partition: int | None,
    offset: int | None,
    identity: str | None,
    key: str | None,
    since: str | None,
    until: str | None,
    as_json: bool,
) -> None:
    """Recompute one decision: score, threshold in force, reason, and which features moved it."""
    by_name = identity is not None or key is not None
    if (offset is None) != by_name or (offset is not None and partition is None):
        raise click.UsageError("give --partition and --offset, or --id, or --key")
    settings = load_settings(config, assignments)

    from npstream.cli.exits import FAILED
    from npstream.cli.ranges import moment_ms, partitions_of
    from npstream.history.explain import explain as explain_event
    from npstream.history.explain import explain_json, explain_text
    from npstream.history.find_decision import Sought

    with opened(settings) as (log, _):
        chosen = partitions_of(log, settings.topic_names().events, () if partition is None else (partition,))
        others = 0
        if offset is None:
            times = [None if text is None else moment_ms(text) for text in (since, until)]
            sought = Sought(identity, None if key is None else key.encode(), *times)
            *older, hit = _search(log, chosen, sought, lambda each: past_of(settings, log, each).history.resets)
            partition, offset, others = hit.partition, hit.offset, len(older)
        assert partition is not None
        found = explain_event(past_of(settings, log, partition), offset)
    if as_json:
        echo_json({**explain_json(found), "other_decisions": others})
    else:
        click.echo(explain_text(found))
        if others:
            click.echo(f"  the newest of {others + 1} decisions that fit; --since and --until choose another")
    if found.published is False:
        context.exit(FAILED)


def _search(
    log: "Log", partitions: list[int], sought: "Sought", resets: Callable[[int], Sequence["Reset"]]
) -> list["Hit"]:
    """The decisions that fit, the newest last. Raises `UsageError` when there is none."""
    from npstream.client import partition_for
    from npstream.errors import UsageError
    from npstream.history.find_decision import find_decisions

    if sought.key is not None:  # most producers place records by their key
        likely = partition_for(sought.key, len(partitions))
        partitions = sorted(partitions, key=lambda partition: partition != likely)
    timed = sought.since_ms is not None or sought.until_ms is not None
    hits: list[Hit] = []
    for partition in partitions:
        hits += find_decisions(log, partition, sought, resets(partition) if timed else ())
        if hits and sought.key is not None:
            break
    if not hits:
        named = " and ".join(f"{name} {value!r}" for name, value in (("id", sought.id), ("key", sought.key)) if value)
        raise UsageError(
            f"no decision with {named} is in the decisions topic"
            + (" for that time" if timed else "")
            + ": look among the dead letters (`npstream dlq list`), or further back; retention may have taken it"
        )
    return sorted(hits, key=lambda hit: hit.timestamp_ms)
