"""Arrays by what they hold."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Counts = NDArray[np.int32]
Features = NDArray[np.float32]
Signs = NDArray[np.int8]
"""Labels or decisions: 1 or -1."""

Scalar = TypeVar("Scalar", bound=np.generic)


def owned(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The array, copied if it is read-only or not contiguous: for every other kind code would be compiled again."""
    return array if array.flags.c_contiguous and array.flags.writeable else array.copy(order="C")
