"""Snapshots: golden bytes, round trips, and the refusal of every damage."""

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.snapshot import FORMAT, MAGIC, Snapshot, check_topic, decode_snapshot, encode_snapshot
from npstream.errors import StateCorrupt

GOLDEN = Path(__file__).parent / "golden" / "snapshot-v8.bin"

EXAMPLE = Snapshot(
    algorithm=1,
    group="fraud/eu",
    topic="payments",
    topic_id="Vt0s3Q5VQZ2vO5n0T0K1gA",
    partition=3,
    ring_place=2,
    next_offset=123_456_789_012,
    params={"tau": 0.01, "d": 2, "preset": "plus", "learning": True, "eta": None},
    meta={"late": 3, "chain": "00ff", "event_time": 1_700_000_000_000},
    blobs={"model": bytes(range(64)), "pending": b"", "block": b"open"},
)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
snapshots = st.builds(
    Snapshot,
    algorithm=st.integers(0, 2**16 - 1),
    group=st.text(max_size=10),
    topic=st.text(max_size=10),
    topic_id=st.text(max_size=10),
    partition=st.integers(0, 2**31),
    ring_place=st.integers(0, 99),
    next_offset=st.integers(0, 2**63),
    params=st.dictionaries(st.text(max_size=5), json_values, max_size=4),
    meta=st.dictionaries(st.text(max_size=5), json_values, max_size=4),
    blobs=st.dictionaries(st.text(max_size=5), st.binary(max_size=30), max_size=4),
)


def test_bytes_are_those_of_the_golden_file() -> None:
    """The format is written today as it was on its first day, and read."""
    golden = GOLDEN.read_bytes()

    assert encode_snapshot(EXAMPLE) == golden
    assert decode_snapshot(golden) == EXAMPLE


@given(snapshots)
def test_a_snapshot_reads_back_as_it_was(snapshot: Snapshot) -> None:
    """Nothing is lost, and the order of the blobs is kept."""
    actual = decode_snapshot(encode_snapshot(snapshot))

    assert actual == snapshot
    assert list(actual.blobs) == list(snapshot.blobs)


@given(snapshots, st.randoms())
def test_equal_snapshots_have_equal_bytes(snapshot: Snapshot, random: Any) -> None:
    """The order in which parameters and counters were entered leaves no trace."""

    def shuffled(mapping: Any) -> dict[str, Any]:
        items = list(mapping.items())
        random.shuffle(items)
        return dict(items)

    fields = {name: getattr(snapshot, name) for name in Snapshot.__slots__}
    other = Snapshot(**fields | {"params": shuffled(snapshot.params), "meta": shuffled(snapshot.meta)})

    assert encode_snapshot(other) == encode_snapshot(snapshot)


def test_every_flipped_byte_is_refused() -> None:
    """No byte of a snapshot can change unnoticed, whatever it changes to."""
    data = encode_snapshot(EXAMPLE)
    for at in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            broken = bytearray(data)
            broken[at] ^= flip
            with pytest.raises(StateCorrupt, match="npstream rollback"):
                decode_snapshot(bytes(broken))


def test_every_truncation_is_refused() -> None:
    """A snapshot that ends early, at whatever byte, or goes on too long is refused."""
    data = encode_snapshot(EXAMPLE)
    for broken in [*(data[:end] for end in range(len(data))), data + b"\0", data + data]:
        with pytest.raises(StateCorrupt):
            decode_snapshot(broken)


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_with_a_right_crc_are_read_or_refused(body: bytes) -> None:
    """Bytes that another program signed never escape as another error."""
    data = MAGIC + struct.pack("<HH", FORMAT, 1) + body
    with pytest.raises(StateCorrupt):
        decode_snapshot(data + struct.pack("<I", zlib.crc32(data)))


REST = b'"meta":{},"next_offset":0,"params":{},"partition":0,"slot":0,"topic":"","topic_id":""}'


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{}",
        b'{"blobs":[["a"]],"group":"",' + REST,
        b'{"blobs":[["a",-1]],"group":"",' + REST,
        b'{"blobs":[["a",1]],"group":"",' + REST,
        b'{"blobs":[],"group":7,' + REST,
    ],
)
def test_a_signed_but_senseless_header_is_refused(header: bytes) -> None:
    """A right CRC does not make a header whose fields are wrong acceptable."""
    data = MAGIC + struct.pack("<HHI", FORMAT, 1, len(header)) + header
    with pytest.raises(StateCorrupt):
        decode_snapshot(data + struct.pack("<I", zlib.crc32(data)))


def test_a_newer_format_asks_for_an_upgrade() -> None:
    """An old worker does not call a newer snapshot broken: it says what to do."""
    data = MAGIC + struct.pack("<HHI", FORMAT + 1, 1, 0) + b"whatever comes"
    with pytest.raises(StateCorrupt, match=f"format {FORMAT + 1} is newer .* upgrade this worker"):
        decode_snapshot(data + struct.pack("<I", zlib.crc32(data)))


def test_an_older_format_names_the_ways_out() -> None:
    """It is neither read by guess nor called broken."""
    data = MAGIC + struct.pack("<HHI", FORMAT - 1, 1, 0) + b"whatever came"
    with pytest.raises(StateCorrupt, match=f"format {FORMAT - 1} is older .*npstream reset"):
        decode_snapshot(data + struct.pack("<I", zlib.crc32(data)))


@pytest.mark.parametrize(("learned", "now"), [("a", "a"), ("", "a"), ("a", ""), ("", "")])
def test_a_topic_is_the_same_unless_its_id_says_otherwise(learned: str, now: str) -> None:
    """Logs without ids are never suspected."""
    check_topic(replace(EXAMPLE, topic_id=learned), now)


def test_a_topic_that_was_created_again_is_refused_with_the_way_on() -> None:
    """Offsets of the old one mean nothing in the new one."""
    with pytest.raises(StateCorrupt, match="reset --partition 3 --to earliest --keep-model --execute"):
        check_topic(replace(EXAMPLE, topic_id="a"), "b")
