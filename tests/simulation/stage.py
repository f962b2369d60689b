"""The group of a simulation: its cluster, the events that come, and what must have been published in the end."""

from collections import Counter
from dataclasses import replace
from functools import lru_cache

from npstream.partition import LabelConfig, PartitionConfig
from npstream.port import Broker, Log
from npstream.records import Channel, Record, Topics
from npstream.worker import Cadence, Origin
from tests.contracts.builders import settled
from tests.partition.builders import config, two_topics, with_labels_topic
from tests.simulation.broker import SimulatedBroker
from tests.simulation.clock import Seconds
from tests.simulation.cluster import Cluster
from tests.simulation.reading import SimulatedLog, SimulatedStateReader
from tests.simulation.requests import Requests, Undisturbed
from tests.simulation.schedule import Schedule
from tests.system import oracle

GROUP = "group"
_STREAMS = 8
_LENGTH = 400
_RUBBISH = (b"k", b"of an aborted transaction", (), 1_000)


@lru_cache(maxsize=2 * _STREAMS)
def _stream(number: int) -> tuple[list[Record], list[Record]]:
    """Events of one partition, and labels for a topic of their own."""
    return two_topics(_LENGTH, number)


class Stage:
    """Made from a schedule: nothing in it depends on anything else."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.clock = Seconds()
        self.cluster = Cluster(self.clock, schedule.compact_every)
        self.topics = Topics("events", "decisions", "dead", "checkpoints", "labels" if schedule.labels else None)
        for name in self.topics.names():
            self.cluster.create(name, schedule.partitions, compacted=name == self.topics.checkpoints)
        self._partitions = range(schedule.partitions)
        self._places = [(channel, p) for channel in self.topics.channels() for p in self._partitions]
        self._plain = Undisturbed(self.cluster)
        self.log = SimulatedLog(self.cluster, self.topics, self._plain)
        self._state = SimulatedStateReader(self.cluster, self.topics, GROUP, self._plain)
        self._fed = 0
        self._labelled = Counter[int]()
        small = LabelConfig(buffer_max=12, expire_events=40, corrections=schedule.corrections)
        made = with_labels_topic if schedule.labels else config
        self.config: PartitionConfig = made(labels=small, dead_letter_cap=1.0)

    def retune(self, tau: float) -> None:
        """Other settings for workers that start from now on."""
        self.config = self.config.with_params(replace(self.config.params, tau=tau))

    def origin(self) -> Origin:
        """What a worker that starts now makes of a partition."""
        cadence = Cadence(every_events=self._schedule.checkpoint_every, every_seconds=30.0)
        return Origin(GROUP, self.topics.events, self.config, cadence)

    def connect(self, worker: int, requests: Requests) -> tuple[Broker, Log]:
        """The clients of a worker."""
        broker = SimulatedBroker(self.cluster, self.topics, GROUP, f"w{worker}", requests, static=self._schedule.static)
        return broker, SimulatedLog(self.cluster, self.topics, requests)

    def feed(self, count: int, aborted: int = 0) -> None:
        """The next events of each partition, and the labels that have come by their time."""
        end = min(self._fed + count, _LENGTH)
        for partition in self._partitions:
            if aborted:
                self._feed_in_vain(partition, aborted)
            events, labels = _stream((self._schedule.seed + partition) % _STREAMS)
            self._append(Channel.EVENTS, partition, events[self._fed : end])
            if self._schedule.labels and end:
                begin, now_ms = self._labelled[partition], events[end - 1].timestamp_ms
                due = [label for label in labels[begin:] if label.timestamp_ms <= now_ms]
                self._append(Channel.LABELS, partition, due)
                self._labelled[partition] += len(due)
        self._fed = end

    def _append(self, channel: Channel, partition: int, records: list[Record]) -> None:
        self.log.append(channel, partition, [(r.key, r.value, r.headers, r.timestamp_ms) for r in records])

    def _feed_in_vain(self, partition: int, count: int) -> None:
        transactions = self.cluster.transactions
        epoch = transactions.initialise("producer")
        transaction = transactions.begin("producer", epoch, self.clock())
        for _ in range(count):
            self.cluster.write(transaction, self.topics.events, partition, *_RUBBISH)
        transactions.decide("producer", epoch, committed=False)

    def decided(self) -> bool:
        """Whether every event is committed."""
        return all(self._next_offset(p) == self._end(p) for p in self._partitions)

    def _next_offset(self, partition: int) -> int:
        position = self._state.committed(partition)
        return 0 if position is None else position.next_offset

    def _end(self, partition: int) -> int:
        """The offset after the last event that was not aborted."""
        events = list(oracle.read(self.log, Channel.EVENTS, partition))
        return events[-1].offset + 1 if events else 0

    def check(self) -> int:
        """Everything published is what the oracle says, and nothing is open; returns how many records are equal."""
        changes = {partition: oracle.changes(self.log, partition) for partition in self._partitions}
        equal = oracle.compare(self.log, changes, GROUP, self.topics.events)
        assert self.decided(), "a committed offset is not the end of its events"
        assert settled(self.log, self._places), "a transaction is still open"
        return equal
