"""Snapshots cut into records of the checkpoint topic, and the keys of that topic.

Keys are text, read from the right because a group may contain a slash and a
topic may not:

    group/topic/partition/ring_place/chunk  one chunk of the snapshot at a place of the ring
    group/topic/partition/archive-offset/chunk  one chunk of an archived snapshot, offset in 20 digits
    group/topic/partition/change/offset     one change of parameters, offset in 20 digits
    group/topic/partition/promotion/offset  one promotion of a challenger, offset in 20 digits
    group/topic/partition/reset/number      one reset by an operator, number in 20 digits
    group/topic/partition/segment/number    waiting observations, number in 20 digits

A chunk's value is a small header and the bytes:

    offset  size  content
    0       4     magic "NPCK"
    4       2     index of this chunk
    6       2     how many there are
    8       4     the snapshot's own CRC-32: chunks of different snapshots never match
    12      ...   bytes
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from npstream.codec.snapshot import check_crc
from npstream.errors import StateCorrupt
from npstream.records import KeyValue

CHUNK_MAX_BYTES = 900_000
"""Largest chunk value: below the 1,000,000 bytes a client sends and the 1,048,588 a broker takes by default."""

_MAGIC = b"NPCK"
_HEAD = struct.Struct("<4sHHI")
_ARCHIVE = "archive-"
_CHANGE = "change"
_PROMOTION = "promotion"
_RESET = "reset"
_SEGMENT = "segment"
_REMEDY = "`npstream inspect` lists the kept snapshots, `npstream rollback` returns to one of them"


class ChunkKey(NamedTuple):
    """Names one chunk."""

    group: str
    topic: str
    partition: int
    ring_place: int
    chunk: int

    def encode(self) -> bytes:
        """The key's bytes."""
        return f"{self.group}/{self.topic}/{self.partition}/{self.ring_place}/{self.chunk}".encode()


class ArchiveKey(NamedTuple):
    """Names one chunk of an archived snapshot, which resumes at `offset`: the ring never overwrites it."""

    group: str
    topic: str
    partition: int
    offset: int
    chunk: int

    def encode(self) -> bytes:
        """The key's bytes."""
        return f"{self.group}/{self.topic}/{self.partition}/{_ARCHIVE}{self.offset:020d}/{self.chunk}".encode()


class ChangeKey(NamedTuple):
    """Names one change of parameters, made before the event at `offset`."""

    group: str
    topic: str
    partition: int
    offset: int

    def encode(self) -> bytes:
        """The key's bytes; 20 digits so that keys sort as offsets do."""
        return f"{self.group}/{self.topic}/{self.partition}/{_CHANGE}/{self.offset:020d}".encode()


class PromotionKey(NamedTuple):
    """Names one promotion, made before the event at `offset`: settings may change there as well, and neither record
    replaces the other."""

    group: str
    topic: str
    partition: int
    offset: int

    def encode(self) -> bytes:
        """The key's bytes."""
        return f"{self.group}/{self.topic}/{self.partition}/{_PROMOTION}/{self.offset:020d}".encode()


class ResetKey(NamedTuple):
    """Names one move of the position by an operator; `number` counts them, so that none replaces another."""

    group: str
    topic: str
    partition: int
    number: int

    def encode(self) -> bytes:
        """The key's bytes."""
        return f"{self.group}/{self.topic}/{self.partition}/{_RESET}/{self.number:020d}".encode()


class SegmentKey(NamedTuple):
    """Names one segment of waiting observations, written as a snapshot of nothing else."""

    group: str
    topic: str
    partition: int
    number: int

    def encode(self) -> bytes:
        """The key's bytes."""
        return f"{self.group}/{self.topic}/{self.partition}/{_SEGMENT}/{self.number:020d}".encode()


SnapshotKey = ChunkKey | ArchiveKey
"""Names one chunk of a snapshot."""
Key = SnapshotKey | ChangeKey | PromotionKey | ResetKey | SegmentKey


def parse_key(key: bytes) -> Key:
    """Read a key of the checkpoint topic. Raises `StateCorrupt` when it is none of ours."""
    try:
        group, topic, partition, ring_place, last = key.decode().rsplit("/", 4)
        parsed: Key
        if ring_place == _CHANGE:
            parsed = ChangeKey(group, topic, int(partition), int(last))
        elif ring_place == _PROMOTION:
            parsed = PromotionKey(group, topic, int(partition), int(last))
        elif ring_place == _RESET:
            parsed = ResetKey(group, topic, int(partition), int(last))
        elif ring_place == _SEGMENT:
            parsed = SegmentKey(group, topic, int(partition), int(last))
        elif ring_place.startswith(_ARCHIVE):
            parsed = ArchiveKey(group, topic, int(partition), int(ring_place.removeprefix(_ARCHIVE)), int(last))
        else:
            parsed = ChunkKey(group, topic, int(partition), int(ring_place), int(last))
    except ValueError:
        raise _foreign(key) from None
    if parsed.encode() != key:  # int() also takes "+1", "1_0" and " 1"
        raise _foreign(key)
    return parsed


