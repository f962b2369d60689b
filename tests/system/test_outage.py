"""Brokers that go away and come back."""

from pathlib import Path

import pytest

from tests.broker import Cluster, JarKafka
from tests.system import stories

_AWAY_S = 30.0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_workers_outlive_an_outage_of_the_broker(private_kafka: JarKafka, tmp_path: Path) -> None:
    """
    Away for longer than sessions and transactions last: the processes stay alive,
    come back by themselves, and the decisions are the oracle's.
    """
    stories.outage(Cluster([private_kafka]), tmp_path / "run", away_s=_AWAY_S)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_broker_of_three_may_die_and_another_restart(three_brokers: Cluster, tmp_path: Path) -> None:
    """One is killed, the next one stopped in order when the first is back: the decisions are the oracle's."""
    stories.broker_restarts(three_brokers, tmp_path / "run", kills=(True, False))
