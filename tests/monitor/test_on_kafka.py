"""What only a real broker shows: marks of transactions, stuck ones, partitions that move."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer
from structlog.testing import capture_logs

from npstream.model import ALGORITHM
from npstream.monitor.dashboard import Dashboard, HttpConfig
from npstream.monitor.lag import LagWatch
from npstream.monitor.status import Identity, PartitionStatus
from npstream.monitor.stuck import StuckWatch
from npstream.records import Channel, Phase
from npstream.worker import Cadence, Limits, Origin, Worker
from npstream.worker.warm import warm_up
from tests.broker import Kafka
from tests.monitor.builders import config, events, reading
from tests.stage.places import KafkaPlace, topics_of
from tests.stage.running import RunningWorker

_WAIT_S = 60.0


@pytest.fixture
def place(kafka: Kafka, topic_prefix: str) -> Iterator[KafkaPlace]:
    """Four fresh topics of two partitions, and a group nobody has used."""
    made = KafkaPlace(kafka.bootstrap, topics_of(topic_prefix), topic_prefix + "group").create(2)
    yield made
    made.leave()


def upstream(place: KafkaPlace, topic: str | None = None) -> Producer:
    """A transactional producer with two records in an open transaction on partition 0, by default of the events."""
    producer = Producer({"bootstrap.servers": place.bootstrap, "transactional.id": place.group + "-upstream"})
    producer.init_transactions(10)
    producer.begin_transaction()
    for value in (b"one", b"two"):
        producer.produce(topic or place.topics.events, value, b"key", partition=0)
    producer.flush(10)
    return producer


def watch(place: KafkaPlace, position: int, stuck_s: float) -> LagWatch:
    """A watch over partition 0, whose owner is at `position`."""
    stuck = StuckWatch(place.topics, stuck_s)
    owned = {0: PartitionStatus(0, Phase.LIVE, time.monotonic(), reading=reading(next_offset=position))}
    return LagWatch(place.log, lambda: owned, time.monotonic, time.time, stuck)


def test_the_marks_of_transactions_are_no_lag(place: KafkaPlace) -> None:
    """An owner that has read all there is, one offset before the end, has no lag."""
    upstream(place).commit_transaction(10)
    idle, late = watch(place, 2, 60.0), watch(place, 1, 60.0)
    for looking in (idle, late):
        _until(lambda watch=looking: _end(watch) == 3)
        looking.look()

    assert (idle.lags()[0].end, idle.lags()[0].records, idle.lags()[0].seconds) == (3, 0, 0.0)
    assert late.lags()[0].records == 2
    assert 0 < late.lags()[0].seconds < _WAIT_S


def test_an_open_transaction_holds_the_end_back_and_is_called_stuck_in_time(place: KafkaPlace) -> None:
    """What is not decided is no lag; beyond the limit the log names it once, with the remedy, until it ends."""
    producer = upstream(place)
    patient, quick = watch(place, 0, 60.0), watch(place, 0, 0.0)
    with capture_logs() as lines:
        for looking in (patient, patient, quick, quick, quick):
            looking.look()
        held = patient.lags()[0], quick.lags()[0]
        producer.commit_transaction(10)
        _until(lambda: _end(quick) == 3)

    said, over = lines
    assert (said["event"], said["topic"], said["partition"]) == ("stuck transaction", place.topics.events, 0)
    assert said["offset"] == 0
    assert "kafka-transactions.sh" in said["remedy"]
    assert over["event"] == "transaction no longer stuck"
    assert [(lag.records, lag.end, lag.stuck) for lag in held] == [(0, 0, False), (0, 0, True)]
    assert not quick.lags()[0].stuck


def test_a_transaction_that_a_restore_waits_for_is_named(place: KafkaPlace) -> None:
    """A partition that is being restored has no position yet; what holds its checkpoints back is reported."""
    producer = upstream(place, place.topics.checkpoints)
    owned = {0: PartitionStatus(0, Phase.RESTORING, time.monotonic())}
    looking = LagWatch(place.log, lambda: owned, time.monotonic, time.time, StuckWatch(place.topics, 0.0))
    with capture_logs() as lines:
        looking.look()
        looking.look()
        owned.clear()  # revoked: that says nothing about the transaction
        looking.look()
    producer.abort_transaction(10)

    assert [(line["event"], line["topic"]) for line in lines] == [("stuck transaction", place.topics.checkpoints)]


@contextmanager
def worker(place: KafkaPlace, worker_name: str) -> Iterator[Dashboard]:
    """A worker with its dashboard, until the block ends."""
    stop = threading.Event()
    identity = Identity(place.group, place.topics.events, worker_name, "0.0.0", ALGORITHM)
    dashboard = Dashboard(HttpConfig("127.0.0.1", 0), identity, time.monotonic, time.time, place.log)
    runs = Worker(
        lambda: (place.kafka_broker(worker_name), place.log()),
        Origin(place.group, place.topics.events, config(), Cadence()),
        Limits(),
        time.monotonic,
        stop,
        dashboard.observer,
    )
    warm_up(config())
    dashboard.start()
    try:
        with RunningWorker(runs, stop):
            yield dashboard
    finally:
        dashboard.stop()


def test_a_partition_that_moves_leaves_one_dashboard_and_comes_to_the_other(place: KafkaPlace) -> None:
    """Both stay ready through the rebalance, and each shows what it owns."""
    log = place.log()
    for partition in range(2):
        log.append(Channel.EVENTS, partition, [(None, value, (), int(time.time() * 1000)) for value in events(50)])
    with worker(place, "a") as first:
        _until(lambda: _events(first) == {0: 50, 1: 50})
        alone = first.status()
        with worker(place, "b") as second:
            said_ready: list[bool] = []
            _until(lambda: _note(said_ready, first) and len(_events(second)) == 1 and second.status()["ready"])
            owned = _events(first), _events(second)
            rebalanced = first.status()

    assert alone["ready"]
    assert [p["lag_records"] in (0, None) for p in alone["partitions"]] == [True, True]
    assert all(said_ready)
    assert owned[0] | owned[1] == {0: 50, 1: 50}
    assert [len(part) for part in owned] == [1, 1]
    assert rebalanced["rebalances"] > alone["rebalances"] >= 1


def _end(watch: LagWatch) -> int:
    """The stable end as it is now."""
    watch.look()
    return watch.lags()[0].end


def _events(dashboard: Dashboard) -> dict[int, int]:
    """Events handled by partition, of partitions that are live."""
    return {p["partition"]: p["events"] for p in dashboard.status()["partitions"] if p["phase"] == "live"}


def _note(said: list[bool], dashboard: Dashboard) -> bool:
    """Write down whether a worker calls itself ready now."""
    said.append(dashboard.status()["ready"])
    return True


def _until(holds: Any) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {_WAIT_S:g} s"
        time.sleep(0.05)
