"""A partition's past as its checkpoint topic records it: kept snapshots, changes of settings, resets.

After a reset, snapshots and changes remain that no longer lead to the partition's
position. The order of the log shows which: read in that order, a reset
strikes out what lies beyond the place it went back to, and all of it when the
partition starts over there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from npstream.codec.changes import Change, decode_change
from npstream.codec.chunks import (
    ArchiveKey,
    ChangeKey,
    Key,
    PromotionKey,
    ResetKey,
    SegmentKey,
    chunks_of,
    gather,
    join,
    parse_key,
)
from npstream.codec.resets import Reset, decode_reset
from npstream.codec.segments import with_segments
from npstream.codec.snapshot import Snapshot, decode_snapshot
from npstream.errors import StateCorrupt
from npstream.records import KeyValue


@dataclass(frozen=True, slots=True)
class Kept:
    """One whole snapshot and where in the log it is, in the ring or in the archive."""

    snapshot: Snapshot
    offset: int
    chunks: int
    is_archived: bool = False

    @property
    def next_offset(self) -> int:
        """The input offset it resumes at."""
        return self.snapshot.next_offset


@dataclass(frozen=True, slots=True)
class History:
    """What still counts, each in order of input offsets; `resets` in the order they happened.

    The last of several snapshots at one offset is the one that counts. `incomplete` are the
    offsets of those that are there and whose segments are not. `archives` are all archived
    snapshots that take up room, as (offset, chunks), whether they count or not.
    """

    snapshots: tuple[Kept, ...] = ()
    changes: tuple[Change, ...] = ()
    resets: tuple[Reset, ...] = ()
    incomplete: tuple[int, ...] = ()
    archives: tuple[tuple[int, int], ...] = ()

    @property
    def newest(self) -> Kept | None:
        """The snapshot with the highest offset."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def birth(self) -> Change | None:
        """The record of a first start, while no reset has cut it off."""
        return self.changes[0] if self.changes and self.changes[0].is_birth else None

    def without(self, offset: int) -> "History":
        """Leaving out the snapshot at a log offset: it may look whole and not be what was committed."""
        return replace(self, snapshots=tuple(kept for kept in self.snapshots if kept.offset != offset))

    def at_or_before(self, offset: int) -> Kept | None:
        """The newest snapshot from which `offset` can be reached."""
        return next((kept for kept in reversed(self.snapshots) if kept.next_offset <= offset), None)


def read_history(records: Iterable[KeyValue], group: str, topic: str, partition: int) -> History:
    """The history of one partition from a read of its checkpoint partition. Raises `StateCorrupt`."""
    owner = (group, topic, partition)
    newest = {record.key: record for record in records}
    found: list[tuple[int, Kept | Change | Reset]] = []
    incomplete, archives = list[int](), list[tuple[int, int]]()
    for first, chunks in gather(newest.values()).items():
        if first[:3] != owner:
            continue
        if isinstance(first, ArchiveKey):
            archives.append((first.offset, len(chunks)))
        bare = decode_snapshot(join(chunks))
        snapshot = _try_whole(bare, newest)
        if snapshot is None:
            incomplete.append(bare.next_offset)
        else:
            kept = Kept(snapshot, chunks[0].offset, len(chunks), isinstance(first, ArchiveKey))
            found.append((kept.offset, kept))
    for record in newest.values():
        key = parse_key(record.key)
        if isinstance(key, ChangeKey | PromotionKey) and key[:3] == owner:
            found.append((record.offset, decode_change(record)))
        elif isinstance(key, ResetKey) and key[:3] == owner:
            found.append((record.offset, decode_reset(record)))
    history = _in_log_order([item for _, item in sorted(found, key=lambda pair: pair[0])])
    return replace(history, incomplete=tuple(sorted(incomplete)), archives=tuple(sorted(archives)))


def _try_whole(snapshot: Snapshot, newest: Mapping[bytes, KeyValue]) -> Snapshot | None:
    """The snapshot with its segments; None when some are gone: a ring that was made smaller leaves such places."""
    try:
        return with_segments(snapshot, newest.values())
    except StateCorrupt:
        return None


def find_damage(records: Iterable[KeyValue], group: str, topic: str, partition: int) -> dict[Key, str]:
    """What is wrong with this partition's records in a read of its checkpoint partition, by their first keys."""
    newest = {record.key: record for record in records}
    found: dict[Key, str] = {}
    for record in newest.values():
        key = parse_key(record.key)
        if key[:3] != (group, topic, partition):
            continue
        try:
            if isinstance(key, ChangeKey | PromotionKey):
                decode_change(record)
            elif isinstance(key, ResetKey):
                decode_reset(record)
            elif record.value is None:
                continue  # removed, and not yet compacted
            elif isinstance(key, SegmentKey):
                decode_snapshot(record.value)
            elif key.chunk == 0:
                decode_snapshot(join(chunks_of(key, newest)))
        except StateCorrupt as error:
            found[key] = str(error)
    return found


def _in_log_order(items: list[Kept | Change | Reset]) -> History:
    snapshots: list[Kept] = []
    changes: list[Change] = []
    resets: list[Reset] = []
    for item in items:
        if isinstance(item, Kept):
            snapshots.append(item)
        elif isinstance(item, Change):
            changes.append(item)
        else:
            resets.append(item)
            snapshots, changes = _struck_out(item, snapshots, changes)
    # Both sorts are stable: what was written later at the same offset stays later.
    snapshots.sort(key=lambda kept: kept.next_offset)
    changes.sort(key=lambda change: change.offset)
    return History(tuple(snapshots), tuple(changes), tuple(resets))


def _struck_out(reset: Reset, snapshots: list[Kept], changes: list[Change]) -> tuple[list[Kept], list[Change]]:
    """What is left after a reset; its own snapshot is the last one before it, its own changes come after it."""
    if reset.starts_over:
        own = snapshots[-1:]
        return [kept for kept in own if kept.next_offset == reset.to], []
    return (
        [kept for kept in snapshots if kept.next_offset <= reset.to],
        [change for change in changes if change.offset < reset.to],
    )
