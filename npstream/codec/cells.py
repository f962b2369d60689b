"""Numbers and ids as text, a column at a time: what JSON would write for each, for the price of one call."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from npstream.codec.event import EventId


def cells(column: NDArray[np.generic] | Sequence[int]) -> list[bytes]:
    """The JSON text of each number in its shortest form, null for NaN and infinity.

    `column` is a contiguous [n] of float64 or integers, or a sequence of int.
    A number's text holds no comma, so the text of the whole can be cut at its commas.
    """
    return _line(column).split(b",") if len(column) else []


def words(column: NDArray[np.generic]) -> list[str]:
    """The same as str."""
    return _line(column).decode().split(",") if len(column) else []


def id_words(ids: Sequence[EventId]) -> list[str]:
    """The JSON text of each event id. An id may hold a comma: then there are too many pieces."""
    found = _line(ids).decode().split(",")
    return found if len(found) == len(ids) else [orjson.dumps(each).decode() for each in ids]


def _line(column: Any) -> bytes:
    return orjson.dumps(column, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
