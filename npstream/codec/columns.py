"""Raw values of features to the columns of a model: scales, times as points on a circle. The same bits on any CPU."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npstream.codec.features import Feature
from npstream.jit import jit
from npstream.model.maths import log, sincos

_COPY, _LOG, _CIRCLE = 0, 1, 2
_DAY_S = 86_400.0
_MONDAY_S = 4 * _DAY_S
"""1970 began on a Thursday; weeks begin on Monday."""
_CYCLES_S = {"day": (_DAY_S, 0.0), "week": (7 * _DAY_S, _MONDAY_S), "year": (365.2425 * _DAY_S, 0.0)}
"""Length and beginning of each cycle. A year is the calendar's mean one: at most a day or two off the date."""
_TURN = 2.0 * math.pi


class Columns:
    """Makes the columns of one list of features; with none, each value is a column as it is."""

    def __init__(self, features: tuple[Feature, ...] | None) -> None:
        features = features or ()
        ops = [_CIRCLE if each.kind == "time" else _LOG if each.scale == "log" else _COPY for each in features]
        cycles = [_CYCLES_S[each.cycle or "day"] for each in features]
        self._as_they_are = not any(ops)
        self._d = sum(len(each.columns) for each in features)
        self._ops = np.array(ops, np.int8)
        self._periods = np.array([period for period, _ in cycles])
        self._begins = np.array([begin for _, begin in cycles])

    def fill(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """float[n, features] to float32[n, d]. NaN, for missing, stays NaN."""
        if self._as_they_are:
            return values.astype(np.float32)
        x = np.empty((len(values), self._d), np.float32)
        _fill(np.ascontiguousarray(values, np.float64), self._ops, self._periods, self._begins, x)
        return x


@jit
def _fill(
    values: NDArray[np.float64],
    ops: NDArray[np.int8],
    periods: NDArray[np.float64],
    begins: NDArray[np.float64],
    x: NDArray[np.float32],
) -> None:
    for e in range(values.shape[0]):
        column = 0
        for f in range(ops.size):
            value = values[e, f]
            if ops[f] == _CIRCLE:
                since = (value - begins[f]) / periods[f]
                sine, cosine = sincos((since - np.floor(since)) * _TURN)
                missing = value != value
                x[e, column] = np.nan if missing else sine
                x[e, column + 1] = np.nan if missing else cosine
                column += 2
            else:
                x[e, column] = signed_log(value) if ops[f] == _LOG else value
                column += 1


@jit
def signed_log(value: float) -> float:
    """log(1 + |value|) with the sign of `value`; NaN stays NaN."""
    if value != value:
        return value
    size = log(1.0 + abs(value))
    return -size if value < 0.0 else size
