"""What the commands that look at a running group share: its clients, and the past of a partition."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npstream.history.rebuild import Past
    from npstream.port import Log, StateReader
    from npstream.settings import Settings


@contextmanager
def opened(settings: "Settings") -> Iterator[tuple["Log", "StateReader"]]:
    """A plain reader of the topics and one of the group's committed state, closed at the end."""
    from npstream.backend import backend_of

    backend = backend_of(settings)
    with closing(backend.open_log()) as log, closing(backend.open_state()) as state:
        yield log, state


def past_of(settings: "Settings", log: "Log", partition: int) -> "Past":
    """What the topics still hold of one partition of these settings' group."""
    from npstream import app
    from npstream.history.rebuild import read_past

    topics = settings.topic_names()
    return read_past(log, settings.group, topics.events, partition, app.seed_of(settings), topics.labels)
