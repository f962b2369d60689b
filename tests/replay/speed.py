"""What a replay costs beside the kernel it runs: `python -m tests.replay.speed [events]`.

Prints processor time an event, so that other load on the machine matters little:
the kernel alone over the rows, a replay of the same rows from an archive, and a
replay of the same rows as JSON from a topic of the embedded log.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from npstream.cli.ranges import Range, topic_source
from npstream.client import Message
from npstream.data.messages import messages_of_file
from npstream.embedded import EmbeddedLog, create_topics
from npstream.model import Model
from npstream.records import Channel
from npstream.replay.event_file import open_file
from npstream.replay.replay import replay
from npstream.replay.source import ArraySource
from npstream.settings import Settings, from_mapping
from npstream.worker.warm import warm_up
from tests.replay.data import write_npz

_D = 8
_JSON_MAX = 200_000
"""Events written to the topic: writing them durably is not what is measured."""


def main(events: int) -> None:
    """Measure three times and print the best."""
    with TemporaryDirectory(prefix="npstream-speed-") as folder:
        rows, fewer = Path(folder) / "rows.npz", Path(folder) / "fewer.npz"
        write_npz(rows, events, _D)
        settings = from_mapping(
            {"embedded": {"path": f"{folder}/log.db"}, "topics": {"events": "events"}, "model": {"d": _D}}
        )
        config = settings.partition_config()
        warm_up(config)
        source = open_file(rows).source(config.events, "events")
        assert isinstance(source, ArraySource)
        kernel = _cost(lambda: Model.create(config.params).stream(source.x, source.y), events)
        array = _cost(lambda: replay(config, source), events)
        count = min(events, _JSON_MAX)
        write_npz(fewer, count, _D)
        with closing(_filled(settings, fewer)) as log:
            topic = _cost(lambda: replay(config, topic_source(log, "events", Range())), count)
    print(f"kernel alone              {kernel:6.2f} microseconds per event")
    print(f"replay of an archive      {array:6.2f}   {array - kernel:+.2f}, ratio {array / kernel:.2f}")
    print(f"replay of JSON in a topic {topic:6.2f}   {topic - kernel:+.2f}, ratio {topic / kernel:.2f}")


def _cost(work: Callable[[], object], events: int) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best / events * 1e6


def _filled(settings: Settings, path: Path) -> EmbeddedLog:
    assert settings.embedded is not None
    create_topics(settings.embedded.path, settings.topic_names(), 1)
    log = EmbeddedLog(settings.embedded.path, settings.topic_names())
    _, messages, _ = messages_of_file(path, settings.partition_config().events, 0)
    for batch in _batches(messages):
        log.append(Channel.EVENTS, 0, [(m.key, m.value, m.headers, 1) for m in batch])
    return log


def _batches(messages: Iterator[Message]) -> Iterator[list[Message]]:
    while batch := list(islice(messages, 5000)):
        yield batch


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
