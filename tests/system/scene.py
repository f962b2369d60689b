"""Four topics, a group and its workers on a real broker: where every system test plays."""

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from time import monotonic

from confluent_kafka import Consumer, KafkaError, TopicPartition

from npstream.codec.changes import decode_change
from npstream.codec.chunks import ChangeKey, parse_key
from npstream.errors import Retryable
from npstream.history.audit import audit
from npstream.history.coverage import cover
from npstream.history.rebuild import read_past
from npstream.kafka import KafkaLog
from npstream.kafka.state import KafkaStateReader
from npstream.partition import PartitionConfig
from npstream.records import Channel, KeyValue, Position
from tests.broker import create_topics
from tests.contracts.builders import settled
from tests.contracts.places import topics_of
from tests.system import oracle, patience
from tests.system.process import WorkerProcess
from tests.system.spec import WorkerSpec
from tests.system.stream import Plain, system_config

_SETTLE_S = 120.0
_QUIET = logging.getLogger("tests.system")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


@dataclass
class Scene:
    """One group on topics of its own. `mutant` is a deliberate bug that all its workers run with."""

    bootstrap: str
    folder: Path
    partitions: int = 4
    config: PartitionConfig = field(default_factory=system_config)
    mutant: str | None = None
    name: str = field(default_factory=lambda: f"system-{uuid.uuid4().hex[:8]}")
    workers: list[WorkerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        labels = None if self.config.label_topic is None else self.config.label_topic.name
        self.topics = replace(topics_of(f"{self.name}."), labels=labels)
        self.group = f"{self.name}.group"
        self.folder.mkdir(parents=True, exist_ok=True)
        checkpoints = self.topics.checkpoints
        plain = [name for name in self.topics.names() if name != checkpoints]
        create_topics(self.bootstrap, dict.fromkeys(plain, self.partitions))
        create_topics(self.bootstrap, {checkpoints: self.partitions}, {"cleanup.policy": "compact"})
        self.log = KafkaLog(self.spec("log").kafka(), _QUIET)

    def spec(self, worker_name: str, **changes: object) -> WorkerSpec:
        """A worker of this group; `changes` are fields of `WorkerSpec`."""
        fields: dict[str, object] = {"config": self.config} | changes
        return WorkerSpec(
            bootstrap=self.bootstrap,
            group=self.group,
            worker_name=worker_name,
            topics=self.topics,
            **fields,  # type: ignore[arg-type]
        )

    def worker(self, worker_name: str, **changes: object) -> WorkerProcess:
        """A worker process, not yet started; it ends with the scene."""
        worker = WorkerProcess(self.spec(worker_name, **changes), self.folder, self.mutant)
        self.workers.append(worker)
        return worker

    def append(self, partition: int, events: Sequence[Plain]) -> None:
        """Write events durably."""
        self.log.append(Channel.EVENTS, partition, events)

    def append_labels(self, partition: int, labels: Sequence[Plain]) -> None:
        """Write to the labels topic durably."""
        self.log.append(Channel.LABELS, partition, labels)

    def wait_labelled(self, observation: Callable[[int, int], Plain], timeout_s: float = 120.0) -> None:
        """Send an observation now and then until every label is learned: they are only taken together with one."""
        ends = {p: self.log.ends(Channel.LABELS, p).stable for p in range(self.partitions)}
        sent = count()

        def learned() -> bool:
            labels = {p: None if at is None else at.labels for p, at in self.positions().items()}
            left = [p for p, at in labels.items() if at is None or at.next_label < ends[p]]
            for partition in left:
                self.append(partition, [observation(partition, next(sent))])
            return not left

        patience.wait_until(learned, "every label to be learned", timeout_s)
        self.wait_decided(timeout_s)

    def audit(self) -> int:
        """Audit every partition from its first event; return how many records were reproduced. Raises `Different`."""
        reproduced = 0
        for partition, position in self.positions().items():
            assert position is not None
            past = read_past(self.log, self.group, self.topics.events, partition, None, self.topics.labels)
            coverage = cover(past, None, position.next_offset, position.next_offset)
            if coverage is None:  # nothing but labels so far
                continue
            verdict = audit(past, coverage, position)
            if not (verdict.holds and verdict.proof and coverage.is_whole):
                raise oracle.Different(f"audit of partition {partition}: {verdict}")
            reproduced += verdict.reproduced
        return reproduced

    def ends(self) -> dict[int, int]:
        """Where the events end, by partition."""
        return {p: self.log.ends(Channel.EVENTS, p).stable for p in range(self.partitions)}

    def positions(self) -> dict[int, Position | None]:
        """The stable committed position of each partition; waits for undecided transactions."""
        reader = KafkaStateReader(self.spec("reader").kafka(), _QUIET, lambda: None, lambda: False)
        try:
            return {p: reader.committed(p) for p in range(self.partitions)}
        finally:
            reader.close()

    def offsets(self) -> dict[int, int]:
        """The committed offset of each partition, 0 where there is none; a broker that is away counts as none."""
        try:
            return {p: 0 if at is None else at.next_offset for p, at in self.positions().items()}
        except Retryable:
            return {}

    def decided(self) -> bool:
        """Whether every event written so far is committed."""
        return self.offsets() == self.ends()

    def wait_decided(self, timeout_s: float = 120.0) -> None:
        """Wait until every event is committed and no transaction is open."""

        def check() -> None:
            dead = [worker for worker in self.workers if worker.returncode not in (None, 0)]
            assert not dead, f"{dead[0].name} ended with {dead[0].returncode}\n{dead[0].tail()}"

        patience.wait_until(self.decided, "all events to be decided", timeout_s, check)
        self.wait_settled()

    def wait_settled(self) -> None:
        """Wait until each topic is stable to its end: nothing undecided hides anything."""
        places = [(channel, p) for channel in self.topics.channels() for p in range(self.partitions)]
        patience.wait_until(lambda: settled(self.log, places), "every transaction to be decided", _SETTLE_S)

    def compare(self, changes: dict[int, oracle.Changes] | None = None) -> int:
        """Compare what is published with the oracle; return how many records are equal. Raises `Different`."""
        plain: oracle.Changes = [(0, self.config)]
        every = dict.fromkeys(range(self.partitions), plain) if changes is None else changes
        return oracle.compare(self.log, every, self.group, self.topics.events)

    def changes(self) -> dict[int, oracle.Changes]:
        """The settings of each partition by the offset they count from, as its change records say."""
        return {partition: self._changes(partition) for partition in range(self.partitions)}

    def _changes(self, partition: int) -> oracle.Changes:
        records = [
            KeyValue(record.offset, record.key or b"", record.value)
            for record in oracle.read(self.log, Channel.CHECKPOINTS, partition)
        ]
        changes = [decode_change(record) for record in records if isinstance(parse_key(record.key), ChangeKey)]
        return [(change.offset, PartitionConfig.from_dict(change.new)) for change in changes]

    def replays(self) -> list[int]:
        """The length of each replay that ended on its recorded proof."""
        return [line["replayed"] for worker in self.workers for line in worker.lines("live")]

    def pauses(self) -> list[str]:
        """Why partitions were paused: never, in a correct system."""
        return [line["reason"] for worker in self.workers for line in worker.lines("partition paused")]

    def aborted(self) -> int:
        """Records of the published topics that only a read_uncommitted reader sees."""
        return sum(
            self._count(channel, "read_uncommitted") - self._count(channel, "read_committed")
            for channel in oracle.PUBLISHED
        )

    def _count(self, channel: Channel, isolation: str) -> int:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"{self.group}.count",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.topics.names()[channel], p, 0) for p in range(self.partitions)])
        count, at_end, deadline = 0, 0, monotonic() + _SETTLE_S
        while at_end < self.partitions:
            assert monotonic() < deadline, f"{self.topics.names()[channel]} could not be read to its end"
            for message in consumer.consume(1000, 1.0):
                error = message.error()
                at_end += error is not None and error.code() == KafkaError._PARTITION_EOF
                count += error is None
        consumer.close()
        return count

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.kill()
        self.log.close()
