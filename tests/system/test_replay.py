"""What a worker does between the checkpoint it starts from and the offset that is committed."""

from pathlib import Path

from tests.broker import Kafka
from tests.system import stories


def test_a_worker_killed_while_it_replays_starts_over(kafka: Kafka, tmp_path: Path) -> None:
    """A replay publishes and commits nothing, ends at the committed offset exactly, and on the recorded proof."""
    replays = stories.killed_while_replaying(kafka.bootstrap, tmp_path)

    assert len(replays) == 1
    assert replays[0] >= 100
