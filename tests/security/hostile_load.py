"""How hostile records in one partition touch the latency of the others.

    python -m tests.security.hostile_load --kafka localhost:9092

A steady load on three partitions; after a calm part each kind of hostile record
goes to partition 0, one a second. Prints the time from an event to its decision
in the other two partitions, calm and under attack, and their ratio.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from npstream.records import Channel
from tests.monitor.builders import events
from tests.security.test_hostile_records import BOMB, DEAD_LETTERS, PARTITIONS, send
from tests.stage.site import Site

_RATE = 200
"""Events a second in each partition."""
_CALM_S = 15.0
_WAIT_S = 30.0


class Load:
    """Sends events of this moment until it is asked to stop; `sent` counts each partition's."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._site.bootstrap, "linger.ms": 1})
        values = events(1000)
        began = time.monotonic()
        while not self._stop.wait(max(0.0, began + self.sent / _RATE - time.monotonic())):
            for partition in range(PARTITIONS):
                producer.produce(self._site.topics.events, values[self.sent % 1000], partition=partition)
            self.sent += 1
            producer.poll(0)
        producer.flush(_WAIT_S)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


class Latencies:
    """Reads the decisions of the untouched partitions as they come."""

    def __init__(self, site: Site) -> None:
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": site.bootstrap,
                "group.id": f"{site.name}.latency",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 5,
            }
        )
        topic = site.topics.decisions
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(1, PARTITIONS)])
        self.seen: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Latencies":
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(100, 0.005):
                now = time.time()
                if message.error() is None:
                    self.seen.append((now, 1000 * now - message.timestamp()[1]))

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def between(self, begin: float, end: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Milliseconds from event to decision, of the decisions that came in this time."""
        return np.array([latency for at, latency in self.seen if begin <= at < end])


def main() -> None:
    """Run it once and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="localhost:9092")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(options.kafka, Path(folder), partitions=PARTITIONS)
        worker = site.command().start()
        worker.wait_started()
        worker.wait_for(lambda: len(worker.lines("assigned")) == PARTITIONS, "its partitions")
        with Load(site) as load, Latencies(site) as latencies:
            worker.wait_for(lambda: len(latencies.seen) > _RATE, "the first decisions")
            calm = time.time()
            time.sleep(_CALM_S)
            attack = time.time()
            for hostile in (*DEAD_LETTERS, BOMB):
                send(site, hostile)
                time.sleep(1.0)
            over = time.time()
        time.sleep(1.0)
        sent = load.sent
        worker.wait_for(lambda: all(_decided(site, p) == sent for p in (1, 2)), "all events to be decided")
        for name, begin, end in (("calm", calm, attack), ("under attack", attack, over)):
            found = latencies.between(begin, end)
            print(
                f"{name}: {found.size} decisions, p50 {np.quantile(found, 0.5):.0f} ms, "
                f"p99 {np.quantile(found, 0.99):.0f} ms, max {found.max():.0f} ms"
            )
        before, during = latencies.between(calm, attack), latencies.between(attack, over)
        for q in (0.5, 0.99):
            print(f"ratio at p{100 * q:g}: {np.quantile(during, q) / np.quantile(before, q):.2f}")
        print(
            f"decided in partitions 1 and 2: {sent} of {sent} each; dead letters of partition 0: "
            f"{sum(1 for _ in site.log.read(Channel.DEAD_LETTERS, 0, 0, 2**40))}; paused: "
            f"{[line['partition'] for line in worker.lines('partition paused')]}; "
            f"sessions restarted: {len(worker.lines('session restart'))}"
        )
        site.close()


def _decided(site: Site, partition: int) -> int:
    return sum(1 for _ in site.log.read(Channel.DECISIONS, partition, 0, 2**40))


if __name__ == "__main__":
    main()
