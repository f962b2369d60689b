"""What the commands that replay history share: a file or a range of the topic, and the settings to replay it with."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npstream.cli.options import environment
from npstream.errors import UsageError

if TYPE_CHECKING:
    from npstream.cli.ranges import Range
    from npstream.replay.event_file import EventFile
    from npstream.replay.source import Source
    from npstream.settings import Settings

_EXTERNAL = "model.preset=external"
_FEATURES = "events.features="


@dataclass(frozen=True, slots=True)
class EventInput:
    """Where the events are: a file that has been read, or a range of the topic that the settings name."""

    file: "EventFile | None"
    where: "Range"
    partitions: int = 1
    delay: int = 0

    def say_columns(self, settings: "Settings", *, quiet: bool) -> None:
        """Say on standard error which columns of a table are taken for what, or that lines lack a topic of labels."""
        from npstream.replay.event_file import LinesFile

        taken = None if self.file is None else self.file.columns(settings.partition_config().events)
        if isinstance(self.file, LinesFile) and settings.labels.topic is not None:
            taken = f"without the labels of {settings.labels.topic}; both topics are read where no file is given"
        if taken is not None and not quiet:
            click.echo(f"{self.name}: {taken}", err=True)

    def settings(self, config: Path | None, assignments: tuple[str, ...]) -> "Settings":
        """Settings from a file, or those a data set can do with. Raises `SettingsError`, `UsageError`."""
        from npstream.settings import from_mapping, load

        if config is not None:
            return load(config, environment(), assignments)
        return from_mapping(self.defaults(assignments), {}, assignments)

    def defaults(self, assignments: tuple[str, ...]) -> dict[str, Any]:
        """The least that a settings file for this data set must say."""
        if self.file is None:
            raise UsageError("give a file, or --config with the topic to read")
        named = any(assignment.startswith(_FEATURES) for assignment in assignments)
        width = None if named else 0 if _EXTERNAL in assignments else self.file.width
        return {
            "embedded": {"path": "npstream.db"},
            "topics": {"events": "events"},
            "model": {"d": width},
            "labels": {"buffer_max": max(20_000, self.delay + 1)},
        }

    @contextmanager
    def source(self, settings: "Settings") -> Iterator["Source"]:
        """The events for these settings. Raises `UsageError` when they do not fit or there are none."""
        topic = settings.topic_names().events
        if self.file is not None:
            yield _read_by_schema(self.file, settings).source(
                settings.partition_config().events, topic, self.partitions, self.delay
            )
            return
        from npstream.backend import backend_of
        from npstream.cli.ranges import topic_source

        with closing(backend_of(settings).open_log()) as log:
            yield topic_source(log, topic, self.where, has_labels=settings.labels.topic is not None)

    @property
    def name(self) -> str:
        """For titles."""
        return "the events topic" if self.file is None else self.file.path.name


def _read_by_schema(file: "EventFile", settings: "Settings") -> "EventFile":
    """Lines as the topic of these settings would hand them out; the other files have no schemas."""
    from npstream.replay.event_file import LinesFile

    if not isinstance(file, LinesFile) or settings.events.format in ("json", "f32"):
        return file
    from npstream.schemas import Schemas

    return file.with_values(partial(Schemas(settings).read_line, exported=file.exported))


def history(
    file: Path | None,
    label: str | None,
    begin: str | None,
    end: str | None,
    only: tuple[int, ...],
    partitions: int = 1,
    delay: int = 0,
) -> EventInput:
    """What a command line points at, the file read. Raises `UsageError` for what cannot go together."""
    from npstream.cli.ranges import Range
    from npstream.replay.event_file import open_file

    if file is not None and (begin or end or only):
        raise UsageError("--from, --to and --partition choose a part of a topic; with a file leave them out")
    if file is None and (partitions > 1 or delay):
        raise UsageError("--partitions and --delay spread and delay a file; a topic has its own")
    if file is None and label is not None:
        raise UsageError("--label names a column of a file; the events of a topic say what is a label")
    return EventInput(None if file is None else open_file(file, label), Range(begin, end, only), partitions, delay)
