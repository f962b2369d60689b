"""The benchmark of many partitions, with few."""

import pytest
from confluent_kafka.admin import AdminClient

from npstream.bench.partitions import PartitionsBench, bench_partitions
from tests.broker import Kafka
from tests.stage import patience


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_worker_comes_back_and_every_partition_has_its_events(kafka: Kafka) -> None:
    """Both lives end, and nothing stays behind."""
    row = bench_partitions(PartitionsBench(kafka.bootstrap, count=3, idle_s=0.2, rounds=2))

    assert row["partitions"] == 3
    assert 0 <= row["restored_s"] <= row["live_s"]
    assert min(row[name] for name in ("idle_turn_us", "us_per_single_event")) > 0
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    patience.wait_until(lambda: not _left(admin), "its topics to be gone")


def _left(admin: AdminClient) -> list[str]:
    return [name for name in admin.list_topics(timeout=10).topics if name.startswith("npstream-bench-partitions")]
