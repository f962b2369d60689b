"""Counts over time as the page and `/history` have them."""

import json
from pathlib import Path

import numpy as np

from npstream.monitor.history import history_document
from npstream.records import COUNTED_OVER_TIME, CountsOverTime
from tests.monitor.builders import events, handled
from tests.stage.watched import Watched

HOUR = 3_600_000
NOW = 1_700_000_000_000 // HOUR * HOUR
DECISIONS, ALARMS = COUNTED_OVER_TIME.index("decisions"), COUNTED_OVER_TIME.index("alarms")


def counts(newest_ms: int, minutes: dict[int, int]) -> CountsOverTime:
    """Decisions by the minutes they lie before the newest one."""
    rings = np.zeros((1440, 8), np.int32), np.zeros((744, 8), np.int32)
    for back, decisions in minutes.items():
        at = newest_ms // 60_000 - back
        rings[0][at % 1440, DECISIONS] += decisions
        rings[1][at // 60 % 744, DECISIONS] += decisions
    return CountsOverTime(newest_ms, *rings)


def test_partitions_are_added_up_minute_by_minute() -> None:
    """Each by its own clock: what is a day before the newest of all is left out, and a ring's reuse is not seen."""
    ahead = counts(NOW + 5 * 60_000, {0: 7, 5: 1, 65: 2})
    behind = counts(NOW - 60 * 60_000, {0: 10, 1439: 99})
    found = history_document([ahead, None, behind, counts(0, {})], "day")

    assert (found["unit_ms"], found["newest_ms"]) == (60_000, NOW + 5 * 60_000)
    assert found["begin_ms"] == NOW - 60 * 60_000
    assert found["counts"]["decisions"] == [12, *[0] * 59, 1, *[0] * 4, 7]
    assert {len(column) for column in found["counts"].values()} == {66}


def test_a_month_is_counted_by_the_hour() -> None:
    """The same events."""
    found = history_document([counts(NOW, {0: 7, 59: 1, 60: 2, 1439: 5})], "month")

    assert (found["unit_ms"], found["begin_ms"]) == (HOUR, NOW - 24 * HOUR)
    assert [n for n in found["counts"]["decisions"] if n] == [5, 3, 7]


def test_nothing_decided_is_nothing_to_draw() -> None:
    """No partition, or none with a usable time."""
    empty: dict[str, list[int]] = {name: [] for name in COUNTED_OVER_TIME}
    for timelines in ([], [None], [counts(0, {})]):
        found = history_document(timelines, "day")
        assert (found["begin_ms"], found["newest_ms"], found["counts"]) == (None, None, empty)


def test_the_worker_says_what_came_of_its_events(tmp_path: Path) -> None:
    """Of all partitions or of one, after a restart too; what is not there is refused in words."""
    stage = Watched(tmp_path / "log", 2)
    for hours in (30, 2, 1):
        stage.send(events(100, seed=hours), timestamp_ms=NOW - hours * HOUR)
    stage.send(events(50), 1, timestamp_ms=NOW)
    stage.start()
    stage.wait_for(handled(300, 50))
    stage.stop()
    with stage:
        status = stage.wait_for(handled(300, 50))
        of_all, of_one, month = (
            json.loads(stage.get(path)[1])["counts"]
            for path in ("history", "history?partition=0&span=day", "history?span=month")
        )
        refused = [stage.get(f"history?{query}") for query in ("span=year", "partition=7")]

    lifetime = [p["fpr"]["lifetime"] for p in status["partitions"]]
    # The first event after the pause waits for a second one to be believed.
    assert (sum(of_all["decisions"]), sum(of_one["decisions"]), sum(month["decisions"])) == (249, 199, 350)
    assert sum(month["non_targets"]) == sum(rate["of"] for rate in lifetime)
    assert sum(month["false_alarms"]) == sum(rate["hits"] for rate in lifetime)
    assert refused == [
        (404, "?span= must be one of day, month\n"),
        (404, "?partition= must name one of 0, 1\n"),
    ]
