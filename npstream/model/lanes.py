"""Sums in one order, whatever the vector width of the processor."""

import numpy as np
import numpy.typing as npt

from npstream.jit import jit


@jit
def lane_sum(values: npt.NDArray[np.float64] | npt.NDArray[np.float32], n: int) -> float:
    """Sum of the first n values: eight running sums, joined pairwise, then the tail one by one."""
    a = b = c = d = e = f = g = h = np.float64(0.0)
    whole = n - n % 8
    for j in range(0, whole, 8):
        a += values[j]
        b += values[j + 1]
        c += values[j + 2]
        d += values[j + 3]
        e += values[j + 4]
        f += values[j + 5]
        g += values[j + 6]
        h += values[j + 7]
    total = ((a + e) + (c + g)) + ((b + f) + (d + h))
    for j in range(whole, n):
        total += values[j]
    return total


@jit
def lane_dot(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> float:
    """Sum of the products of two arrays of one length, in the order of `lane_sum`."""
    a = b = c = d = e = f = g = h = np.float64(0.0)
    n = left.size
    whole = n - n % 8
    for j in range(0, whole, 8):
        a += left[j] * right[j]
        b += left[j + 1] * right[j + 1]
        c += left[j + 2] * right[j + 2]
        d += left[j + 3] * right[j + 3]
        e += left[j + 4] * right[j + 4]
        f += left[j + 5] * right[j + 5]
        g += left[j + 6] * right[j + 6]
        h += left[j + 7] * right[j + 7]
    total = ((a + e) + (c + g)) + ((b + f) + (d + h))
    for j in range(whole, n):
        total += left[j] * right[j]
    return total
