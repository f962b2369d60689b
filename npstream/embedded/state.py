"""Committed positions and the snapshots they point to, as the file holds them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from npstream.codec.position import decode_position
from npstream.embedded.lock import holder
from npstream.embedded.store import Store
from npstream.errors import StateCorrupt, or_corrupt
from npstream.records import KeyValue, Pointer, Position, Topics

Row = tuple[int, str]
"""A position as it is stored: the next offset and the metadata, not decoded."""


class EmbeddedStateReader:
    """The `StateReader` of an embedded file; may be used beside its worker and in any process."""

    def __init__(self, path: Path, topics: Topics, group: str) -> None:
        """Raises `Fatal` when the file or a topic is missing."""
        self._path = path
        self._group = group
        self._name = topics.events
        self.records_read = 0
        """Records that reading checkpoints has taken from the log so far."""
        self._store = Store(path)
        try:
            self._events, _ = self._store.topic(topics.events)
            self._checkpoints, _ = self._store.topic(topics.checkpoints)
        except BaseException:
            self._store.close()
            raise

    def committed(self, partition: int) -> Position | None:
        """The committed position; raises `StateCorrupt`, with the partition's name, when it cannot be read."""
        row = read_row(self._store, self._group, self._events, partition)
        if row is None:
            return None
        next_offset, metadata = row
        name = f"{self._name}/{partition}"
        if type(next_offset) is not int or type(metadata) is not str:
            raise StateCorrupt(f"{name}: its committed offset is damaged ({next_offset!r}); run `npstream recover`")
        try:
            return decode_position(next_offset, metadata)
        except StateCorrupt as error:
            raise StateCorrupt(f"{name}: {error}") from error

    def all_committed(self, partitions: Sequence[int]) -> dict[int, Position | StateCorrupt | None]:
        """Those of many partitions, one after another: a request to a file costs next to nothing."""
        return {partition: or_corrupt(self.committed, partition) for partition in partitions}

    def read_checkpoints(self, pointers: Mapping[int, Pointer]) -> Iterator[tuple[int, list[KeyValue] | StateCorrupt]]:
        """The chunks of one snapshot per partition."""
        for partition, pointer in pointers.items():
            yield partition, or_corrupt(self._chunks, partition, pointer)

    def _chunks(self, partition: int, pointer: Pointer) -> list[KeyValue]:
        end = pointer.offset + pointer.chunks
        records = self._store.fetch(self._checkpoints, partition, pointer.offset, end, pointer.chunks, dense=False)
        found = [KeyValue(record.offset, record.key, record.value) for record in records if record.key is not None]
        if len(found) != pointer.chunks:
            raise StateCorrupt(
                f"checkpoint of partition {partition} at offset {pointer.offset}: {len(found)} of {pointer.chunks} "
                f"chunks are left in {self._path}; restore the file from a backup, or `npstream rollback` to a kept one"
            )
        self.records_read += len(found)
        return found

    def members(self) -> list[str]:
        """The one process that works on the file, if any, whatever its group."""
        with self._store.translated():
            process = holder(self._path)
        return [] if process is None else [f"process {process}"]

    def close(self) -> None:
        """Let go of the file. Never raises."""
        self._store.close()


def read_row(store: Store, group: str, events: int, partition: int) -> Row | None:
    """What is stored for a group in the topic with id `events`."""
    rows = store.rows(
        "SELECT next_offset, metadata FROM positions WHERE group_name = ? AND topic = ? AND partition = ?",
        (group, events, partition),
    )
    return rows[0] if rows else None
