"""The chain: a running proof of everything a partition has published.

Outputs are serialised in order and folded into a blake2b chain in fixed blocks
of 256, so that hashing costs little and the result does not depend on how the
outputs were batched. The block that is not full yet is kept as bytes and is
part of the snapshot; an output larger than 512 bytes (a dead letter may have
megabytes) enters as its digest, so that the block stays small.
"""

from collections.abc import Iterable
from hashlib import blake2b

from npstream.codec.envelope import OFFSET_HEADER
from npstream.records import Channel, Output

BLOCK = 256
_WHOLE_MAX_BYTES = 512

_NO_HEADER = ("", None)
_DECISIONS = Channel.DECISIONS
_PLAIN_DECISION = b"%d %%d %%d %%d 1;%%b%%b%d %%d;%b%%b" % (_DECISIONS, len(OFFSET_HEADER), OFFSET_HEADER.encode())
"""What `_any_output` gives for a decision with no header but its offset: nearly every output, in half the time."""


class Chain:
    """Digest of all full blocks, the open block, and the number of outputs so far."""

    def __init__(self, digest: bytes = bytes(16), count: int = 0, open_block: Iterable[bytes] = ()) -> None:
        self._digest = digest
        self._open = list(open_block)
        self.count = count

    def extend(self, outputs: Iterable[Output]) -> None:
        """Append outputs in order, folding each block as it fills."""
        block = self._open
        before = len(block)
        block += [_serialise(output) for output in outputs]
        self.count += len(block) - before
        while len(block) >= BLOCK:
            self._digest = blake2b(b"".join(block[:BLOCK]), digest_size=16, key=self._digest).digest()
            del block[:BLOCK]

    def hexdigest(self) -> str:
        """The proof over every output so far, the open block included."""
        return blake2b(b"".join(self._open), digest_size=16, key=self._digest).hexdigest()

    def dump(self) -> tuple[bytes, bytes]:
        """(digest of the full blocks, open block) for a snapshot; `load` is the inverse."""
        return self._digest, b"".join(len(item).to_bytes(4, "little") + item for item in self._open)

    @classmethod
    def load(cls, digest: bytes, count: int, packed: bytes) -> "Chain":
        """A chain that continues where the dumped one stood."""
        items: list[bytes] = []
        at = 0
        while at < len(packed):
            size = int.from_bytes(packed[at : at + 4], "little")
            items.append(packed[at + 4 : at + 4 + size])
            at += 4 + size
        return cls(digest, count, items)


def _serialise(output: Output) -> bytes:
    """Bytes that stand for one output in its block."""
    channel, key, value, headers, timestamp_ms = output
    name, offset = headers[0] if len(headers) == 1 else _NO_HEADER
    if channel is _DECISIONS and name is OFFSET_HEADER and offset is not None and value is not None:
        size, key = (-1, b"") if key is None else (len(key), key)
        whole = _PLAIN_DECISION % (timestamp_ms, size, len(value), key, value, len(offset), offset)
    else:
        whole = _any_output(output)
    return whole if len(whole) <= _WHOLE_MAX_BYTES else blake2b(whole, digest_size=32).digest()


def _any_output(output: Output) -> bytes:
    """Unambiguous bytes of one output: lengths first (-1 for None), then the parts."""
    channel, key, value, headers, timestamp_ms = output
    parts = [
        b"%d %d %d %d %d;"
        % (channel, timestamp_ms, -1 if key is None else len(key), -1 if value is None else len(value), len(headers)),
        key or b"",
        value or b"",
    ]
    for name, content in headers:
        parts.append(b"%d %d;" % (len(name), -1 if content is None else len(content)))
        parts.append(name.encode())
        parts.append(content or b"")
    return b"".join(parts)
