"""The compiled BLAKE2b against the one of the standard library."""

import struct
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.digest import begin, dump, extend, hexdigest, key_of, keyed_draws, keys_of, load
from npstream.codec.event import ID_MAX_BYTES, EventId

texts = st.text(max_size=ID_MAX_BYTES).filter(lambda text: 0 < len(text.encode()) <= ID_MAX_BYTES)
words = st.lists(st.integers(0, 2**64 - 1), max_size=40)


def by_hashlib(identity: EventId) -> bytes:
    """The key of an id in the standard library's words."""
    text = b"s" + identity.encode() if isinstance(identity, str) else b"i%d" % identity
    return blake2b(text, digest_size=16).digest()


@settings(deadline=None)
@given(st.lists(texts | st.integers(-(2**70), 2**70), max_size=8))
def test_keys_are_those_of_the_standard_library(ids: list[EventId]) -> None:
    """Texts of any characters and whole numbers of any size, however they are mixed in a batch."""
    assert [row.astype("<u8").tobytes() for row in keys_of(ids)] == [by_hashlib(each) for each in ids]


@pytest.mark.parametrize("size", [1, 126, 127, 128, 254, 255, 256])
def test_keys_of_ids_that_end_with_a_block(size: int) -> None:
    """With its first byte an id fills one block of 128 bytes, or two, to the last byte, or goes a byte beyond."""
    assert key_of("x" * size) == by_hashlib("x" * size)


@settings(deadline=None)
@given(st.lists(words, max_size=8), st.integers(0, 8))
def test_a_running_digest_is_that_of_all_words(parts: list[list[int]], cut: int) -> None:
    """In whatever parts they come, and though it was saved and loaded in between."""
    running = begin()
    for index, part in enumerate(parts):
        if index == cut:
            running = load(dump(running))
        extend(running, np.array(part, np.uint64))

    everything = np.array([word for part in parts for word in part], "<u8").tobytes()
    assert hexdigest(running) == blake2b(everything, digest_size=16).hexdigest()
    assert hexdigest(running) == hexdigest(load(dump(running)))


def test_a_damaged_running_digest_is_refused() -> None:
    """Cut off, longer, or with more words in its block than it holds."""
    running = begin()
    extend(running, np.arange(20, dtype=np.uint64))
    data = dump(running)

    for damaged in (data[:-8], data + bytes(8), b"\x11" + data[1:]):
        with pytest.raises(ValueError, match="running digest is damaged"):
            load(damaged)


@settings(deadline=None)
@given(st.lists(texts, max_size=8), st.integers(0, 2**63 - 1))
def test_draws_are_digests_of_seed_and_key(found: list[str], seed: int) -> None:
    """The number of each key is that of hashlib for the seed and the key behind it."""
    keys = keys_of(found)
    expected = [
        int.from_bytes(blake2b(struct.pack("<QQQ", seed, *key), digest_size=16).digest()[:8], "little")
        for key in keys.tolist()
    ]

    assert keyed_draws(keys, seed).tolist() == expected
