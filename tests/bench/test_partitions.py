"""The benchmark of many partitions, with few."""

import pytest
from confluent_kafka.admin import AdminClient

from npstream.bench.partitions import PartitionsBench, bench_partitions
from tests.broker import Kafka


@pytest.mark.slow
def test_a_killed_worker_comes_back_and_every_partition_has_its_events(kafka: Kafka) -> None:
    """Both lives end, and nothing stays behind."""
    row = bench_partitions(PartitionsBench(kafka.bootstrap, count=3, idle_s=0.2, rounds=2))

    assert row["partitions"] == 3
    assert 0 <= row["restored_s"] <= row["live_s"]
    assert min(row[name] for name in ("idle_turn_us", "us_per_single_event")) > 0
    left = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0}).list_topics(timeout=10).topics
    assert not [name for name in left if name.startswith("npstream-bench-partitions")]
