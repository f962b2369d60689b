"""Which segments of waiting observations a snapshot names, and their records found in the checkpoint topic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from npstream.codec.chunks import SegmentKey
from npstream.codec.snapshot import Snapshot, decode_snapshot
from npstream.errors import StateCorrupt
from npstream.records import KeyValue

NAMED = "segments.named"
"""The blob of a snapshot that lists them."""
WAITING, NON_TARGETS, TARGETS = "segments.waiting", "segments.non_targets", "segments.targets"
"""Blobs with a bit for each place of each of them: what is still there, and what of it has which label."""
_ROW = np.dtype([("number", "<i8"), ("after", "<i8"), ("stored", "<i4"), ("digest", "V16")])


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """A written segment: its record lies at or behind the log offset `after`; how many entries were written."""

    after: int
    stored: int
    digest: bytes


def record_digest(value: bytes) -> bytes:
    """What a snapshot says of a segment's record, so that no other one is taken for it."""
    return blake2b(value, digest_size=16).digest()


def dump_named(named: Mapping[int, NamedSegment]) -> bytes:
    """The blob of these segments, by number."""
    rows = [(number, each.after, each.stored, each.digest) for number, each in sorted(named.items())]
    return np.array(rows, _ROW).tobytes()


def named_in(snapshot_blobs: Mapping[str, bytes]) -> dict[int, NamedSegment]:
    """The segments that a snapshot names, by number. Raises ValueError."""
    rows = np.frombuffer(snapshot_blobs.get(NAMED, b""), _ROW)
    return {number: NamedSegment(after, stored, bytes(digest)) for number, after, stored, digest in rows.tolist()}


def first_record(snapshot: Snapshot) -> int | None:
    """Where in the log to begin reading for the segments of a snapshot; None when it names none."""
    return min((each.after for each in named_in(snapshot.blobs).values()), default=None)


def segment_keys(snapshot: Snapshot) -> frozenset[bytes]:
    """The keys of the records that hold the segments of a snapshot."""
    address = snapshot.group, snapshot.topic, snapshot.partition
    return frozenset(SegmentKey(*address, number).encode() for number in named_in(snapshot.blobs))


def segment_columns(value: bytes) -> Mapping[str, bytes]:
    """What a segment's record holds, by name. Raises `StateCorrupt`."""
    return decode_snapshot(value).blobs


def with_segments(snapshot: Snapshot, records: Iterable[KeyValue]) -> Snapshot:
    """The snapshot with the segments it names, out of these records. Raises `StateCorrupt` when one is missing."""
    named = named_in(snapshot.blobs)
    address = snapshot.group, snapshot.topic, snapshot.partition
    wanted = {SegmentKey(*address, number).encode(): number for number in named}
    found: dict[int, bytes] = {}
    for record in records:
        number = wanted.get(record.key)
        if number is not None and record.value is not None and record_digest(record.value) == named[number].digest:
            found[number] = record.value
    missing = [number for number in named if number not in found]
    if missing:
        key = SegmentKey(*address, missing[0]).encode().decode()
        raise StateCorrupt(
            f"checkpoint {snapshot.name}: {len(missing)} of its {len(named)} segments of waiting observations are gone "
            f"or damaged, the first is {key}; `npstream inspect` lists the checkpoints that are whole, `npstream "
            "rollback` returns to one of them"
        )
    return replace(snapshot, segments=found)


def without_segments(snapshot: Snapshot) -> tuple[Snapshot, int]:
    """The snapshot without what its segments hold, and how many observations wait there: for who only looks."""
    counts = {name: _ones(snapshot.blobs.get(name, b"")) for name in (WAITING, NON_TARGETS, TARGETS)}
    emptied = {name: b"" for name in (NAMED, *counts) if name in snapshot.blobs}
    kept = replace(snapshot, blobs={**snapshot.blobs, **emptied})
    return kept, counts[WAITING] - counts[NON_TARGETS] - counts[TARGETS]


def _ones(packed: bytes) -> int:
    return int(np.unpackbits(np.frombuffer(packed, np.uint8)).sum())
