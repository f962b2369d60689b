"""A group's committed state in an embedded file, read beside its worker."""

from pathlib import Path

from npstream.embedded.lock import holder
from npstream.embedded.positions import position_of, read_chunks, read_row
from npstream.embedded.store import Store
from npstream.records import KeyValue, Pointer, Position, Topics


class EmbeddedSteward:
    """The `Steward` of an embedded file."""

    def __init__(self, path: Path, topics: Topics, group: str) -> None:
        """Raises `Fatal` when the file or a topic is missing."""
        self._path = path
        self._group = group
        self._name = topics.events
        self._store = Store(path)
        try:
            self._events, _ = self._store.topic(topics.events)
            self._checkpoints, _ = self._store.topic(topics.checkpoints)
        except BaseException:
            self._store.close()
            raise

    def members(self) -> list[str]:
        """The one process that works on the file, if any, whatever its group."""
        with self._store.translated():
            process = holder(self._path)
        return [] if process is None else [f"process {process}"]

    def committed(self, partition: int) -> Position | None:
        """The committed position; raises `StateCorrupt` when its metadata cannot be read."""
        row = read_row(self._store, self._group, self._events, partition)
        return position_of(row, f"{self._name}/{partition}")

    def read_checkpoint(self, partition: int, pointer: Pointer) -> list[KeyValue]:
        """The chunks of one snapshot; raises `StateCorrupt` when they are gone."""
        return read_chunks(self._store, self._checkpoints, partition, pointer)

    def close(self) -> None:
        """Let go of the file. Never raises."""
        self._store.close()
