"""The tables beside the network: a score is also a sum of cells that the features select.

Each column has a table of its own: a number selects the cell between two of its
quantile markers (a missing one has a cell for itself), a category the cell of its
hash. 64 ferns see columns together: five comparisons choose one of 32 cells.

    f_T(x) = sum of the d + 64 selected cells

Only selected cells learn, so that what is known of rare values is not forgotten
while others pass. Cells and their accumulators are float32, and so is their step.

The markers follow the quantiles of each number: a ring of 64 raw rows takes every
learned event, every 4th after the first 1,000; whenever it is full (the first time
also at 16 and 32 rows) each marker moves towards the ring's quantile.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats, Ints
from npstream.jit import jit, jit_inline
from npstream.model.columns import CODES, FERN_BITS, FERN_CELLS, FERNS, MARKERS, NUMBER_CELLS, ColumnKinds
from npstream.model.generator import uniform, word_of
from npstream.model.lanes import lane_sum
from npstream.model.scaler import CLIP

RING = 64
# Side by side, so that a selected cell costs one visit to memory.
VALUE, ACC = range(2)
_FIRST_ROWS = 16
_DENSE_EVENTS, _STRIDE = 1000, 4
# Markers forget over this many events, as the scaler does.
_MEMORY = 10_000
# A column with so many of its 15 markers at the median is nearly constant, such as a rare flag: one deviation
# of it is all or nothing, and a sinusoid would swing wildly with it.
_SPARSE_FROM = 14
_SPARSE_CLIP = 1.0
# Levels of the ferns' comparisons: the outermost quantiles would split off next to nothing.
_LEVEL_LOW, _LEVEL_RANGE = 0.04, 0.92
_REDRAWS = 8
_FORGET = 1.0 - 1e-4
_TOP_BIT = np.uint64(63)

Singles = npt.NDArray[np.float32]


class Tables(NamedTuple):
    """Cells, and what selects them; all empty where the preset has no tables.

    `cell` float32[cells, 2]: value and accumulator; `marker` float64[15, numbers]; `ring` float32[64, numbers];
    `valued` float64[numbers], values behind the markers; `column` uint16, `level` and
    `limit` float32, each [5, 64]: what each bit of each fern compares.
    """

    cell: Singles
    marker: Floats
    ring: Singles
    valued: Floats
    column: npt.NDArray[np.uint16]
    level: Singles
    limit: Singles


class TableScratch(NamedTuple):
    """Reused memory of one event: which cells it selects, and what they hold.

    `x` float32[d] has the numbers, then zeros; `seen` float32[5, 64] is what each fern bit looks at, `sorted`
    float32[64, numbers] a ring in order. `at` is unsigned: a signed index is compared with zero wherever it is used.
    """

    code: Ints
    x: Singles
    at: npt.NDArray[np.uint32]
    cell: Singles
    acc: Singles
    seen: Singles
    sorted: Singles


@jit
def draw_ferns(key: np.uint64, draws: int, d: int, column: npt.NDArray[np.uint16], level: Singles) -> int:
    """Draw what the ferns look at, from draw number `draws` on; returns the number of draws taken so far."""
    for b in range(FERN_BITS):
        for f in range(FERNS):
            column[b, f] = np.int64(uniform(key, draws) * d)
            level[b, f] = np.float32(_LEVEL_LOW + _LEVEL_RANGE * uniform(key, draws + 1))
            draws += 2
    return draws


@jit
def ready(rows: int) -> bool:
    """Tables take part in the score from the first markers on."""
    return rows >= _FIRST_ROWS


@jit
def code_of(value: float) -> int:
    """The number of a category; a missing one is a value of its own."""
    return int(value) if value == value else CODES


@jit_inline
def look_up(x: Floats, tables: Tables, columns: ColumnKinds, key: np.uint64, rows: int, work: TableScratch) -> float:
    """The sum of the selected cells, whose places stay in `work` for a step; 0 before there are markers."""
    if not ready(rows):
        return 0.0
    numbers, categories = x.size, work.code.size
    _number_cells(x, tables.marker, columns.first, work.at)
    for c in range(categories):
        word = word_of(key, work.code[c], numbers + c)
        work.at[numbers + c] = columns.first[numbers + c] + np.int64(word & np.uint64(columns.mask[c]))
    missing = False
    for i in range(numbers):
        work.x[i] = x[i]
        missing |= x[i] != x[i]
    _look(work.x, tables.column, work.seen)
    if missing:
        _look_past_missing(tables.level, work.seen)
    if categories:
        _look_at_categories(tables, key, numbers, work)
    _fern_cells(work.seen, tables.limit, columns.first[-1], work.at[numbers + categories :])
    n = work.at.size
    for s in range(n):
        work.cell[s] = tables.cell[work.at[s], VALUE]
    return lane_sum(work.cell, n)


@jit
def _number_cells(x: Floats, marker: Floats, first: Ints, at: npt.NDArray[np.uint32]) -> None:
    """The number of markers below each value; a missing one, which is below none and above none, has the last cell."""
    for i in range(x.size):
        below = 0
        for k in range(MARKERS):
            below += 1 if marker[k, i] < x[i] else 0
        at[i] = first[i] + (below if x[i] == x[i] else NUMBER_CELLS - 1)


@jit
def _look(x: Singles, column: npt.NDArray[np.uint16], seen: Singles) -> None:
    """Gather what the bits compare. In a loop of its own: fused with the comparison neither becomes vector code."""
    for b in range(FERN_BITS):
        for f in range(FERNS):
            seen[b, f] = x[column[b, f]]


@jit
def _look_past_missing(level: Singles, seen: Singles) -> None:
    """A missing number falls on the rarer side of a comparison: it is more like a rare value than like a usual one."""
    low, high = np.float32(-np.inf), np.float32(np.inf)
    for b in range(FERN_BITS):
        for f in range(FERNS):
            if seen[b, f] != seen[b, f]:
                seen[b, f] = high if level[b, f] >= 0.5 else low


@jit_inline
def _look_at_categories(tables: Tables, key: np.uint64, numbers: int, work: TableScratch) -> None:
    """A bit on a category is a coin tossed once for each of its values: above the limit (0) for a random half."""
    d = numbers + work.code.size
    for b in range(FERN_BITS):
        for f in range(FERNS):
            c = np.int64(tables.column[b, f]) - numbers
            if c >= 0:
                word = word_of(key, work.code[c], d + b * FERNS + f)
                work.seen[b, f] = np.float32(word >> _TOP_BIT)


@jit
def _fern_cells(seen: Singles, limit: Singles, first: int, at: npt.NDArray[np.uint32]) -> None:
    """Bits become cells; counted in float32, so that the comparison's vector width is kept."""
    zero = np.float32(0.0)
    for f in range(FERNS):
        cell = zero
        for b in range(FERN_BITS):
            cell += np.float32(1 << b) if seen[b, f] > limit[b, f] else zero
        at[f] = np.uint32(cell) + np.uint32(first + FERN_CELLS * f)


