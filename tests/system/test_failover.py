"""The failover proof, short version; `make failover` runs the long one."""

from pathlib import Path

import pytest

from npstream.failpoints import NAMES
from tests.broker import JarKafka
from tests.system.failover import Failover, run_failover
from tests.system.faults import STOP_POINTS

SEED = 20_261_116


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_whatever_dies_the_decisions_are_those_of_an_undisturbed_run(private_kafka: JarKafka, tmp_path: Path) -> None:
    """
    Three workers are killed at every named point and stopped beyond their session
    around offsets and commit, the broker is killed too: decisions and dead letters
    equal the oracle's in key, value, headers and timestamp.
    """
    result = run_failover(Failover(seed=SEED), private_kafka, tmp_path / "run")
    print(result)

    assert result.killed == set(NAMES)
    assert result.stopped == set(STOP_POINTS)
    assert result.replays > 0
    assert result.aborted > 0  # the kill after the flush alone leaves delivered records without a commit
