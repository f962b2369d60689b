"""A partition's committed position as the metadata string of its input offset.

    {"v":2,"snapshot":[offset,chunks,ring_place,next_offset,"hex"],"outputs":n,"chain":"hex","state":"hex"}

Compact, fixed order, about 250 of the 4096 bytes that Kafka grants. The offset
itself travels beside the string, not inside it.
"""

import string

import orjson

from npstream.errors import StateCorrupt
from npstream.records import Pointer, Position, Proof

VERSION = 2
METADATA_MAX = 1024
"""Brokers refuse more than 4096 bytes; ours stay far below so that no broker setting matters."""

_HEX = frozenset(string.hexdigits.lower())


def encode_position(position: Position) -> str:
    """The canonical metadata string of a position."""
    pointer, proof = position.pointer, position.proof
    snapshot = [pointer.offset, pointer.chunks, pointer.ring_place, pointer.next_offset, pointer.digest]
    fields = {
        "v": VERSION,
        "snapshot": snapshot,
        "outputs": proof.outputs,
        "chain": proof.chain,
        "state": proof.state,
    }
    text = orjson.dumps(fields).decode()
    assert len(text) < METADATA_MAX, text
    return text


def decode_position(next_offset: int, metadata: str) -> Position:
    """The position that was committed at `next_offset`.

    Raises `StateCorrupt` for anything that `encode_position` would not have written.
    """
    try:
        position = _position(next_offset, orjson.loads(metadata))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateCorrupt(_refusal(next_offset, metadata, str(error))) from error
    if encode_position(position) != metadata:
        raise StateCorrupt(_refusal(next_offset, metadata, "not in canonical form"))
    return position


def _position(next_offset: int, fields: dict[str, object]) -> Position:
    if fields["v"] != VERSION:
        raise ValueError(f"version {fields['v']!r} is not {VERSION}")
    snapshot = fields["snapshot"]
    if not isinstance(snapshot, list):
        raise ValueError("snapshot is not a list")
    *numbers, digest = snapshot
    offset, chunks, ring_place, resumes_at = map(_count, numbers)
    if chunks < 1 or resumes_at > next_offset:
        raise ValueError("snapshot is empty or newer than the offset")
    proof = Proof(_count(fields["outputs"]), _digest(fields["chain"]), _digest(fields["state"]))
    return Position(next_offset, Pointer(offset, chunks, ring_place, resumes_at, _digest(digest)), proof)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value


def _digest(value: object) -> str:
    if not isinstance(value, str) or not _HEX.issuperset(value):
        raise ValueError(f"{value!r} is not a hex digest")
    return value


def _refusal(next_offset: int, metadata: str, why: str) -> str:
    return (
        f"committed offset {next_offset} carries metadata that npstream did not write ({why}): {metadata[:80]!r}. "
        "Was the group reset or used by another program, or is this npstream older than the one that wrote it?"
    )
