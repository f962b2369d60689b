"""Which columns of a row are numbers and which are categories, and where each finds its cells.

Inside the model numbers come first, then categories, each in the order of the row.
"""

from typing import NamedTuple

import numpy as np

from npstream.arrays import Ints
from npstream.model.params import Params

MARKERS = 15
NUMBER_CELLS = MARKERS + 2
"""Cells of a number's table: one between any two markers and beyond the last, and one for a missing number."""
CODES = 2**24
"""A category's code is a whole number below this, which float32 still holds exactly."""
FERNS, FERN_BITS = 64, 5
FERN_CELLS = 2**FERN_BITS


class ColumnKinds(NamedTuple):
    """Derived from the parameters; never changes.

    `number` and `category` int64: positions in a row. `mask` int64: cells of each
    category less one. `first` int64[d + 1]: where the cells of each column begin, then
    those of the ferns; empty where there are no tables.
    """

    number: Ints
    category: Ints
    mask: Ints
    first: Ints


def columns_of(params: Params) -> ColumnKinds:
    """The columns of a model with these parameters."""
    buckets = np.array(params.buckets or (0,) * params.d, np.int64)
    mask = buckets[buckets > 0] - 1
    return ColumnKinds(np.flatnonzero(buckets == 0), np.flatnonzero(buckets), mask, _first_cells(params, mask))


def cells_of(params: Params) -> int:
    """How many cells all tables of such a model have together."""
    if params.preset != "plus":
        return 0
    return int(columns_of(params).first[-1] + FERNS * FERN_CELLS)


def _first_cells(params: Params, mask: Ints) -> Ints:
    if params.preset != "plus":
        return np.empty(0, np.int64)
    sizes = [NUMBER_CELLS] * (params.d - mask.size) + [int(m) + 1 for m in mask]
    return np.cumsum([0, *sizes])
