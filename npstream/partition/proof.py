"""The chain: a running proof of everything a partition has published.

Outputs are folded into a chain of SHA-256 digests, for which processors have
instructions, in fixed blocks of 256, so that the result does not depend on how
the outputs were batched. The block that is not full yet is kept and is part of
the snapshot; an output larger than 512 bytes (a dead letter may have megabytes)
enters as its digest, so that the block stays small.

A block is packed by columns, which costs a fraction of packing its outputs one
by one: a JSON document of times, sizes and header names, its own size in front,
then a byte for each channel, then all keys, all values and all header contents.
"""

from collections.abc import Sequence
from hashlib import sha256
from itertools import chain

import orjson

from npstream.records import Channel, Headers, Output

BLOCK = 256
_DIGEST_BYTES = 16
_WHOLE_MAX_BYTES = 512
_BY_DIGEST = 100
"""Added to the channel of an output that is represented by its digest: no output has such a channel."""

_DECISIONS = Channel.DECISIONS

_Item = tuple[int, bytes | None, bytes | None, Headers, int]
"""An output, or what represents a large one."""


class Chain:
    """Digest of all full blocks, the open block, and the number of outputs so far."""

    def __init__(self, digest: bytes = bytes(_DIGEST_BYTES), count: int = 0, open_block: Sequence[_Item] = ()) -> None:
        self.count = count
        self._digest = digest
        self._open = list(open_block)

    def extend(self, outputs: Sequence[Output]) -> None:
        """Append outputs in order, folding each block as it fills."""
        self.count += len(outputs)
        self._open += outputs
        while len(self._open) >= BLOCK:
            self._digest = _fold(self._digest, self._open[:BLOCK])
            del self._open[:BLOCK]
        # Decisions are small but for odd keys; a dead letter must not be kept, nor hashed again with each batch.
        self._open = [item if item[0] is _DECISIONS else _light(item) for item in self._open]

    def hexdigest(self) -> str:
        """The proof over every output so far, the open block included."""
        return _fold(self._digest, self._open).hex()

    def dump(self) -> tuple[bytes, bytes]:
        """(digest of the full blocks, open block) for a snapshot; `load` is the inverse."""
        return self._digest, _pack(self._open)

    @classmethod
    def load(cls, digest: bytes, count: int, packed: bytes) -> "Chain":
        """A chain that continues where the dumped one ended. Raises ValueError for what `dump` did not write."""
        return cls(digest, count, _unpack(packed))


def _fold(digest: bytes, items: Sequence[_Item]) -> bytes:
    return sha256(digest + _pack(items)).digest()[:_DIGEST_BYTES]


def _light(item: _Item) -> _Item:
    """The output itself, or its digest when it is large."""
    channel, key, value, headers, timestamp_ms = item
    size = sum(len(part or b"") for part in (key, value, *(content for _, content in headers)))
    if size <= _WHOLE_MAX_BYTES:
        return item
    return _BY_DIGEST + channel, None, sha256(_columns([item])[1]).digest(), (), timestamp_ms


def _pack(items: Sequence[_Item]) -> bytes:
    """Unambiguous bytes of a block, large outputs by their digests: equal bytes mean equal outputs."""
    bound, packed = _columns(items)
    return packed if bound <= _WHOLE_MAX_BYTES else _columns([_light(item) for item in items])[1]


def _columns(items: Sequence[_Item]) -> tuple[int, bytes]:
    """(no item is larger than this, the packed items)."""
    channels, keys, values, headers, stamps = zip(*items, strict=True) if items else ((),) * 5
    names, contents = zip(*chain.from_iterable(headers), strict=True) if any(headers) else ((), ())
    counts = [*map(len, headers)]
    sizes = [_sizes(column) for column in (keys, values, contents)]
    # Never below the true size, also where all are None (-1): whether an item is light must not hang on its neighbours.
    longest_key, longest_value, longest_content = (max(0, max(column, default=0)) for column in sizes)
    bound = longest_key + longest_value + longest_content * max(counts, default=0)
    numbers = orjson.dumps([stamps, counts, names, *sizes])
    head = len(numbers).to_bytes(4, "little"), numbers, bytes(channels)
    try:
        return bound, b"".join((*head, *keys, *values, *contents))
    except TypeError:  # some are None, which their sizes show
        return bound, b"".join((*head, *filter(None, (*keys, *values, *contents))))


def _sizes(column: Sequence[bytes | None]) -> list[int]:
    """The size of each part, -1 for None."""
    try:
        return [*map(len, column)]  # type: ignore[arg-type]
    except TypeError:
        return [-1 if part is None else len(part) for part in column]


def _unpack(packed: bytes) -> list[_Item]:
    """The items of a packed block."""
    end = 4 + int.from_bytes(packed[:4], "little")
    stamps, counts, names, *sizes = orjson.loads(packed[4:end])
    begin = end + len(stamps)
    columns: list[list[bytes | None]] = []
    for column in sizes:
        columns.append([])
        for size in column:
            columns[-1].append(None if size < 0 else packed[begin : begin + size])
            begin += max(0, size)
    keys, values, contents = columns
    if begin != len(packed) or sum(counts) != len(names):
        raise ValueError("the open block is cut off")
    headers = iter(zip(names, contents, strict=True))
    own = [[next(headers) for _ in range(count)] for count in counts]
    return list(zip(packed[end : end + len(stamps)], keys, values, own, stamps, strict=True))
