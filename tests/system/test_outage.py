"""A broker that goes away and comes back."""

from pathlib import Path

import pytest

from tests.broker import JarKafka
from tests.system import stories


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_workers_outlive_an_outage_of_the_broker(private_kafka: JarKafka, tmp_path: Path) -> None:
    """Away for a minute: the processes stay alive, come back by themselves, and the decisions are the oracle's."""
    stories.outage(private_kafka, tmp_path / "run", away_s=60.0)
