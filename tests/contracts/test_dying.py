"""A worker killed at any point of a commit has either committed all of it or nothing."""

import os
import signal
import subprocess
import sys

import pytest

from npstream.port import Log
from npstream.records import Position
from tests.contracts.builders import eventually, joined
from tests.contracts.dying_worker import SHARES, visible
from tests.stage.places import EmbeddedPlace, KafkaPlace, Place

pytestmark = [
    pytest.mark.slow,
    # Nothing of a process survives it in memory: there, `tests.simulation` cuts a worker short at every request.
    pytest.mark.parametrize("place", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)], indirect=True),
]
BEFORE_THE_DECISION = (
    "begin:1",
    "produce:1",
    "produce:3",
    "segment:1",
    "mid_snapshot:1",
    "mid_snapshot:2",
    "before_send_offsets:1",
    "after_send_offsets:1",
    "before_commit:1",
)

NOTHING: tuple[list[list[bytes | None]], list[Position | None]] = ([[]] * 6, [None, None])


def die_at(failpoint: str, place: Place) -> None:
    """Run a worker that SIGKILLs itself at the failpoint, and see it dead."""
    assert isinstance(place, EmbeddedPlace | KafkaPlace)
    done = subprocess.run(
        [sys.executable, "-m", "tests.contracts.dying_worker", *place.arguments()],
        env={**os.environ, "NPSTREAM_FAILPOINTS": f"{failpoint}:kill"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("failpoint", BEFORE_THE_DECISION)
def test_killed_before_the_decision_nothing_has_happened(place: Place, log: Log, failpoint: str) -> None:
    """No output, no chunk and no position of the dying commit is ever visible."""
    die_at(failpoint, place)

    assert visible(place, log) == NOTHING


def test_killed_after_the_decision_everything_has_happened(place: Place, log: Log) -> None:
    """The commit counts as if the worker had lived."""
    die_at("after_commit:1", place)

    assert_all_visible_once(place, log)


def test_the_next_worker_repeats_the_commit_of_a_dead_one(place: Place, log: Log) -> None:
    """After a death before the decision the same commit made again is visible exactly once."""
    die_at("before_commit:1", place)
    broker = place.broker()
    joined(broker)
    broker.commit(SHARES)
    broker.abandon()

    assert_all_visible_once(place, log)


def assert_all_visible_once(place: Place, log: Log) -> None:
    """Every part of the commit is there, and nothing twice; markers may take a moment to arrive."""
    eventually(lambda: all(visible(place, log)[0][index] for index in (0, 1, 2, 4, 5)))
    (a, c, dead, none, first, second), positions = visible(place, log)
    assert (a, c, dead, none) == ([b"a"], [b"c", b"d"], [b"dead"], [])
    written = (*SHARES[0].segments, *SHARES[0].chunks, *SHARES[0].changes)
    # A removal is a record without a value, until compaction takes it away.
    assert [value for value in first if value is not None] == [value for _, value in written if value is not None]
    assert second == [value for _, value in SHARES[1].chunks]
    assert [position and position.next_offset for position in positions] == [5, 9]
