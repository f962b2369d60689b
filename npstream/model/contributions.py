"""Which features moved a score: what each selects in the tables, and the slope of the network along it.

Compiled and in one order of sums, so that the reasons of an alarm have the same
bits on any processor, and explaining a decision later finds the same numbers.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats
from npstream.jit import jit
from npstream.model.columns import FERN_BITS, FERNS, ColumnKinds
from npstream.model.lanes import lane_dot
from npstream.model.network import SHARE, Network, Scratch
from npstream.model.tables import Tables, TableScratch, ready


@dataclass(frozen=True, slots=True)
class Contributions:
    """One observation as the model sees it; all are float64[d].

    z            the features after standardisation (or whatever `input` says); 0 where one is missing or a category
    gradient     slope of the network's score along each z
    contribution gradient times z (to first order, what the feature adds against an average event), plus the cells
                 that the feature selects, which add up exactly to the tables' part of the score; a cell that five
                 comparisons select together counts a fifth for each
    """

    z: Floats
    gradient: Floats
    contribution: Floats


class Parts(NamedTuple):
    """Reused memory of one event: `gradient` of each number, `moved` of each column of the row."""

    gradient: Floats
    moved: Floats


@jit
def contribute(
    net: Network,
    scale: float,
    tables: Tables,
    columns: ColumnKinds,
    rows: int,
    work: Scratch,
    table_work: TableScratch,
    parts: Parts,
) -> None:
    """Fill `parts` for the observation that was scored last; `rows` have gone to the tables' markers.

    df/dz = scale * sum_j alpha_j (ws_j cos(alpha_j'z) - wc_j sin(alpha_j'z)), the derivative of eq. 9.
    """
    t, cos, sin, wc, ws = work.t, work.cos, work.sin, net.wc, net.ws
    slow_c, slow_s, share = net.slow_c, net.slow_s, net.head[SHARE]
    for j in range(t.size):
        c, s = wc[j], ws[j]
        if slow_c.size > 0:
            c, s = c + share * (slow_c[j] - c), s + share * (slow_s[j] - s)
        t[j] = scale * (s * cos[j] - c * sin[j])
    for i in range(columns.number.size):
        parts.gradient[i] = lane_dot(net.alpha[i], t)
        parts.moved[columns.number[i]] = parts.gradient[i] * work.z[i]
    for c in range(columns.category.size):
        parts.moved[columns.category[c]] = 0.0
    if tables.cell.size > 0 and ready(rows):
        _add_cells(tables, columns, table_work, parts.moved)


@jit
def _add_cells(tables: Tables, columns: ColumnKinds, work: TableScratch, moved: Floats) -> None:
    numbers, d = columns.number.size, moved.size
    for s in range(d):
        moved[_place(s, numbers, columns)] += work.cell[s]
    for b in range(FERN_BITS):
        for f in range(FERNS):
            moved[_place(int(tables.column[b, f]), numbers, columns)] += work.cell[d + f] / FERN_BITS


@jit
def _place(s: int, numbers: int, columns: ColumnKinds) -> int:
    """Where a row has what is number s inside the model."""
    return int(columns.number[s]) if s < numbers else int(columns.category[s - numbers])


@jit
def take_largest(moved: Floats, column: npt.NDArray[np.int32], contribution: Floats) -> None:
    """The columns that moved the score most, in either direction, the farthest first; a tie goes to the first column.

    `moved` is used up. What moved nothing is left out: its place keeps column -1.
    """
    for k in range(column.size):
        best = 0
        for i in range(moved.size):
            if abs(moved[i]) > abs(moved[best]):
                best = i
        if moved[best] == 0.0:
            return
        column[k] = best
        contribution[k] = moved[best]
        moved[best] = 0.0
