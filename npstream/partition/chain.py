"""The chain: a running proof of everything a partition has published.

Outputs are serialised in order and folded into a blake2b chain in fixed blocks
of 256, so that hashing costs little and the result does not depend on how the
outputs were batched. The block that is not full yet is kept as bytes and is
part of the snapshot; an output larger than 512 bytes (a dead letter may have
megabytes) enters as its digest, so that the block stays small.
"""

from collections.abc import Iterable
from hashlib import blake2b

from npstream.records import Output

BLOCK = 256
_WHOLE_MAX_BYTES = 512


class Chain:
    """Digest of all full blocks, the open block, and the number of outputs so far."""

    def __init__(self, digest: bytes = bytes(16), count: int = 0, open_block: Iterable[bytes] = ()) -> None:
        self._digest = digest
        self._open = list(open_block)
        self.count = count

    def extend(self, outputs: Iterable[Output]) -> None:
        """Append outputs in order, folding each block as it fills."""
        block = self._open
        for output in outputs:
            block.append(_serialise(output))
            if len(block) == BLOCK:
                self._digest = blake2b(b"".join(block), digest_size=16, key=self._digest).digest()
                block.clear()
            self.count += 1

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
    whole = b"".join(parts)
    return whole if len(whole) <= _WHOLE_MAX_BYTES else blake2b(whole, digest_size=32).digest()
