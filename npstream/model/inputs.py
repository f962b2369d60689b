"""Reading what a notebook user hands over: rows, dicts, scores, labels.

Data that cannot be used raise `DataError` naming the argument, what it is and what
is allowed, before anything can reach a weight.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats
from npstream.errors import DataError, SettingsError
from npstream.model.columns import CODES
from npstream.model.params import Params

Number = TypeVar("Number", np.float32, np.float64)
Observation = Sequence[float] | Mapping[str, float] | npt.NDArray[np.generic] | float


def rows_of(X: npt.ArrayLike, params: Params) -> npt.NDArray[np.float32]:
    """Features as float32[rows, d], NaN where one is missing, a category as its code."""
    rows = _array("X", X, np.float32)
    _refuse_unless(rows.ndim == 2 and rows.shape[1] == params.d, f"X: shape {rows.shape} is not (rows, {params.d})")
    if params.takes_missing:
        _refuse_unless(not np.isinf(rows).any(), "X: not all features are finite float32 numbers or NaN (missing)")
    else:
        _refuse_unless(bool(np.isfinite(rows).all()), "X: not all features are finite float32 numbers")
    codes = rows[:, np.flatnonzero(params.buckets)]
    known = np.isnan(codes) | ((codes >= 0) & (codes < CODES) & (codes == np.floor(codes)))
    _refuse_unless(bool(known.all()), f"X: a category is a whole number from 0 to {CODES - 1}, or NaN (missing)")
    return rows


def scores_of(X: npt.ArrayLike) -> Floats:
    """Scores as float64[rows]."""
    scores = _array("scores", X, np.float64).reshape(-1)
    _refuse_unless(bool(np.isfinite(scores).all()), "scores: not all are finite numbers")
    return scores


def labels_of(y: npt.ArrayLike, n: int) -> npt.NDArray[np.int8]:
    """Labels as 1 and -1; 0 and false count as non-target."""
    given = np.asarray(y)
    _refuse_unless(given.shape == (n,), f"y: shape {given.shape} is not ({n},), one label for each row")
    unknown = given[~np.isin(given, (1, 0, -1))]
    _refuse_unless(unknown.size == 0, f"y: label {unknown[:1].tolist()} is not one of 1, -1, 0, true, false")
    return np.where(given > 0, 1, -1).astype(np.int8)


def features_of(features: Sequence[str] | None, d: int) -> tuple[str, ...] | None:
    """The names of a model's d features in its order, None when it has none. Raises `SettingsError`."""
    if features is None:
        return None
    if len(features) != d:
        raise SettingsError([f"features: {len(features)} given, d is {d}; name each feature once"])
    twice = next((name for name in features if features.count(name) > 1), None)
    if twice is not None:
        raise SettingsError([f"features: {twice!r} is named twice"])
    return tuple(features)


def row_of(x: Mapping[str, float], features: tuple[str, ...] | None) -> list[float]:
    """A dict in the order of the model's features; what else it holds is ignored, as the worker does."""
    _refuse_unless(
        features is not None,
        "x: a dict needs the order of its features; give it, for instance "
        f"Model.create(params, features={list(x)!r:.120})",
    )
    names = features or ()
    missing = [name for name in names if name not in x]
    _refuse_unless(not missing, f"x: has no {', '.join(missing)}; the model's features are {', '.join(names)}")
    return [x[name] for name in names]


def _array(name: str, given: npt.ArrayLike, dtype: type[Number]) -> npt.NDArray[Number]:
    try:
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(given, dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: cannot be read as numbers ({error})") from None


def _refuse_unless(holds: bool, problem: str) -> None:
    if not holds:
        raise DataError(problem)