@jit_inline
def table_step(tables: Tables, g: float, eta: float, rows: int, work: TableScratch) -> None:
    """One Adagrad step of the cells that `look_up` selected; g is the slope of the loss by their sum."""
    if not ready(rows):
        return
    n = work.at.size
    for s in range(n):
        work.acc[s] = tables.cell[work.at[s], ACC]
    _step(work.cell, work.acc, g, eta)
    for s in range(n):
        tables.cell[work.at[s], VALUE] = work.cell[s]
        tables.cell[work.at[s], ACC] = work.acc[s]


@jit
def _step(cell: Singles, acc: Singles, g: float, eta: float) -> None:
    """The accumulator starts from 1: a cell's first steps are small, since one event says little about it."""
    keep, square, step, one = np.float32(_FORGET), np.float32(g * g), np.float32(eta * g), np.float32(1.0)
    for s in range(cell.size):
        acc[s] = keep * acc[s] + square
        cell[s] -= step / np.sqrt(acc[s] + one)


@jit_inline
def take_row(
    x: Floats, t: int, rows: int, key: np.uint64, draws: int, tables: Tables, clip: Floats, work: TableScratch
) -> tuple[int, int]:
    """Take the t-th learned row into the ring; move the markers, and what follows from them, when it is time.

    Returns how many rows the ring has taken and how many random numbers were drawn so far.
    """
    stride = 1 if t <= _DENSE_EVENTS else _STRIDE
    if t % stride != 0:
        return rows, draws
    _keep(x, rows % RING, tables.ring, tables.valued)
    rows += 1
    if rows % RING == 0 or rows == _FIRST_ROWS or rows == 2 * _FIRST_ROWS:
        filled = RING if rows % RING == 0 else rows
        _move_markers(tables.ring, filled, stride, tables.marker, tables.valued, work.sorted)
        _find_sparse(tables.marker, clip)
        if rows == RING:
            draws = _redraw_constant(key, draws, x.size + work.code.size, tables.marker, tables.column)
        _set_limits(tables.marker, tables.column, tables.level, tables.limit)
    return rows, draws


