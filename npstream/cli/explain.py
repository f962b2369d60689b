"""`npstream explain`: why was this event decided so?"""

from pathlib import Path

import click

from npstream.cli.options import json_option, load_settings, one_partition_option, settings_options
from npstream.cli.output import echo_json
from npstream.cli.reading import opened, past_of


@click.command(
    epilog="""\b
Example:
  npstream explain --config config/kafka.yaml --partition 3 --offset 120412

\b
The offset is that of the event: every decision carries it in its npstream-offset header.
"moved the score by" is gradient times standardised value: to first order, what the
feature adds to the score of an average event. Reads only.
Exit codes: 0 explained; 1 the published decision is another; 2 no such event, or it cannot
be recomputed; 3 settings refused; 4 brokers; 5 stored records are damaged."""
)
@settings_options()
@one_partition_option
@click.option("--offset", type=click.IntRange(0), required=True, help="Input offset of the event.")
@json_option
@click.pass_context
def explain(
    context: click.Context, config: Path, assignments: tuple[str, ...], partition: int, offset: int, as_json: bool
) -> None:
    """Recompute one decision: score, threshold in force, reason, and which features moved it."""
    settings = load_settings(config, assignments)

    from npstream.cli.exits import FAILED
    from npstream.cli.ranges import partitions_of
    from npstream.history.explain import explain as explain_event
    from npstream.history.explain import explain_json, explain_text

    with opened(settings) as (log, _):
        partitions_of(log, settings.topic_names().events, (partition,))
        found = explain_event(past_of(settings, log, partition), offset)
    echo_json(explain_json(found)) if as_json else click.echo(explain_text(found))
    if found.published is False:
        context.exit(FAILED)
