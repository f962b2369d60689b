"""Partitions added to a topic under load: workers with static membership serve them, restarted or not."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from npstream.cli import exits
from npstream.kafka import KafkaLog
from npstream.kafka.admin import Admin
from npstream.records import Channel
from tests.broker import Kafka
from tests.contracts.builders import eventually
from tests.monitor.builders import events
from tests.stage.command import WorkerCommand, npstream
from tests.stage.site import Site

pytestmark = pytest.mark.timeout(600)

OLD, NEW = 2, 4
FIRST = 500
_SLOW_S = 120.0
_RESTARTS_MAX = 3
"""Of all workers together: one leaves for the others' sake, and on a slow machine a commit may meet the rebalance."""


@pytest.fixture
def site(kafka: Kafka, tmp_path: Path) -> Iterator[Site]:
    """Two partitions and a group nobody has used."""
    made = Site(kafka.bootstrap, tmp_path / "site", partitions=OLD)
    yield made
    made.close()


def decisions(site: Site, partition: int) -> int:
    """How many events of a partition are decided."""
    return sum(1 for _ in site.log.read(Channel.DECISIONS, partition, 0, 2**40))


def grow(site: Site) -> None:
    """More partitions for the events; those of the other topics come with `npstream init`."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    for grown in admin.create_partitions([NewPartitions(site.topics.events, NEW)]).values():
        grown.result(timeout=30)
    eventually(lambda: site.log.partitions(Channel.EVENTS) == NEW)


def feed_new(site: Site) -> None:
    """Events for the new partitions, by a client that has not known the topic without them."""
    at_ms = int(time.time() * 1000)
    with closing(KafkaLog(site.place.config())) as log:
        for partition in range(OLD, NEW):
            values = events(FIRST, seed=10 + partition)
            log.append(Channel.EVENTS, partition, [(None, value, (), at_ms) for value in values])


class Load:
    """Events for the old partitions, now and then, until it ends."""

    def __init__(self, site: Site) -> None:
        self._site, self._over = site, threading.Event()
        self.sent = FIRST
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._over.wait(0.1):
            for partition in range(OLD):
                self._site.feed(events(20, seed=self.sent + partition), partition)
            self.sent += 20

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def fixes(worker: WorkerCommand) -> set[str]:
    """What the doctor would have done about errors."""
    found = orjson.loads(npstream("doctor", "--config", str(worker.config), "--json").stdout)["findings"]
    return {finding["fix"] for finding in found if finding["level"] == "error"}


def restart(*workers: WorkerCommand) -> None:
    """Stop these together, then start them again, well within their session."""
    for worker in workers:
        assert worker.terminate() == exits.OK, worker.said()
    for worker in workers:
        worker.start()


@pytest.mark.parametrize("restarted", ["not at all", "first", "one by one", "all at once"])
def test_new_partitions_are_served_and_the_old_ones_do_not_notice(site: Site, restarted: str) -> None:
    """No session restarts again and again; what the old partitions decide is what it would have been."""
    for partition in range(OLD):
        site.feed(events(FIRST, seed=partition), partition)
    workers = [site.command(f"worker-{n}").start() for n in range(2)]
    eventually(lambda: all(decisions(site, partition) == FIRST for partition in range(OLD)))
    admin = Admin(site.place.config())
    eventually(lambda: [len(member.partitions) for member in admin.group().members] == [1, 1])
    with Load(site) as load:
        grow(site)
        init = npstream("init", "--config", str(workers[0].config))
        assert init.returncode == exits.OK, init.stderr
        feed_new(site)
        began = time.monotonic()
        if restarted == "first":
            restart(workers[0])
        elif restarted == "one by one":
            restart(workers[0])
            restart(workers[1])
        elif restarted == "all at once":
            restart(*workers)
        eventually(lambda: all(decisions(site, partition) == FIRST for partition in range(OLD, NEW)), _SLOW_S)
        print(f"new partitions were decided {time.monotonic() - began:.1f} s after they were there")
    eventually(lambda: all(decisions(site, partition) == load.sent for partition in range(OLD)))
    said = [line["cause"] for worker in workers for line in worker.lines("session restart")]
    codes = [worker.terminate() for worker in workers]

    assert codes == [exits.OK, exits.OK]
    assert len(said) <= _RESTARTS_MAX, said
    audit = npstream("audit", "--config", str(workers[0].config))
    assert audit.returncode == exits.OK, audit.stdout + audit.stderr


def test_a_partition_that_came_before_its_outputs_waits_for_them(site: Site) -> None:
    """The worker says what to do, and goes on by itself when it was done."""
    worker = site.command().start()
    worker.wait_started()
    worker.wait_for(lambda: len(worker.lines("assigned")) == OLD, "its partitions")
    grow(site)
    worker.wait_for(lambda: len(worker.lines("partition waits")) == NEW - OLD, "the new partitions to be given to it")
    for partition in range(OLD):
        site.feed(events(FIRST, seed=partition), partition)
    feed_new(site)
    eventually(lambda: all(decisions(site, partition) == FIRST for partition in range(OLD)))
    assert fixes(worker) == {"run `npstream init`, which does it"}
    init = npstream("init", "--config", str(worker.config))
    assert init.returncode == exits.OK, init.stderr
    eventually(lambda: all(decisions(site, partition) == FIRST for partition in range(NEW)))
    assert fixes(worker) == set()

    states = {partition["partition"]: partition["phase"] for partition in worker.status()["partitions"]}
    assert worker.terminate() == exits.OK, worker.said()
    assert states == dict.fromkeys(range(NEW), "live")
    assert "run `npstream init`" in worker.lines("partition waits")[0]["reason"]
    assert worker.lines("session restart") == []
