"""One command, `npstream`; each sub-command is imported when it is called.

Importing this module must stay cheap: `npstream --help` reads only the table
below.
"""

import importlib
import logging
import sys
from typing import NoReturn

import click

from npstream import __version__

COMMANDS = {
    "demo": ("npstream.cli.demo:demo", "The first minute: a drifting stream, no Kafka needed."),
    "run": ("npstream.cli.run:run", "Read events, publish decisions, learn. The worker."),
    "check": ("npstream.cli.check:check", "Check a settings file: every problem at once, and sizes."),
    "map": ("npstream.cli.map:map_", "Write a first mapping of events from a sample of them."),
    "init": ("npstream.cli.init:init", "Create the topics with the right settings."),
    "doctor": ("npstream.cli.doctor:doctor", "Look for what will go wrong, with the fix for each finding."),
    "produce": ("npstream.cli.produce:produce", "Send a file to the events topic."),
    "route-labels": ("npstream.cli.route_labels:route_labels", "Copy labels from a topic that is keyed otherwise."),
    "label": ("npstream.cli.label:label", "Labels from a file, learned however old their events are."),
    "backtest": ("npstream.cli.backtest:backtest", "Replay a file or a topic with other settings, side by side."),
    "train": ("npstream.cli.train:train", "Learn from history; partitions without state start from it."),
    "tune": ("npstream.cli.tune:tune", "Search the settings that detect most on a file or a topic."),
    "audit": ("npstream.cli.audit:audit", "Recompute decisions and compare them with the published ones."),
    "inspect": ("npstream.cli.inspect:inspect", "What a partition knows: its checkpoint, history and differences."),
    "explain": ("npstream.cli.explain:explain", "Why one event was decided as it was."),
    "export": ("npstream.cli.export:export", "Write a range of the events topic to a file."),
    "monitor": ("npstream.cli.monitor:monitor", "The page of the whole group, from outside of its workers."),
    "lag": ("npstream.cli.lag:lag", "The lag of the group, in records and seconds."),
    "dlq": ("npstream.cli.dlq:dlq", "List, show and send back dead letters."),
    "compare": ("npstream.cli.compare:compare", "The challenger beside the champion, on the same events."),
    "promote": ("npstream.cli.promote:promote", "Put the challenger in the champion's place."),
    "rollback": ("npstream.cli.rollback:rollback", "Return partitions to a kept checkpoint, an offset or a time."),
    "reset": ("npstream.cli.reset:reset", "Start partitions over at another place."),
    "recover": ("npstream.cli.recover:recover", "Find the place again after offsets or checkpoints were lost."),
    "experiment": ("npstream.cli.experiment:experiment", "The paper's study and the stream comparison."),
    "bench": ("npstream.cli.bench:bench", "Measure this machine: kernel, decoder, snapshots, labels and pipeline."),
}
"""Name: (module and attribute, one line of help)."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None when there is no such name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="npstream")
def cli() -> None:
    """Exactly-once online Neyman-Pearson classification on Kafka streams.

    Detect as much as possible while the rate of false alarms, or of all alarms, stays at tau.

    \b
    First steps:
      npstream demo                          no Kafka, half a minute once installed and compiled
      npstream check --config config.yaml    every problem at once
      npstream run --config config.yaml      the worker
    """
    # A command says itself what went wrong, once; only the worker has a log, and sets it up.
    logger = logging.getLogger("npstream")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point: errors of ours become one message and a documented exit code, never a traceback."""
    from npstream.cli.exits import INTERRUPTED, code_of
    from npstream.errors import NpstreamError

    try:
        code = cli.main(args=args, prog_name="npstream", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except NpstreamError as error:
        click.echo(f"npstream: {error}", err=True)
        sys.exit(code_of(error))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("npstream: stopped by Ctrl-C", err=True)
        sys.exit(INTERRUPTED)
