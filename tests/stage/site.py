"""A group on a Kafka broker whose workers are processes of their own, which may be stopped and killed."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from npstream.codec.chunks import join
from npstream.codec.snapshot import decode_snapshot
from npstream.errors import Retryable
from npstream.kafka import KafkaLog
from npstream.kafka.state import KafkaStateReader
from npstream.partition import PartitionConfig
from npstream.records import Channel, Position
from tests.contracts.builders import read_checkpoint, settled
from tests.stage import patience
from tests.stage.child import Child
from tests.stage.command import WorkerCommand
from tests.stage.places import QUIET, KafkaPlace, topics_of
from tests.stage.process import WorkerProcess
from tests.stage.spec import WorkerSpec
from tests.system.stream import Plain, system_config

_SETTLE_S = 120.0
PATIENT: Mapping[str, Any] = {
    "session_timeout_ms": 10_000,
    "transaction_timeout_ms": 20_000,
    "connect_timeout_ms": 30_000,
}
"""Quick to notice that a worker is gone, patient with a slow machine."""


@dataclass
class Site:
    """
    Fresh topics as `npstream init` makes them. Workers end with `close`: a `command` is `npstream run` with settings,
    a `worker` has `config`, limits of its own and, where the site has one, a `mutant`: a deliberate bug.
    """

    bootstrap: str
    folder: Path
    partitions: int = 1
    config: PartitionConfig = field(default_factory=system_config)
    mutant: str | None = None
    name: str = field(default_factory=lambda: f"site-{uuid.uuid4().hex[:8]}")
    replication: int = 1

    def __post_init__(self) -> None:
        labels = None if self.config.label_topic is None else self.config.label_topic.name
        self.topics = replace(topics_of(f"{self.name}."), labels=labels)
        self.group = f"{self.name}.group"
        self.place = KafkaPlace(self.bootstrap, self.topics, self.group, client=PATIENT)
        self.place.create_plain(self.partitions, self.replication)
        self.log: KafkaLog = self.place.log()
        self.commands: list[WorkerCommand] = []
        self.workers: list[WorkerProcess] = []
        self.folder.mkdir(parents=True, exist_ok=True)

    def settings(self, worker_name: str) -> dict[str, Any]:
        """A settings file's content."""
        return {**self.place.settings(worker_name), "model": {"d": 2, "D": 8, "tau": 0.1}, "http": {"port": 0}}

    def command(self, worker_name: str = "worker-0", **sections: Any) -> WorkerCommand:
        """An `npstream run`, not yet started; `sections` are added to, or replace, those of its settings."""
        command = WorkerCommand(self.folder, worker_name, {**self.settings(worker_name), **sections})
        self.commands.append(command)
        return command

    def spec(self, worker_name: str, **changes: Any) -> WorkerSpec:
        """A worker of this group; `changes` are fields of `WorkerSpec`."""
        where = {"bootstrap": self.bootstrap, "group": self.group, "topics": self.topics, "config": self.config}
        return WorkerSpec(worker_name=worker_name, **{**where, **changes})

    def worker(self, worker_name: str, **changes: Any) -> WorkerProcess:
        """A worker process, not yet started; `changes` are fields of `WorkerSpec`."""
        worker = WorkerProcess(self.spec(worker_name, **changes), self.folder, self.mutant)
        self.workers.append(worker)
        return worker

    def feed(self, values: Sequence[bytes], partition: int = 0) -> None:
        """Append events, durably, of this moment: the topic keeps them for a week of their own time."""
        at_ms = int(time.time() * 1000)
        self.log.append(Channel.EVENTS, partition, [(None, value, (), at_ms) for value in values])

    def append(self, partition: int, events: Sequence[Plain], channel: Channel = Channel.EVENTS) -> None:
        """Write events, or labels, durably."""
        self.log.append(channel, partition, events)

    def ends(self) -> dict[int, int]:
        """Where the events end, by partition."""
        return {p: self.log.ends(Channel.EVENTS, p).stable for p in range(self.partitions)}

    def positions(self) -> dict[int, Position | None]:
        """The stable committed position of each partition; waits for undecided transactions."""
        with closing(self._state()) as state:
            return {p: state.committed(p) for p in range(self.partitions)}

    def members(self) -> Sequence[str]:
        """Who the group takes for alive."""
        with closing(self._state()) as state:
            return state.members()

    def _state(self) -> KafkaStateReader:
        return KafkaStateReader(self.place.config("reader"), QUIET, lambda: None, lambda: False)

    def saved(self, partition: int = 0) -> tuple[int, int]:
        """The committed offset of a partition, and the offset of its newest checkpoint."""
        with closing(self._state()) as state:
            position = state.committed(partition)
            assert position is not None, "nothing is committed"
            snapshot = decode_snapshot(join(read_checkpoint(state, partition, position.pointer)))
            return position.next_offset, snapshot.next_offset

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
        patience.wait_until(self.decided, "all events to be decided", timeout_s, self._check_workers)
        self.wait_settled()

    def _check_workers(self) -> None:
        dead = [worker for worker in self._children() if worker.returncode not in (None, 0)]
        assert not dead, f"{dead[0].name} ended with {dead[0].returncode}\n{dead[0].tail()}"

    def _children(self) -> list[Child]:
        return [*self.commands, *self.workers]

    def wait_settled(self) -> None:
        """Wait until each topic is stable to its end: nothing undecided hides anything."""
        places = [(channel, p) for channel in self.topics.channels() for p in range(self.partitions)]
        patience.wait_until(lambda: settled(self.log, places), "every transaction to be decided", _SETTLE_S)

    def wait_labelled(self, observation: Callable[[int, int], Plain], timeout_s: float = 120.0) -> None:
        """Send an observation now and then until every label is learned: they are only taken together with one."""
        ends = {p: self._after_the_last_label(p) for p in range(self.partitions)}
        sent = count()

        def learned() -> bool:
            labels = {p: None if at is None else at.labels for p, at in self.positions().items()}
            left = [p for p, at in labels.items() if at is None or at.next_label < ends[p]]
            for partition in left:
                self.append(partition, [observation(partition, next(sent))])
            return not left

        patience.wait_until(learned, "every label to be learned", timeout_s)
        self.wait_decided(timeout_s)

    def _after_the_last_label(self, partition: int) -> int:
        """Not the end of the log: labels that a router copied are followed by the marker of their transaction."""
        ends = self.log.ends(Channel.LABELS, partition)
        labels = self.log.read(Channel.LABELS, partition, ends.begin, ends.stable)
        return max((label.offset + 1 for label in labels), default=0)

    def close(self) -> None:
        """End the workers."""
        for worker in self._children():
            worker.kill()
        self.place.leave()
