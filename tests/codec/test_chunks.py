"""Chunks and keys of the checkpoint topic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.codec.chunks import CHUNK_MAX_BYTES, ChangeKey, ChunkKey, gather, join, parse_key, split
from npstream.codec.snapshot import Snapshot, encode_snapshot
from npstream.errors import StateCorrupt
from npstream.records import KeyValue

topics = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
groups = st.text(st.sampled_from("ab/é-0"), min_size=1, max_size=12)


def snapshot_bytes(size: int, fill: bytes = b"x", ring_place: int = 0) -> bytes:
    """An encoded snapshot with one blob of `size` bytes."""
    return encode_snapshot(
        Snapshot(
            algorithm=1,
            group="g",
            topic="t",
            partition=0,
            ring_place=ring_place,
            next_offset=0,
            params={},
            blobs={"model": fill * size},
        )
    )


def stored(snapshot: bytes, ring_place: int = 0, begin: int = 0) -> list[KeyValue]:
    """The snapshot's chunks as the log would hold them."""
    return [KeyValue(begin + i, *chunk) for i, chunk in enumerate(split(snapshot, "g", "t", 0, ring_place))]


@pytest.mark.parametrize(("size", "count"), [(0, 1), (890_000, 1), (900_000, 2), (3_000_000, 4)])
def test_a_snapshot_is_cut_and_joined(size: int, count: int) -> None:
    """Chunks stay below the limit, carry their keys, and give the same bytes back."""
    data = snapshot_bytes(size)

    chunks = stored(data)

    assert [chunk.key for chunk in chunks] == [b"g/t/0/0/%d" % i for i in range(count)]
    assert all(chunk.value is not None and len(chunk.value) <= CHUNK_MAX_BYTES for chunk in chunks)
    assert join(chunks) == data


def test_a_missing_chunk_is_named() -> None:
    """Whichever chunk is missing, the error names its key."""
    chunks = stored(snapshot_bytes(3_000_000))
    for gone in range(len(chunks)):
        with pytest.raises(StateCorrupt, match=f"g/t/0/0/{gone}" if gone else "g/t/0/0"):
            join(chunks[:gone] + chunks[gone + 1 :])
    with pytest.raises(StateCorrupt, match="no chunk"):
        join([])


def test_chunks_of_two_snapshots_do_not_mix() -> None:
    """A chunk left over from another snapshot of the same ring place is refused by key."""
    old, new = stored(snapshot_bytes(2_000_000, b"a")), stored(snapshot_bytes(2_000_000, b"b"))

    with pytest.raises(StateCorrupt, match="g/t/0/0/2"):
        join([*new[:2], old[2]])
    with pytest.raises(StateCorrupt, match="g/t/0/1/2"):
        join([*new[:2], stored(snapshot_bytes(2_000_000, b"b"), ring_place=1)[2]])


def test_damaged_chunks_are_refused() -> None:
    """A flipped byte anywhere in a chunk, an empty one and a deleted one are refused."""
    (chunk,) = stored(snapshot_bytes(50))
    value = chunk.value or b""
    broken = [value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] for at in range(len(value))]

    for bad in [*broken, None, b"", value[:-1], value + b"\0"]:
        with pytest.raises(StateCorrupt, match="npstream rollback"):
            join([chunk._replace(value=bad)])


def test_gather_finds_what_compaction_keeps() -> None:
    """Of each ring place the newest whole snapshot is found, stale surplus chunks and torn ones are not."""
    long_old, short_new = stored(snapshot_bytes(2_000_000)), stored(snapshot_bytes(10), begin=10)
    other_place = stored(snapshot_bytes(20, ring_place=1), ring_place=1, begin=20)
    torn = stored(snapshot_bytes(2_000_000, ring_place=2), ring_place=2, begin=30)[:2]
    deleted = stored(snapshot_bytes(5, ring_place=3), ring_place=3, begin=40)
    tombstone = KeyValue(50, deleted[0].key, None)
    change = KeyValue(51, ChangeKey("g", "t", 0, 7).encode(), b"{}")

    found = gather([*long_old, *short_new, *other_place, *torn, *deleted, tombstone, change])

    assert found == {ChunkKey("g", "t", 0, 0, 0): short_new, ChunkKey("g", "t", 0, 1, 0): other_place}


@given(groups, topics, st.integers(0, 10**6), st.integers(0, 99), st.integers(0, 99))
def test_chunk_keys_read_back(group: str, topic: str, partition: int, ring_place: int, chunk: int) -> None:
    """A group may contain slashes: keys are still read without doubt."""
    key = ChunkKey(group, topic, partition, ring_place, chunk)

    assert parse_key(key.encode()) == key


@given(groups, topics, st.integers(0, 10**6), st.integers(0, 2**63 - 1))
def test_change_keys_read_back(group: str, topic: str, partition: int, offset: int) -> None:
    """Change keys are distinguished from chunk keys whatever the group is called."""
    key = ChangeKey(group, topic, partition, offset)

    assert parse_key(key.encode()) == key


@pytest.mark.parametrize(
    "key", [b"", b"a/b", b"g/t/0/0/x", b"g/t/0/0/+1", b"g/t/0/0/01", b"g/t/0/0/ 1", b"g/t/0/change/7", b"\xff/t/0/0/0"]
)
def test_foreign_keys_are_refused(key: bytes) -> None:
    """A key that npstream does not write is refused with a hint at the topic's name."""
    with pytest.raises(StateCorrupt, match=r"topics\.checkpoints"):
        parse_key(key)
