"""Topics and a group on a broker, with `npstream run` as its workers."""

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from npstream.codec.chunks import join
from npstream.codec.snapshot import decode_snapshot
from npstream.kafka import KafkaConfig, KafkaLog
from npstream.kafka.admin import Admin
from npstream.kafka.state import KafkaStateReader
from npstream.kafka.topics import Wishes
from npstream.records import Channel
from tests.contracts.places import topics_of
from tests.operations.command import WorkerCommand

_PATIENT_MS = 60_000
_TRANSACTION_MS = 20_000
_QUIET = logging.getLogger("tests.operations")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


@dataclass
class Site:
    """Four fresh topics as `npstream init` makes them. Workers end with `close`."""

    bootstrap: str
    folder: Path
    partitions: int = 1
    name: str = field(default_factory=lambda: f"site-{uuid.uuid4().hex[:8]}")
    workers: list[WorkerCommand] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.topics = topics_of(f"{self.name}.")
        self.group = f"{self.name}.group"
        self.config = KafkaConfig(
            self.bootstrap,
            self.group,
            "test",
            self.topics,
            connect_timeout_ms=_PATIENT_MS,
            transaction_timeout_ms=_TRANSACTION_MS,
        )
        admin = Admin(self.config, _QUIET)
        admin.prepare(admin.plan(Wishes(self.partitions)))
        self.log = KafkaLog(self.config, _QUIET)

    def settings(self, worker_name: str) -> dict[str, Any]:
        """A settings file's content; quick to notice that a worker is gone, patient with a slow machine."""
        return {
            "kafka": {
                "bootstrap": self.bootstrap,
                "group": self.group,
                "worker_name": worker_name,
                "session_timeout_ms": 10_000,
                "transaction_timeout_ms": _TRANSACTION_MS,
            },
            "topics": asdict(self.topics),
            "model": {"d": 2, "D": 8, "tau": 0.1},
            "http": {"port": 0},
        }

    def worker(self, worker_name: str = "worker-0", **sections: Any) -> WorkerCommand:
        """A worker process, not yet started; `sections` are added to, or replace, those of its settings."""
        worker = WorkerCommand(self.folder, worker_name, {**self.settings(worker_name), **sections})
        self.workers.append(worker)
        return worker

    def feed(self, values: Sequence[bytes], partition: int = 0) -> None:
        """Append events, durably, of this moment: the topic keeps them for a week of their own time."""
        at_ms = int(time.time() * 1000)
        self.log.append(Channel.EVENTS, partition, [(None, value, (), at_ms) for value in values])

    def saved(self, partition: int = 0) -> tuple[int, int]:
        """The committed offset of a partition, and the offset of its newest checkpoint."""
        reader = KafkaStateReader(self.config, _QUIET, lambda: None, lambda: False)
        try:
            position = reader.committed(partition)
            assert position is not None, "nothing is committed"
            snapshot = decode_snapshot(join(reader.read_checkpoint(partition, position.pointer)))
            return position.next_offset, snapshot.next_offset
        finally:
            reader.close()

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.kill()
        self.log.close()
