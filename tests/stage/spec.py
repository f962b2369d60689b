"""What one worker process is started with: a JSON file that holds everything, so that a restart is the same worker."""

from dataclasses import asdict, dataclass
from typing import Any

import orjson

from npstream.kafka import KafkaConfig
from npstream.partition import PartitionConfig
from npstream.records import Topics


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """One worker of one group.

    The timeouts make zombies possible: a worker that is stopped for longer than its
    session and shorter than its transaction wakes up in a transaction that is
    still open. Small chunks give every snapshot several records.
    """

    bootstrap: str
    group: str
    worker_name: str
    topics: Topics
    config: PartitionConfig
    every_events: int = 800
    every_seconds: float = 1e9
    batch_max: int = 200
    session_timeout_ms: int = 6_000
    transaction_timeout_ms: int = 20_000
    recover_s: float = 300.0
    chunk_bytes: int = 8_192

    def kafka(self) -> KafkaConfig:
        """The client side of it."""
        return KafkaConfig(
            self.bootstrap,
            self.group,
            self.worker_name,
            self.topics,
            session_timeout_ms=self.session_timeout_ms,
            transaction_timeout_ms=self.transaction_timeout_ms,
        )

    def to_json(self) -> bytes:
        """The file's content."""
        return orjson.dumps({**asdict(self), "config": self.config.to_dict()})

    @classmethod
    def from_json(cls, data: bytes) -> "WorkerSpec":
        """Inverse of `to_json`."""
        fields: dict[str, Any] = orjson.loads(data)
        fields["topics"] = Topics(**fields["topics"])
        fields["config"] = PartitionConfig.from_dict(fields["config"])
        return cls(**fields)
