"""Labelled observations that may still be corrected, the oldest first: a heap of their slots, in fixed memory.

One is only ever taken out when it is the oldest, to make room or because it expires.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Ints
from npstream.jit import jit_inline


class Labelled(NamedTuple):
    """`slot` int32[size], `parked_at` of none is less than that of (i - 1) // 2; `number` int64[1]."""

    slot: NDArray[np.int32]
    number: Ints


def labelled(size: int) -> Labelled:
    """Room for `size` of them."""
    return Labelled(np.zeros(size, np.int32), np.zeros(1, np.int64))


@jit_inline
def push(heap: Labelled, parked_at: Ints, slot: int) -> None:
    """One more; there is room."""
    at = heap.number[0]
    heap.number[0] += 1
    while at > 0:
        above = (at - 1) // 2
        if parked_at[heap.slot[above]] <= parked_at[slot]:
            break
        heap.slot[at] = heap.slot[above]
        at = above
    heap.slot[at] = slot


@jit_inline
def pop(heap: Labelled, parked_at: Ints) -> int:
    """Take out the oldest; there is one."""
    found = heap.slot[0]
    heap.number[0] -= 1
    end = heap.number[0]
    last = heap.slot[end]
    at = 0
    while 2 * at + 1 < end:
        below = 2 * at + 1
        if below + 1 < end and parked_at[heap.slot[below + 1]] < parked_at[heap.slot[below]]:
            below += 1
        if parked_at[last] <= parked_at[heap.slot[below]]:
            break
        heap.slot[at] = heap.slot[below]
        at = below
    heap.slot[at] = last
    return int(found)
