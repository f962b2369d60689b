"""The failover proof, short version; `make failover` runs the long one."""

from pathlib import Path

import pytest

from npstream.failpoints import NAMES
from tests.broker import Cluster, JarKafka
from tests.system.failover import Failover, run_failover
from tests.system.faults import STOP_POINTS
from tests.system.routing import KILLS

SEED = 20_261_116


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_whatever_dies_the_decisions_are_those_of_an_undisturbed_run(private_kafka: JarKafka, tmp_path: Path) -> None:
    """
    Three workers are killed at every named point and stopped beyond their session
    around offsets and commit, the broker is killed too: decisions and dead letters
    equal the oracle's in key, value, headers and timestamp.
    """
    result = run_failover(Failover(seed=SEED), Cluster([private_kafka]), tmp_path / "run")
    print(result)

    assert result.killed == set(NAMES)
    assert result.stopped == set(STOP_POINTS)
    assert result.replays > 0
    assert result.aborted > 0  # the kill after the flush alone leaves delivered records without a commit


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_with_two_topics_the_decisions_are_those_of_a_run_that_follows_their_merge(
    private_kafka: JarKafka, tmp_path: Path
) -> None:
    """
    The same with labels on a topic of their own: decisions and dead letters equal
    those of an undisturbed run that follows the recorded merge, audit proves all of
    them, and every label is learned in the end.
    """
    result = run_failover(Failover(seed=SEED + 1, label_topic=True), Cluster([private_kafka]), tmp_path / "run")
    print(result)

    assert result.killed == set(NAMES)
    assert result.stopped == set(STOP_POINTS)
    assert result.replays > 0
    assert result.aborted > 0


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_with_a_router_in_between_nothing_is_lost_or_doubled_either(private_kafka: JarKafka, tmp_path: Path) -> None:
    """
    The same with labels that are written to a foreign topic of fewer partitions, and copied from there by a
    router which is killed at every point that it passes, while workers and broker die as before.
    """
    result = run_failover(
        Failover(seed=SEED + 2, label_topic=True, router=True), Cluster([private_kafka]), tmp_path / "run"
    )
    print(result)

    assert set(result.router_kills) == set(KILLS)
    assert result.killed == set(NAMES)
    assert result.stopped == set(STOP_POINTS)
    assert result.replays > 0
