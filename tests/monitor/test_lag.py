"""Lag in records and seconds, from the log's own ends."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from npstream.embedded import EmbeddedLog, create_topics
from npstream.monitor.lag import LagWatch
from npstream.monitor.status import PartitionStatus
from npstream.records import Channel, Phase
from tests.monitor.builders import reading
from tests.monitor.test_status import Clock
from tests.stage.stage import TOPICS

WALL_S = 1_700_000_000.0


class Scene:
    """An embedded log, a position in it, a clock, and the watch that compares them."""

    def __init__(self, path: Path) -> None:
        topics = replace(TOPICS, labels="labels")
        create_topics(path, topics, 1)
        self.log = EmbeddedLog(path, topics)
        self.clock = Clock()
        self.owned: dict[int, PartitionStatus] = {}
        self.watch = LagWatch(lambda: self.log, lambda: self.owned, self.clock, self.wall)
        self.stand_at(0)

    def wall(self) -> float:
        """The time of day, which goes with the clock."""
        return WALL_S + self.clock.now

    def feed(self, n: int, age_s: float = 0.0) -> None:
        """Events of `age_s` ago."""
        at_ms = int((self.wall() - age_s) * 1000)
        self.log.append(Channel.EVENTS, 0, [(None, b"{}", (), at_ms)] * n)

    def stand_at(self, offset: int, event_age_s: float | None = None, next_label: int | None = None) -> None:
        """The worker has come this far."""
        at_ms = None if event_age_s is None else int((self.wall() - event_age_s) * 1000)
        found = reading(next_offset=offset, next_label=next_label)
        self.owned[0] = PartitionStatus(0, Phase.LIVE, 100.0, reading=found, last_timestamp_ms=at_ms)

    def lag(self) -> tuple[int, float]:
        """Records and seconds as reported now, after a look."""
        self.watch.look()
        found = self.watch.lags()[0]
        return found.records, round(found.seconds, 3)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """An empty log."""
    scene = Scene(tmp_path / "log")
    yield scene
    scene.log.close()


def test_no_lag_at_the_end(scene: Scene) -> None:
    """A partition at the stable end has no lag, whatever the age of its last event."""
    scene.feed(5)
    scene.stand_at(5, event_age_s=1000)

    assert scene.lag() == (0, 0.0)


def test_a_backlog_is_as_old_as_the_event_time_reached(scene: Scene) -> None:
    """While it catches up, a partition is late by the age of what it has just handled."""
    scene.feed(100, age_s=600)
    scene.stand_at(40, event_age_s=500)

    assert scene.lag() == (60, 500.0)


def test_an_idle_partition_is_not_late_by_its_long_silence(scene: Scene) -> None:
    """An event that arrives after an hour of nothing has waited for as long as it is there."""
    scene.feed(1)
    scene.stand_at(1, event_age_s=0)
    scene.lag()
    scene.clock.wait(3600)
    scene.feed(1)
    scene.clock.wait(2)

    assert scene.lag() == (1, 2.0)


def test_events_with_old_times_are_not_late_by_those(scene: Scene) -> None:
    """Nothing has waited for longer than since the worker last had nothing left to do."""
    scene.feed(1)
    scene.stand_at(1)
    scene.lag()
    scene.feed(3, age_s=9999)
    scene.clock.wait(5)
    scene.stand_at(2, event_age_s=9999)

    assert scene.lag() == (2, 5.0)


def test_a_partition_that_does_not_move_is_judged_by_its_next_event(scene: Scene) -> None:
    """A stalled partition shows the age of the very event it waits at."""
    scene.feed(10, age_s=300)
    scene.stand_at(4)
    first = scene.lag()
    scene.clock.wait(60)

    assert first == (6, 0.0)
    assert scene.lag() == (6, 360.0)


def test_without_a_response_nothing_is_shown(scene: Scene) -> None:
    """Before the first look, and when the last one is long ago, the lag is unknown rather than wrong."""
    scene.feed(5)
    before = scene.watch.lags()
    scene.lag()
    scene.clock.wait(61)

    assert before == {}
    assert scene.watch.lags() == {}


def test_progress_between_two_looks_counts(scene: Scene) -> None:
    """The lag shrinks with every batch though the end is asked for only now and then."""
    scene.feed(10)
    scene.stand_at(2, event_age_s=1)
    scene.watch.look()
    scene.stand_at(8, event_age_s=1)
    halfway = scene.watch.lags()[0].records
    scene.stand_at(12, event_age_s=1)

    assert halfway == 2
    assert scene.watch.lags()[0].records == 0


COUNTER = pytest.mark.parametrize("age_s", [WALL_S - 1.0, -30 * 86_400.0], ids=["counted from 1970", "in the future"])
"""Event times that are no times of arrival, by their age."""


@COUNTER
def test_event_times_that_mean_nothing_are_left_out(scene: Scene, age_s: float) -> None:
    """A backlog has waited for as long as this worker has seen it, whatever its event times say."""
    scene.feed(10, age_s)
    scene.stand_at(4, event_age_s=age_s)
    first = scene.lag()
    scene.clock.wait(60)

    assert (first, scene.lag()) == ((6, 0.0), (6, 60.0))


@COUNTER
def test_a_worker_that_never_catches_up_is_late_by_what_it_has_seen(scene: Scene, age_s: float) -> None:
    """What lies beyond an end that was seen came after that look."""
    scene.feed(10, age_s)
    scene.stand_at(4, event_age_s=age_s)
    scene.lag()
    found = []
    for _ in range(4):
        scene.clock.wait(5)
        scene.feed(10, age_s)
        scene.stand_at(scene.owned[0].reading.next_offset + 10, event_age_s=age_s)  # type: ignore[union-attr]
        found.append(scene.lag())

    assert found == [(6, 5.0)] * 4


def test_an_end_that_was_passed_between_two_looks_counts(scene: Scene) -> None:
    """The bound is as fresh as the position, not as the last look."""
    scene.feed(10, WALL_S)
    scene.watch.look()
    scene.feed(10, WALL_S)
    scene.clock.wait(5)
    scene.watch.look()
    scene.clock.wait(1)
    scene.stand_at(12, event_age_s=WALL_S)

    assert scene.watch.lags()[0].seconds == 6.0


def test_labels_have_a_lag_of_their_own(scene: Scene) -> None:
    """What is not learned yet, from the first label on, and less as soon as the worker has come further."""
    found = []
    for next_label in (0, 2, 5):
        scene.stand_at(0, next_label=next_label)
        scene.watch.look()
        found.append(scene.watch.lags()[0].labels)
        if next_label == 0:
            scene.log.append(Channel.LABELS, 0, [(None, b"{}", (), 1)] * 5)
    scene.stand_at(0, next_label=0)
    scene.watch.look()
    scene.stand_at(0, next_label=4)

    assert found == [0, 3, 0]
    assert scene.watch.lags()[0].labels == 1


def test_without_a_labels_topic_there_is_no_lag_of_labels(scene: Scene) -> None:
    """Not none, but not known."""
    scene.watch.look()

    assert scene.watch.lags()[0].labels is None