def split(snapshot: bytes, group: str, topic: str, partition: int, ring_place: int) -> list[tuple[bytes, bytes]]:
    """Cut an encoded snapshot into (key, value) records, each value below `CHUNK_MAX_BYTES`."""
    # Not the CRC of all bytes: that of a message with its own CRC at the end is always the same number.
    crc = check_crc(snapshot)
    room = CHUNK_MAX_BYTES - _HEAD.size
    count = -(-len(snapshot) // room)
    return [
        (
            ChunkKey(group, topic, partition, ring_place, index).encode(),
            _HEAD.pack(_MAGIC, index, count, crc) + snapshot[index * room : (index + 1) * room],
        )
        for index in range(count)
    ]


def archived(
    chunks: Sequence[tuple[bytes, bytes]], group: str, topic: str, partition: int, offset: int
) -> list[tuple[bytes, bytes]]:
    """The same chunks under the keys of the archive."""
    return [
        (ArchiveKey(group, topic, partition, offset, index).encode(), value) for index, (_, value) in enumerate(chunks)
    ]


def join(records: Sequence[KeyValue]) -> bytes:
    """Put the chunks of one snapshot, in order, back together.

    Raises `StateCorrupt`, naming the key, when one is missing, damaged or belongs to another snapshot.
    """
    if not records:
        raise StateCorrupt(f"no chunk of the snapshot was found; {_REMEDY}")
    first = _key_of(records[0])
    _, _, count, crc = _head(records[0])
    for index, record in enumerate(records):
        expected = first._replace(chunk=index)
        if _key_of(record) != expected or _head(record) != (_MAGIC, index, count, crc):
            raise _mixed(record.key, expected.encode())
    if len(records) != count:
        missing = first._replace(chunk=min(len(records), count)).encode()
        raise StateCorrupt(f"{len(records)} of {count} chunks were read, {missing!r} is missing: {_REMEDY}")
    data = b"".join((record.value or b"")[_HEAD.size :] for record in records)
    try:
        whole = check_crc(data)
    except StateCorrupt as error:
        raise StateCorrupt(f"checkpoint record {records[0].key!r} and its followers: {error}") from None
    if whole != crc:
        raise _mixed(records[0].key, records[0].key)
    return data


def gather(records: Iterable[KeyValue]) -> dict[SnapshotKey, list[KeyValue]]:
    """The complete snapshots in a read of the checkpoint topic, by the key of their first chunk.

    Later records replace earlier ones with their key, as compaction does. Chunks
    that a longer, older snapshot left at a ring place are passed over, and a place that
    holds no whole snapshot is left out.
    """
    newest = {record.key: record for record in records}
    found: dict[SnapshotKey, list[KeyValue]] = {}
    for key in map(parse_key, newest):
        if isinstance(key, SnapshotKey) and key.chunk == 0:
            chunks = _try_gather_one(key, newest)
            if chunks:
                found[key] = chunks
    return found


def _try_gather_one(first: SnapshotKey, newest: Mapping[bytes, KeyValue]) -> list[KeyValue]:
    try:
        return chunks_of(first, newest)
    except StateCorrupt:
        return []  # whoever asked for this very snapshot learns from `join` what is wrong with it


def chunks_of(first: SnapshotKey, newest: Mapping[bytes, KeyValue]) -> list[KeyValue]:
    """The chunks of the snapshot that begins with this key, out of the newest record of each key.

    Raises `StateCorrupt` when they are not whole.
    """
    count = _head(newest[first.encode()])[2]
    keys = [first._replace(chunk=index).encode() for index in range(count)]
    chunks = [newest[key] for key in keys if key in newest]
    join(chunks)
    return chunks


def _foreign(key: bytes) -> StateCorrupt:
    return StateCorrupt(
        f"the checkpoint topic holds a record with key {key!r}, which npstream does not write: "
        "give npstream a checkpoint topic of its own (topics.checkpoints)"
    )


def _key_of(record: KeyValue) -> SnapshotKey:
    key = parse_key(record.key)
    if not isinstance(key, SnapshotKey):
        raise _mixed(record.key, b"a chunk")
    return key


def _head(record: KeyValue) -> tuple[bytes, int, int, int]:
    if record.value is None or len(record.value) < _HEAD.size or not record.value.startswith(_MAGIC):
        raise StateCorrupt(f"checkpoint record {record.key!r} is not a chunk of a snapshot; {_REMEDY}")
    magic, index, count, crc = _HEAD.unpack_from(record.value)
    return magic, index, count, crc


def _mixed(key: bytes, expected: bytes) -> StateCorrupt:
    return StateCorrupt(
        f"checkpoint record {key!r} does not belong to the snapshot being read, {expected!r} was expected: {_REMEDY}"
    )
