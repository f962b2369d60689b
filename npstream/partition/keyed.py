"""Entries found by their key and kept in order of arrival, in arrays of fixed size that compiled code works on.

An entry's slot is only an address: it never influences anything, so a restored
state may use other slots than the one that was saved. Slots are found through a
table with open addressing, in which a removed entry leaves no mark.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Ints
from npstream.codec.digest import Words
from npstream.jit import jit, jit_inline
from npstream.model.generator import mix

Slots = NDArray[np.int32]

# What `Keyed.numbers` holds: entries, slots that were ever used, the first free one of these (plus one, 0: none).
COUNT, USED, FREE = range(3)

_SALT = hash(b"npstream.partition.keyed") % 2**64
"""Of this process alone, and seen in no result: whoever chooses ids cannot choose where they lie in the table."""


class Keyed(NamedTuple):
    """`key` uint64[size, 2]; `before` and `after` int32[size + 1], the last of which are the ends; `table` slot + 1.

    `salt` uint64[1] is an array because compiled code that is kept on disk would keep the constant of another process.
    """

    key: Words
    before: Slots
    after: Slots
    table: Slots
    numbers: Ints
    salt: Words


def keyed(size: int) -> Keyed:
    """Room for `size` entries; memory is taken as they come."""
    made = Keyed(
        np.zeros((size, 2), np.uint64),
        np.zeros(size + 1, np.int32),
        np.zeros(size + 1, np.int32),
        np.zeros(1 << (2 * size - 1).bit_length(), np.int32),  # at most half full
        np.zeros(3, np.int64),
        np.array([_SALT], np.uint64),
    )
    made.before[size] = made.after[size] = size
    return made


def slots_of(entries: Keyed) -> Slots:
    """The slots in order of arrival."""
    found = np.empty(int(entries.numbers[COUNT]), np.int32)
    _walk(entries, found)
    return found


def append_all(entries: Keyed, keys: Words) -> Slots:
    """Append entries with these keys; their slots. Raises ValueError when a key is there twice."""
    slots = np.empty(len(keys), np.int32)
    with np.errstate(over="ignore"):
        if not _append_all(entries, keys, slots):
            raise ValueError("an id is there twice")
    return slots


def has(entries: Keyed, key: Iterable[np.uint64]) -> bool:
    """Whether there is an entry with this key."""
    first, second = key
    with np.errstate(over="ignore"):
        return find(entries, first, second) >= 0


@jit_inline
def find(entries: Keyed, first: np.uint64, second: np.uint64) -> int:
    """The slot of a key, -1 when there is none."""
    key, table = entries.key, entries.table
    mask = table.size - 1
    at = _home(first, mask, entries.salt)
    while table[at]:
        slot = table[at] - 1
        if key[slot, 0] == first and key[slot, 1] == second:
            return int(slot)
        at = (at + 1) & mask
    return -1


@jit_inline
def append(entries: Keyed, first: np.uint64, second: np.uint64) -> int:
    """A new last entry; its slot. There is room, and the key is not there yet."""
    key, before, after, table, numbers, _ = entries
    if numbers[FREE]:
        slot = numbers[FREE] - 1
        numbers[FREE] = after[slot]
    else:
        slot = numbers[USED]
        numbers[USED] += 1
    numbers[COUNT] += 1
    key[slot, 0], key[slot, 1] = first, second
    ends = key.shape[0]
    last = before[ends]
    before[slot], after[slot] = last, ends
    after[last] = before[ends] = slot
    mask = table.size - 1
    at = _home(first, mask, entries.salt)
    while table[at]:
        at = (at + 1) & mask
    table[at] = slot + 1
    return int(slot)


@jit_inline
def remove(entries: Keyed, slot: int) -> None:
    """Take an entry out. What else is kept by its slot stays until the slot is used again."""
    key, before, after, table, numbers, salt = entries
    after[before[slot]], before[after[slot]] = after[slot], before[slot]
    after[slot] = numbers[FREE]
    numbers[FREE] = slot + 1
    numbers[COUNT] -= 1
    mask = table.size - 1
    hole = _home(key[slot, 0], mask, salt)
    while table[hole] != slot + 1:
        hole = (hole + 1) & mask
    at = (hole + 1) & mask
    while table[at]:
        # Whoever was pushed past the hole moves into it, so that a search never ends too early.
        home = _home(key[table[at] - 1, 0], mask, salt)
        if ((at - home) & mask) >= ((at - hole) & mask):
            table[hole] = table[at]
            hole = at
        at = (at + 1) & mask
    table[hole] = 0


@jit_inline
def oldest(entries: Keyed) -> int:
    """The slot of the first entry; there is one."""
    return int(entries.after[entries.key.shape[0]])


@jit_inline
def _home(first: np.uint64, mask: int, salt: Words) -> int:
    return np.int64(mix(first ^ salt[0]) & np.uint64(mask))  # type: ignore[return-value]


@jit
def _walk(entries: Keyed, found: Slots) -> None:
    slot = entries.key.shape[0]
    for i in range(found.size):
        slot = entries.after[slot]
        found[i] = slot


@jit
def _append_all(entries: Keyed, keys: Words, slots: Slots) -> bool:
    for i in range(keys.shape[0]):
        if find(entries, keys[i, 0], keys[i, 1]) >= 0:
            return False
        slots[i] = append(entries, keys[i, 0], keys[i, 1])
    return True
