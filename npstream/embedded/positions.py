"""Committed positions and the snapshots they point to, as the file holds them."""

from npstream.codec.position import decode_position
from npstream.embedded.store import Store
from npstream.errors import StateCorrupt
from npstream.records import KeyValue, Pointer, Position

Row = tuple[int, str]
"""A position as it is stored: the next offset and the metadata, which nobody has read yet."""


def read_row(store: Store, group: str, events: int, partition: int) -> Row | None:
    """What is stored for a group in the topic with id `events`."""
    rows = store.rows(
        "SELECT next_offset, metadata FROM positions WHERE group_name = ? AND topic = ? AND partition = ?",
        (group, events, partition),
    )
    return rows[0] if rows else None


def position_of(row: Row | None, name: str) -> Position | None:
    """A stored position, read; raises `StateCorrupt`, with the partition's name, when it cannot be."""
    if row is None:
        return None
    next_offset, metadata = row
    if type(next_offset) is not int or type(metadata) is not str:
        raise StateCorrupt(f"{name}: its committed offset is damaged ({next_offset!r}); run `npstream recover`")
    try:
        return decode_position(next_offset, metadata)
    except StateCorrupt as error:
        raise StateCorrupt(f"{name}: {error}") from error


def read_chunks(store: Store, checkpoints: int, partition: int, pointer: Pointer) -> list[KeyValue]:
    """The chunks of one snapshot; raises `StateCorrupt` when they are gone."""
    end = pointer.offset + pointer.chunks
    records = store.fetch(checkpoints, partition, pointer.offset, end, pointer.chunks, dense=False)
    found = [KeyValue(record.offset, record.key, record.value) for record in records if record.key is not None]
    if len(found) != pointer.chunks:
        raise StateCorrupt(
            f"checkpoint of partition {partition} at offset {pointer.offset}: {len(found)} of {pointer.chunks} "
            f"chunks are left in {store.path}; restore the file from a backup, or `npstream rollback` to a kept one"
        )
    return found
