"""A partition's whole state as canonical bytes, and back.

    offset  size  content
    0       8     magic "NPSTREAM"
    8       2     format version, now 8
    10      2     algorithm version of the model
    12      4     length h of the header
    16      h     header: JSON with sorted keys, see below
    16+h    ...   blobs one after another, in the header's order
    end-4   4     CRC-32 of every byte before it

Integers are unsigned little-endian. The header holds `group`, `topic`,
`topic_id`, `partition`, `slot` (the ring place), `next_offset`, `params` (in full), `meta` (counters and
whatever else is small) and `blobs`, the list of [name, length]. Every future
format keeps magic, version and CRC in their places, so that an old reader can
distinguish a newer snapshot from a broken one. Equal snapshots have equal bytes.
"""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from npstream.errors import StateCorrupt

MAGIC = b"NPSTREAM"
FORMAT = 8

_HEAD = struct.Struct("<8sHHI")
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that one partition knows when every event below `next_offset` has been handled.

    `params` and `meta` are JSON values with text keys; `blobs` are raw bytes by
    name, whose order is kept. `ring_place` is its place in the ring of kept snapshots.
    `topic_id` distinguishes the topic from one that is created later under its name;
    empty where the log has no such ids. `segments` are the records, by number, of the
    waiting observations that it names and does not hold; they are not part of its bytes.
    """

    algorithm: int
    group: str
    topic: str
    partition: int
    ring_place: int
    next_offset: int
    params: Mapping[str, Any]
    meta: Mapping[str, Any] = field(default_factory=dict)
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    topic_id: str = ""
    segments: Mapping[int, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """For messages: which snapshot this is."""
        return f"{self.group}/{self.topic}/{self.partition}/{self.ring_place} at offset {self.next_offset}"


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The canonical bytes."""
    header = orjson.dumps(_header(snapshot), option=orjson.OPT_SORT_KEYS)
    body = b"".join([_HEAD.pack(MAGIC, FORMAT, snapshot.algorithm, len(header)), header, *snapshot.blobs.values()])
    return body + _CRC.pack(zlib.crc32(body))


def snapshot_digest(data: bytes) -> str:
    """What a committed position says of the bytes of its snapshot, so that no other ones are taken for them."""
    return blake2b(data, digest_size=16).hexdigest()


def decode_snapshot(data: bytes) -> Snapshot:
    """Read a snapshot. Raises `StateCorrupt` when a single byte is not as it was written."""
    check_crc(data)
    _, version, algorithm, length = _HEAD.unpack_from(data)
    if version > FORMAT:
        raise StateCorrupt(
            f"snapshot format {version} is newer than this npstream can read ({FORMAT}): "
            "upgrade this worker to the version that wrote it"
        )
    if version < FORMAT:
        raise StateCorrupt(
            f"snapshot format {version} is older than this npstream can read ({FORMAT}): run the version that wrote "
            "it, or start over with `npstream reset`"
        )
    end = _HEAD.size + length
    if end > len(data) - _CRC.size:
        raise _corrupt("its header is damaged")
    header = _loads(data[_HEAD.size : end])
    blobs = _blobs(header, data, end)
    return Snapshot(
        algorithm=algorithm,
        group=header["group"],
        topic=header["topic"],
        partition=header["partition"],
        ring_place=header["slot"],
        next_offset=header["next_offset"],
        params=header["params"],
        meta=header["meta"],
        blobs=blobs,
        topic_id=header["topic_id"],
    )


def check_topic(snapshot: Snapshot, topic_id: str) -> None:
    """Raise `StateCorrupt` when the snapshot was learned from another topic of the same name."""
    if snapshot.topic_id and topic_id and snapshot.topic_id != topic_id:
        raise StateCorrupt(
            f"{snapshot.topic}/{snapshot.partition}: the events topic was deleted and created again since offset "
            f"{snapshot.next_offset} was decided: offsets of the old one mean nothing in the new one. Stop the "
            f"workers, then go on with what was learned by `npstream reset --partition {snapshot.partition} "
            "--to earliest --keep-model --execute`, or leave --keep-model out to forget it"
        )


def check_crc(data: bytes) -> int:
    """The snapshot's own CRC, after checking magic and CRC. Raises `StateCorrupt`."""
    if len(data) < _HEAD.size + _CRC.size:
        raise _corrupt(f"{len(data)} bytes is too short")
    if not data.startswith(MAGIC):
        raise _corrupt(f"it starts with {data[:8]!r}")
    (crc,) = _CRC.unpack_from(data, len(data) - _CRC.size)
    if zlib.crc32(memoryview(data)[: -_CRC.size]) != crc:
        raise _corrupt("its CRC does not match")
    return int(crc)


_FIELDS = {
    "group": str,
    "topic": str,
    "topic_id": str,
    "partition": int,
    "slot": int,
    "next_offset": int,
    "params": dict,
    "meta": dict,
    "blobs": list,
}
_ATTRIBUTES = {"slot": "ring_place"}
"""Fields of the header that have another name in the program."""


def _header(snapshot: Snapshot) -> dict[str, Any]:
    header = {name: getattr(snapshot, _ATTRIBUTES.get(name, name)) for name in _FIELDS}
    header["params"], header["meta"] = dict(snapshot.params), dict(snapshot.meta)
    header["blobs"] = [[name, len(blob)] for name, blob in snapshot.blobs.items()]
    return header


def _loads(text: bytes) -> dict[str, Any]:
    """The header, each field of its type: a wrong one means another program wrote it, for the CRC held."""
    try:
        header = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise _corrupt("its header is not JSON") from None
    if not isinstance(header, dict) or header.keys() != _FIELDS.keys():
        raise _corrupt(f"its header does not hold {', '.join(_FIELDS)}")
    wrong = [name for name, expected in _FIELDS.items() if type(header[name]) is not expected]
    if wrong:
        raise _corrupt(f"its header has a wrong {wrong[0]}")
    return header


def _blobs(header: dict[str, Any], data: bytes, begin: int) -> dict[str, bytes]:
    blobs: dict[str, bytes] = {}
    for entry in header["blobs"]:
        match entry:
            case [str(name), int(length)] if length >= 0 and name not in blobs:
                blobs[name] = data[begin : begin + length]
                begin += length
            case _:
                raise _corrupt("its list of parts is damaged")
    if begin != len(data) - _CRC.size:
        raise _corrupt("its parts do not add up to its length")
    return blobs


def _corrupt(what: str) -> StateCorrupt:
    return StateCorrupt(
        f"this is not a readable snapshot: {what}; "
        "`npstream inspect` lists the kept snapshots, `npstream rollback` returns to one of them"
    )
