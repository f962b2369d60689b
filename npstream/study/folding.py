"""One-hot columns folded back into the categories that they came from.

The rule: from left to right, a run of adjacent 0/1 columns is extended as long as no
row has more than one 1 in it. A run of at least two columns is a category: its
value is the place of the 1, and it is missing where a row has none. All other
columns stay numbers, a single flag or a constant column among them.
"""

from typing import NamedTuple

import numpy as np

from npstream.arrays import Features

BUCKETS = 64
"""Cells of a category's table, unless it has more values."""


class Folded(NamedTuple):
    """`x` float32[rows, d], numbers before categories; `buckets` as `Params` takes them; `values`, how many columns
    each category was made of.
    """

    x: Features
    buckets: tuple[int, ...]
    values: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """How many of the first columns are numbers."""
        return len(self.buckets) - len(self.values)


def fold(x: Features) -> Folded:
    """The same rows with every one-hot group as one column of codes, NaN where a row has none of its values."""
    groups = one_hot_groups(x)
    in_group = {column for group in groups for column in group}
    numbers = [column for column in range(x.shape[1]) if column not in in_group]
    folded = np.column_stack([x[:, numbers], *(_codes(x[:, group]) for group in groups)])
    values = tuple(len(group) for group in groups)
    return Folded(np.ascontiguousarray(folded, np.float32), (0,) * len(numbers) + tuple(map(_cells, values)), values)


def one_hot_groups(x: Features) -> list[range]:
    """The columns of each group, by the rule above."""
    flag = ((x == 0) | (x == 1)).all(axis=0)
    groups, start = [], 0
    while start < x.shape[1]:
        end, taken = start, np.zeros(len(x), np.bool_)
        while end < x.shape[1] and flag[end] and not (taken & (x[:, end] == 1)).any():
            taken |= x[:, end] == 1
            end += 1
        if end - start > 1:
            groups.append(range(start, end))
        start = max(end, start + 1)
    return groups


def _codes(group: Features) -> Features:
    """Which of a group's columns is 1 in each row, NaN where none is."""
    return np.where(group.any(axis=1), group.argmax(axis=1), np.nan).astype(np.float32)


def _cells(values: int) -> int:
    """The next power of two, at least `BUCKETS`."""
    return int(max(BUCKETS, 1 << (values - 1).bit_length()))
