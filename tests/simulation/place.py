"""The third place where the contract is tested: a cluster in memory, by the machine's clock."""

from dataclasses import dataclass, field

from npstream.port import Broker, Log, StateReader
from npstream.records import Channel, Topics
from tests.simulation.broker import SimulatedBroker
from tests.simulation.clock import RealSeconds
from tests.simulation.cluster import Cluster
from tests.simulation.reading import SimulatedLog, SimulatedStateReader
from tests.simulation.requests import Undisturbed


@dataclass
class SimulatedPlace:
    """Topics in a cluster of its own."""

    topics: Topics
    group: str
    cluster: Cluster = field(default_factory=lambda: Cluster(RealSeconds()))

    def create(self, partitions: int = 3) -> "SimulatedPlace":
        for name in self.topics.names():
            self.cluster.create(name, partitions, compacted=name == self.topics.checkpoints)
        return self

    def broker(self) -> Broker:
        return self._broker("a", static=True)

    def dynamic(self) -> Broker:
        return self._broker("a", static=False)

    def tool(self) -> Broker:
        return self._broker("tool", static=False)

    def _broker(self, name: str, *, static: bool) -> SimulatedBroker:
        return SimulatedBroker(self.cluster, self.topics, self.group, name, Undisturbed(self.cluster), static=static)

    def log(self) -> Log:
        return SimulatedLog(self.cluster, self.topics, Undisturbed(self.cluster))

    def state(self) -> StateReader:
        return SimulatedStateReader(self.cluster, self.topics, self.group, Undisturbed(self.cluster))

    def trim(self, partition: int, before: int, channel: Channel = Channel.EVENTS) -> None:
        self.cluster.partition(self.topics.names()[channel], partition).delete(before)

    def with_topics(self, topics: Topics) -> "SimulatedPlace":
        return SimulatedPlace(topics, self.group, self.cluster)

    def leave(self) -> None:
        """Nothing outlives the test."""
