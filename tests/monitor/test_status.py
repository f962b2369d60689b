"""The board: readiness, states, windows, and values that never change under a reader."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from npstream.monitor.status import StatusBoard
from npstream.monitor.stillness import STILL_AFTER
from npstream.records import Phase
from tests.monitor.builders import reading

GRACE_S = 60.0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    """Time that moves only when the test says so."""
    return Clock()


@pytest.fixture
def board(clock: Clock) -> StatusBoard:
    """A worker that has just started."""
    return StatusBoard(clock)


def ready(board: StatusBoard, clock: Callable[[], float]) -> bool:
    """What /readyz would say."""
    return board.current.ready(clock(), GRACE_S)


def bring_up(board: StatusBoard, *partitions: int) -> None:
    """Assign and restore partitions that need no replay."""
    board.rebalanced()
    for partition in partitions:
        board.restoring(partition)
        board.restored(partition, 0.1)
        board.replaying(reading(partition=partition))
    board.polled()


def test_a_worker_is_not_ready_before_its_first_poll_returned(board: StatusBoard, clock: Clock) -> None:
    """Subscribing never fails, so nothing is known until a poll has come back."""
    before = ready(board, clock)
    bring_up(board, 0)

    assert (before, ready(board, clock)) == (False, True)


def test_a_partition_must_be_live_before_the_worker_is_ready(board: StatusBoard, clock: Clock) -> None:
    """Restoring and replaying are not ready; live is."""
    board.rebalanced()
    board.restoring(0)
    board.polled()
    said = [ready(board, clock)]
    board.restored(0, 0.1)
    board.replaying(reading(phase=Phase.REPLAYING, next_offset=5, replay_to=9))
    said.append(ready(board, clock))
    board.replaying(reading(phase=Phase.LIVE, next_offset=9, replay_to=9))
    said.append(ready(board, clock))

    assert said == [False, False, True]


def test_a_member_without_partitions_is_ready_once_it_knows(board: StatusBoard, clock: Clock) -> None:
    """A standby is ready when the group has responded, or has had ten seconds to."""
    board.polled()
    joining = ready(board, clock)
    clock.wait(10)
    silent = ready(board, clock)
    board.rebalanced()

    assert (joining, silent, ready(board, clock)) == (False, True, True)


def test_a_rebalance_has_a_grace(board: StatusBoard, clock: Clock) -> None:
    """A ready worker that gets another partition stays ready for the grace time, and no longer."""
    bring_up(board, 0)
    clock.wait(1000)
    board.restoring(1)
    said = [ready(board, clock)]
    clock.wait(GRACE_S - 1)
    said.append(ready(board, clock))
    clock.wait(2)
    said.append(ready(board, clock))
    board.restored(1, 61.0)
    board.replaying(reading(partition=1))
    said.append(ready(board, clock))

    assert said == [True, True, False, True]


def test_a_reset_is_waited_out_like_a_rebalance(board: StatusBoard, clock: Clock) -> None:
    """While brokers are away a worker stays ready for the grace time; back again it is ready at once."""
    bring_up(board, 0)
    board.session_ended("_TRANSPORT")
    said = [ready(board, clock)]
    clock.wait(GRACE_S + 1)
    said.append(ready(board, clock))
    bring_up(board, 0)
    said.append(ready(board, clock))

    assert said == [True, False, True]
    assert (board.current.session_restarts, board.current.last_restart) == (1, "_TRANSPORT")


def test_a_paused_partition_does_not_hold_up_a_rollout(board: StatusBoard, clock: Clock) -> None:
    """It waits for an operator, whom an alert calls; the reason is kept."""
    bring_up(board, 0)
    board.restoring(1)
    board.paused(1, "snapshot damaged")
    board.polled()

    assert ready(board, clock)
    assert (board.current.paused(), board.current.partitions[1].reason) == (1, "snapshot damaged")


def test_a_reader_keeps_what_it_has_read(board: StatusBoard) -> None:
    """What was put up before does not change when the worker goes on."""
    bring_up(board, 0)
    seen = board.current
    board.observed(reading(next_offset=10, negatives=10, false_alarms=2), 123)
    board.committed()
    board.polled()
    board.released(0)

    assert seen.partitions[0].reading == reading()
    assert seen.transactions == 0
    assert dict(board.current.partitions) == {}


def test_a_commit_is_shown_after_the_next_poll(board: StatusBoard, clock: Clock) -> None:
    """Its reading, the checkpoint and the event time reached come with it."""
    bring_up(board, 0)
    board.processed(0, 1234)
    clock.wait(5)
    board.committed()
    committed = reading(next_offset=100, saved_offset=100, negatives=80, false_alarms=8, positives=20)
    board.observed(committed, 999)
    assert board.current.partitions[0].reading == reading()
    board.polled()
    known = board.current.partitions[0]

    assert known.reading == committed
    assert (known.last_timestamp_ms, known.checkpoint_bytes, known.checkpoint_at) == (1234, 999, clock.now)
    assert board.current.transactions == 1


def test_the_checkpoint_ages_only_while_events_are_not_covered(board: StatusBoard, clock: Clock) -> None:
    """An idle partition has nothing to save, however old its snapshot."""
    bring_up(board, 0)
    clock.wait(50)
    board.observed(reading(next_offset=10, saved_offset=0), 0)
    late = board._get(0)
    board.observed(reading(next_offset=10, saved_offset=10), 500)
    covered = board._get(0)
    clock.wait(50)

    assert late.checkpoint_age(clock.now) == 100.0
    assert covered.checkpoint_age(clock.now) == 0.0
    assert replace(covered, reading=None).checkpoint_age(clock.now) == 0.0


@pytest.mark.parametrize(
    ("preset", "learning", "threshold_moves", "gamma_moves", "pinned"),
    [
        ("plus", True, True, True, False),
        ("plus", True, False, True, True),
        ("plus", True, True, False, True),
        ("plus", False, False, False, False),
        ("paper", True, False, True, False),
        ("paper", True, False, False, True),
        ("external", True, True, False, False),
        ("external", True, False, False, True),
    ],
)
def test_a_pinned_threshold_is_seen(
    board: StatusBoard, preset: str, learning: bool, threshold_moves: bool, gamma_moves: bool, pinned: bool
) -> None:
    """Only what should move counts: not the paper's threshold, not an external score's gamma, nothing when frozen."""
    bring_up(board, 0)
    for n in range(0, STILL_AFTER + 200, 100):
        known = board.observed(
            reading(
                preset=preset,
                learning=learning,
                negatives=n,
                threshold=float(n if threshold_moves else 0),
                gamma=float(n if gamma_moves else 1),
            ),
            0,
        )

    assert known.pinned is pinned
