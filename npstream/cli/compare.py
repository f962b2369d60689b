"""`npstream compare`: is the challenger better?"""

from pathlib import Path

import click

from npstream.cli.options import json_option, load_settings, settings_options
from npstream.cli.output import echo_json
from npstream.cli.reading import opened, past_of


@click.command(
    epilog="""\b
Examples:
  npstream compare --config config/kafka.yaml
  npstream compare --config config/kafka.yaml --json

\b
The champion is the model whose decisions are published (`model` in the settings), the
challenger decides and learns beside it (`challenger`). Of the events whose label has come
it is counted, from the newest checkpoints, how often each gave an alarm and how often only
one of them did, with McNemar's exact test: below p = 0.05 the difference is more than
chance. Decisions of either's warm-up do not count; a change of settings of one of them
starts the count over. Reads only, beside running workers. Next: npstream promote.
Exit codes: 0 shown; 2 there is no challenger; 3 settings refused; 4 brokers; 5 unreadable state."""
)
@settings_options()
@json_option
def compare(config: Path, assignments: tuple[str, ...], as_json: bool) -> None:
    """Compare the challenger with the champion on the same labelled events."""
    settings = load_settings(config, assignments)

    from npstream.cli.ranges import partitions_of
    from npstream.errors import UsageError
    from npstream.history.comparison import compared, comparison_json, comparison_text

    with opened(settings) as (log, _):
        partitions = partitions_of(log, settings.topic_names().events, ())
        newest = [past_of(settings, log, partition).history.newest for partition in partitions]
    found = [each for each in (compared(kept.snapshot) for kept in newest if kept is not None) if each is not None]
    if not found:
        raise UsageError(
            f"group {settings.group!r} has no checkpoint with a challenger: name in `challenger` what is other than "
            "in `model`, for instance D: 200, and start a worker"
        )
    echo_json(comparison_json(found)) if as_json else click.echo(comparison_text(found))