@jit
def _keep(x: Floats, place: int, ring: Singles, valued: Floats) -> None:
    for i in range(x.size):
        there = x[i] == x[i]
        # One form of NaN, whatever came: the bytes of equal states are equal.
        ring[place, i] = x[i] if there else np.nan
        valued[i] += 1.0 if there else 0.0


@jit
def _move_markers(ring: Singles, filled: int, stride: int, marker: Floats, valued: Floats, ordered: Singles) -> None:
    """Towards the ring's quantiles, by the share that its values have in all that were taken."""
    _sort_columns(ring, filled, ordered)
    for i in range(ring.shape[1]):
        m = 0
        for r in range(filled):
            m += 1 if ordered[r, i] < np.inf else 0
        if m == 0:
            continue
        rate = max(m / valued[i], m * stride / _MEMORY)
        for k in range(MARKERS):
            rank = min(max((k + 0.5) / MARKERS * m - 0.5, 0.0), m - 1.0)
            low = int(rank)
            a, b = np.float64(ordered[low, i]), np.float64(ordered[min(low + 1, m - 1), i])
            # Written so that equal values give exactly that value, and the cells of ties stay apart.
            quantile = a + (rank - low) * (b - a)
            marker[k, i] += rate * (quantile - marker[k, i])


@jit
def _sort_columns(ring: Singles, filled: int, ordered: Singles) -> None:
    """Each column of the filled part in ascending order, missing values (as infinity) last.

    A bitonic network: its exchanges do not depend on the values, so that a row of all columns is exchanged at a time.
    """
    numbers = ring.shape[1]
    for r in range(filled):
        for i in range(numbers):
            ordered[r, i] = ring[r, i] if ring[r, i] == ring[r, i] else np.float32(np.inf)
    size = 2
    while size <= filled:
        gap = size // 2
        while gap > 0:
            for r in range(filled):
                other = r ^ gap
                if other > r:
                    low, high = (r, other) if r & size == 0 else (other, r)
                    for i in range(numbers):
                        a, b = ordered[low, i], ordered[high, i]
                        ordered[low, i] = b if b < a else a
                        ordered[high, i] = a if b < a else b
            gap //= 2
        size *= 2


@jit
def _find_sparse(marker: Floats, clip: Floats) -> None:
    for i in range(clip.size):
        equal = 0
        for k in range(MARKERS):
            equal += 1 if marker[k, i] == marker[MARKERS // 2, i] else 0
        clip[i] = _SPARSE_CLIP if equal >= _SPARSE_FROM else CLIP


@jit
def _redraw_constant(key: np.uint64, draws: int, d: int, marker: Floats, column: npt.NDArray[np.uint16]) -> int:
    """Bits that look at a column without a second value so far draw another one."""
    numbers = marker.shape[1]
    for b in range(FERN_BITS):
        for f in range(FERNS):
            for _ in range(_REDRAWS):
                c = np.int64(column[b, f])
                if c >= numbers or marker[0, c] != marker[MARKERS - 1, c]:
                    break
                column[b, f] = np.int64(uniform(key, draws) * d)
                draws += 1
    return draws


@jit
def _set_limits(marker: Floats, column: npt.NDArray[np.uint16], level: Singles, limit: Singles) -> None:
    for b in range(FERN_BITS):
        for f in range(FERNS):
            c = int(column[b, f])
            # A bit on a category is 0 or 1 already.
            limit[b, f] = np.float32(_limit(marker, c, level[b, f])) if c < marker.shape[1] else np.float32(0.0)


@jit
def _limit(marker: Floats, c: int, level: float) -> float:
    """The value of a column at a level, below the top marker where one is lower: above it nothing would be left."""
    place = np.float64(level) * MARKERS - 0.5
    k = np.int64(place)
    value = marker[k, c] + (place - k) * (marker[k + 1, c] - marker[k, c])
    top = marker[MARKERS - 1, c]
    if value >= top:
        for lower in range(MARKERS - 2, -1, -1):
            if marker[lower, c] < top:
                return float(marker[lower, c])
    return float(value)
