"""A range of a topic, as a command line names it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from npstream.cli.ranges import Range, topic_source
from npstream.embedded import EmbeddedLog, create_topics
from npstream.errors import UsageError
from npstream.port import Log
from npstream.records import Channel, Topics

TOPICS = Topics("events", "decisions", "dead", "checkpoints")
_MAY_MS = 1_777_593_600_000
"""2026-05-01T00:00:00Z."""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Three partitions: ten events a minute apart from May 1st on, five of them on partition 1, and none."""
    create_topics(tmp_path / "log.db", TOPICS, 3)
    log = EmbeddedLog(tmp_path / "log.db", TOPICS)
    for partition, count in ((0, 10), (1, 5)):
        log.append(Channel.EVENTS, partition, [(None, b"{}", (), _MAY_MS + 60_000 * i) for i in range(count)])
    yield log
    log.close()


def refusal(log: Log, where: Range) -> str:
    """The message to the user."""
    with pytest.raises(UsageError) as caught:
        topic_source(log, "events", where)
    return str(caught.value)


@pytest.mark.parametrize(
    ("where", "ranges"),
    [
        (Range(), {0: (0, 10), 1: (0, 5)}),
        (Range("3"), {0: (3, 10), 1: (3, 5)}),
        (Range("3", "4"), {0: (3, 4), 1: (3, 4)}),
        (Range("7"), {0: (7, 10)}),
        (Range(None, "99"), {0: (0, 10), 1: (0, 5)}),
        (Range("2026-05-01T00:03:00Z"), {0: (3, 10), 1: (3, 5)}),
        (Range("2026-05-01T02:03:00+02:00", "2026-05-01T00:05:30Z"), {0: (3, 6), 1: (3, 5)}),
        (Range("2026-05-01T00:00:00Z", "4", (1,)), {1: (0, 4)}),
    ],
)
def test_offsets_and_timestamps_choose_a_range(log: Log, where: Range, ranges: dict[int, tuple[int, int]]) -> None:
    """The end is not included, what the topic does not hold is left out, and so are empty partitions."""
    source = topic_source(log, "events", where)

    assert source.ranges == ranges
    read = {p: [r.offset for r in reader] for p, reader in source.readers().items()}
    assert read == {p: list(range(*ends)) for p, ends in ranges.items()}


@pytest.mark.parametrize(
    ("where", "reported"),
    [
        (Range("2099-01-01T00:00:00Z"), "its newest event is of 2026-05-01T00:09:00+00:00"),
        (Range("10"), "no event between 10 and the end; it holds offsets 0 to 9 in partition 0, 0 to 4 in partition 1"),
        (Range("5", "5"), "no event between 5 and 5"),
        (Range(partitions=(2,)), "is empty; send events first"),
        (Range(partitions=(3,)), "partition 3 does not exist: events has partitions 0 to 2"),
        (Range("2026-05-01T00:00:00"), "must name its time zone, for instance 2026-05-01T00:00:00Z"),
        (Range("2026-05-01"), "must name its time zone, for instance 2026-05-01T00:00:00Z"),
        (Range("yesterday"), "'yesterday' is neither an offset nor a timestamp such as"),
        (Range("-5"), "'-5' is neither an offset nor a timestamp"),
    ],
)
def test_a_range_that_holds_nothing_is_refused_with_what_there_is(log: Log, where: Range, reported: str) -> None:
    """The message says what the topic holds instead, or how to write it."""
    assert reported in refusal(log, where)


def test_absurd_timestamps_can_be_shown(log: Log) -> None:
    """A date no calendar has is shown as the number it is."""
    log.append(Channel.EVENTS, 2, [(None, b"{}", (), 2**62)])

    assert f"timestamp {2**62}" in refusal(log, Range("5", None, (2,)))
