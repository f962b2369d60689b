"""Brokers as a test breaks them: one alone, or three that replicate, each from jars with the local Java."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.broker.jar_kafka import JarKafka
from tests.broker.properties import REPLICATED, Node, free_ports, new_cluster_id
from tests.broker.readiness import wait_in_sync

_SIZE = 3
_HEAP_MB = 256


class Cluster:
    """Brokers that hold the same topics. Whatever one of three does, the other two go on serving."""

    def __init__(self, brokers: Sequence[JarKafka]) -> None:
        self.brokers = brokers

    @classmethod
    def of_three(cls, jars: Path, folder: Path, properties: Mapping[str, str] | None = None) -> "Cluster":
        """Three brokers in a folder, not yet started: replication 3, at least 2 replicas in sync."""
        numbers = range(1, _SIZE + 1)
        controllers = dict(zip(numbers, free_ports(_SIZE), strict=True))
        cluster_id, settings = new_cluster_id(), {**REPLICATED, **(properties or {})}
        nodes = [Node(number, controllers, cluster_id) for number in numbers]
        return cls(
            [
                JarKafka(jars, folder / f"broker-{node.number}", properties=settings, node=node, heap_mb=_HEAP_MB)
                for node in nodes
            ]
        )

    @property
    def bootstrap(self) -> str:
        """The plain listeners of all."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    @property
    def size(self) -> int:
        """How many brokers there are, and how many copies of each record."""
        return len(self.brokers)

    def start(self, timeout_s: float = 180.0) -> None:
        """Start those that are down, and return when all serve requests and hold everything."""
        for broker in self.brokers:
            if not broker.running:
                broker.launch()
        for broker in self.brokers:
            broker.wait_ready(timeout_s)
        wait_in_sync(self.bootstrap, self.size, timeout_s)

    def restart(self, index: int, *, kill: bool, away_s: float = 0.0) -> None:
        """End one broker, by SIGKILL or in order, start it again after a while, and wait until all hold everything."""
        broker = self.brokers[index % self.size]
        if kill:
            broker.kill()
        else:
            broker.stop()
        time.sleep(away_s)  # being away is the fault
        self.start()

    def kill(self) -> None:
        """SIGKILL to all. Data and ports stay for the next `start`."""
        for broker in self.brokers:
            broker.kill()

    def close(self) -> None:
        """Kill and forget the data; the logs stay."""
        for broker in self.brokers:
            broker.close()
