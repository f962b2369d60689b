"""Labels written to an embedded log by a command: each call one SQLite transaction, beside the worker."""

from collections.abc import Sequence
from pathlib import Path

from npstream import failpoints
from npstream.embedded.lock import LabellingLock
from npstream.embedded.store import Plain, Store, append
from npstream.records import Channel, Topics


class EmbeddedLabelling:
    """The `Labelling` of an embedded file. Nothing is held before it is opened."""

    def __init__(self, path: Path, topics: Topics) -> None:
        self._store = Store(path)
        self._path = path
        self._topic = self._store.topic(topics.names()[Channel.EVENTS])[0]
        self._lock: LabellingLock | None = None

    def open(self) -> None:
        """Take the lock, which ends with the process that has it."""
        with self._store.translated():
            self._lock = LabellingLock(self._path)

    def publish(self, partition: int, records: Sequence[Plain]) -> None:
        """Write labels: on the disk, and visible to every reader, when this returns."""
        assert self._lock is not None, "open before publish"
        failpoints.hit("begin")
        with self._store.transaction() as db:
            failpoints.hit("produce")
            append(db, self._topic, partition, records)
            failpoints.hit("before_commit")
        failpoints.hit("after_commit")

    def close(self) -> None:
        """Let the next one in. Never raises."""
        if self._lock is not None:
            self._lock.release()
        self._store.close()
