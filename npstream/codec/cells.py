"""Numbers as text, a column at a time: what JSON would write for each, for the price of one call."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray


def cells(column: NDArray[np.generic] | Sequence[int]) -> list[bytes]:
    """The JSON text of each number in its shortest form, null for NaN and infinity.

    `column` is a contiguous [n] of float64 or integers, or a sequence of int.
    A number's text holds no comma, so the text of the whole can be cut at its commas.
    """
    whole: Any = column
    return orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",") if len(column) else []
