"""BLAKE2b in compiled code: the keys of ids, a batch at a time, and a running digest that a snapshot can hold.

The same digests as `hashlib.blake2b(..., digest_size=16)`. That one takes a
Python call for each id, and a digest that has begun cannot be saved.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.codec.event import EventId
from npstream.jit import jit, jit_inline

Words = NDArray[np.uint64]

KEY_BYTES = 16

_IV = np.array(
    [
        *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
        *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
    ],
    np.uint64,
)
_ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.int64,
)
_PARAMETERS = np.uint64(0x01010000 ^ KEY_BYTES)
"""No key, digests of 16 bytes."""
_BLOCK_BYTES = 128
_BLOCK_WORDS = _BLOCK_BYTES // 8
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_0, _16, _24, _32, _40, _48, _63, _1 = (np.uint64(n) for n in (0, 16, 24, 32, 40, 48, 63, 1))
_TEXT, _WHOLE = b"si"


class Running(NamedTuple):
    """A digest that has begun: chain uint64[8], open block uint64[16], [words in it, bytes before it] int64[2]."""

    chain: Words
    block: Words
    at: NDArray[np.int64]


def begin() -> Running:
    """The digest of nothing so far."""
    made = Running(np.empty(8, np.uint64), np.zeros(_BLOCK_WORDS, np.uint64), np.zeros(2, np.int64))
    _begin(made.chain)
    return made


def extend(running: Running, words: Words) -> None:
    """Add words, each as its eight bytes from the lowest."""
    with np.errstate(over="ignore"):
        _extend(running, words)


def hexdigest(running: Running) -> str:
    """The digest of everything so far, which may go on."""
    chain, block = running.chain.copy(), running.block.copy()
    filled, before = running.at.tolist()
    block[filled:] = 0
    with np.errstate(over="ignore"):
        _compress(chain, block, before + 8 * filled, True)
    return chain[:2].astype("<u8").tobytes().hex()


def dump(running: Running) -> bytes:
    """Canonical bytes; `load` is the inverse."""
    filled = int(running.at[0])
    parts = (running.at.astype("<i8"), running.chain.astype("<u8"), running.block[:filled].astype("<u8"))
    return b"".join(part.tobytes() for part in parts)


def load(data: bytes) -> Running:
    """A digest that goes on where the dumped one was. Raises ValueError for what `dump` did not write."""
    made = begin()
    head, tail = 8 * made.at.size, 8 * (made.at.size + made.chain.size)
    made.at[:] = np.frombuffer(data[:head], "<i8")
    made.chain[:] = np.frombuffer(data[head:tail], "<u8")
    filled, before = made.at.tolist()
    if not 0 <= filled <= _BLOCK_WORDS or before % _BLOCK_BYTES or len(data) != tail + 8 * filled:
        raise ValueError("the running digest is damaged")
    made.block[:filled] = np.frombuffer(data[tail:], "<u8")
    return made


def key_of(identity: EventId) -> bytes:
    """The 128 bits an id is remembered by; the text "7" and the number 7 are different ids."""
    return keys_of([identity]).astype("<u8").tobytes()


def keys_of(ids: Sequence[EventId]) -> Words:
    """uint64[n, 2], the key of each id, without a Python step per id where all of them are text."""
    texts: Sequence[str]
    if {*map(type, ids)} <= {str}:
        texts, prefixes = ids, np.full(len(ids), _TEXT, np.uint8)  # type: ignore[assignment]
    else:
        texts = [*map(str, ids)]
        prefixes = np.array([_TEXT if isinstance(each, str) else _WHOLE for each in ids], np.uint8)
    joined = "".join(texts)
    data = joined.encode()
    sizes = map(len, texts) if len(data) == len(joined) else (len(text.encode()) for text in texts)
    ends = np.cumsum(np.fromiter(sizes, np.int64, len(texts)))
    keys = np.empty((len(texts), 2), np.uint64)
    with np.errstate(over="ignore"):
        _keys(np.frombuffer(data, np.uint8), ends, prefixes, keys, np.empty(8 + _BLOCK_WORDS, np.uint64))
    return keys


def keyed_draws(keys: Words, seed: int) -> Words:
    """uint64[n], a number for each key that nobody can guess without the seed: the digest of seed and key."""
    draws = np.empty(len(keys), np.uint64)
    with np.errstate(over="ignore"):
        _draw(keys, np.uint64(seed), draws, np.empty(8 + _BLOCK_WORDS, np.uint64))
    return draws


@jit
def _draw(keys: Words, seed: np.uint64, draws: Words, work: Words) -> None:
    chain, block = work[:8], work[8:]
    for e in range(draws.size):
        _begin(chain)
        for i in range(_BLOCK_WORDS):
            block[i] = _0
        block[0], block[1], block[2] = seed, keys[e, 0], keys[e, 1]
        _compress(chain, block, 24, True)
        draws[e] = chain[0]


@jit
def _keys(
    text: NDArray[np.uint8], ends: NDArray[np.int64], prefixes: NDArray[np.uint8], keys: Words, work: Words
) -> None:
    """Key e is that of the byte prefixes[e] and the text up to ends[e]."""
    chain, block = work[:8], work[8:]
    start = 0
    for e in range(ends.size):
        _begin(chain)
        size = ends[e] - start + 1
        done = 0
        while True:
            for i in range(_BLOCK_WORDS):
                block[i] = _0
            length = min(size - done, _BLOCK_BYTES)
            for k in range(length):
                byte = prefixes[e] if done + k == 0 else text[start + done + k - 1]
                block[k >> 3] |= np.uint64(byte) << np.uint64(8 * (k & 7))
            done += length
            _compress(chain, block, done, done == size)
            if done == size:
                break
        keys[e, 0], keys[e, 1] = chain[0], chain[1]
        start = ends[e]


@jit
def _begin(chain: Words) -> None:
    for i in range(8):
        chain[i] = _IV[i]
    chain[0] ^= _PARAMETERS


@jit
def _extend(running: Running, words: Words) -> None:
    chain, block, at = running.chain, running.block, running.at
    for i in range(words.size):
        if at[0] == _BLOCK_WORDS:
            # Not before more comes: the last block of a message is compressed as the last.
            at[1] += _BLOCK_BYTES
            _compress(chain, block, at[1], False)
            at[0] = 0
        block[at[0]] = words[i]
        at[0] += 1


@jit
def _compress(h: Words, m: Words, size: int, last: bool) -> None:
    """The compression function of RFC 7693, section 3.2; `size` bytes end with this block."""
    a0, a1, a2, a3, b0, b1, b2, b3 = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    c0, c1, c2, c3 = _IV[0], _IV[1], _IV[2], _IV[3]
    d0, d1, d2, d3 = _IV[4] ^ np.uint64(size), _IV[5], _IV[6], _IV[7]
    if last:
        d2 ^= _ALL
    for r in range(12):
        s = _ORDER[r]
        a0, b0, c0, d0 = _mix(a0, b0, c0, d0, m[s[0]], m[s[1]])
        a1, b1, c1, d1 = _mix(a1, b1, c1, d1, m[s[2]], m[s[3]])
        a2, b2, c2, d2 = _mix(a2, b2, c2, d2, m[s[4]], m[s[5]])
        a3, b3, c3, d3 = _mix(a3, b3, c3, d3, m[s[6]], m[s[7]])
        a0, b1, c2, d3 = _mix(a0, b1, c2, d3, m[s[8]], m[s[9]])
        a1, b2, c3, d0 = _mix(a1, b2, c3, d0, m[s[10]], m[s[11]])
        a2, b3, c0, d1 = _mix(a2, b3, c0, d1, m[s[12]], m[s[13]])
        a3, b0, c1, d2 = _mix(a3, b0, c1, d2, m[s[14]], m[s[15]])
    h[0] ^= a0 ^ c0
    h[1] ^= a1 ^ c1
    h[2] ^= a2 ^ c2
    h[3] ^= a3 ^ c3
    h[4] ^= b0 ^ d0
    h[5] ^= b1 ^ d1
    h[6] ^= b2 ^ d2
    h[7] ^= b3 ^ d3


@jit_inline
def _mix(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, x: np.uint64, y: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a = a + b + x
    d ^= a
    d = (d >> _32) | (d << _32)
    c = c + d
    b ^= c
    b = (b >> _24) | (b << _40)
    a = a + b + y
    d ^= a
    d = (d >> _16) | (d << _48)
    c = c + d
    b ^= c
    b = (b >> _63) | (b << _1)
    return a, b, c, d
