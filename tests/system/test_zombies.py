"""A worker that wakes up in a transaction after its partition has gone to another."""

from pathlib import Path

import pytest

from tests.broker import Kafka
from tests.system import stories


@pytest.mark.parametrize("point", ["before_send_offsets", "after_send_offsets"])
def test_a_zombie_neither_doubles_nor_loses(kafka: Kafka, tmp_path: Path, point: str) -> None:
    """Stopped beyond its session, it finishes its transaction before anybody else decides, or not at all."""
    stories.zombie(kafka.bootstrap, tmp_path, point)
