"""What a notebook holds as tables: pandas and Polars frames, arrow tables, arrays, lists of rows, single observations.

No library is imported here: a frame brings its own.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Floats
from npstream.codec.features import BUCKETS_DEFAULT, Feature, FeatureKind, column_of, steps_of
from npstream.codec.mapping import find
from npstream.codec.table import Column, Distinct, ListColumn, Role, encoded
from npstream.codec.times import seconds_of_datetimes
from npstream.data.arrow_table import table_columns
from npstream.errors import DataError

Frame = Mapping[str, Column]
"""Columns by name, in their order."""


@dataclass(frozen=True, slots=True)
class ArrayColumn:
    """One column of a numpy array of numbers, truths or times."""

    name: str
    values: NDArray[Any] = field(repr=False)

    def numbers(self) -> Floats | None:
        """Integers and floats."""
        return self.values.astype(np.float64) if self.values.dtype.kind in "iuf" else None

    def seconds(self) -> Floats | None:
        """Numpy's own times."""
        return seconds_of_datetimes(self.values) if self.values.dtype.kind == "M" else None

    def distinct(self, role: Role) -> Distinct:
        """Whole numbers are whole, also where missing ones have made them floats."""
        return encoded(self.values.tolist(), whole=role in ("category", "id"))

    def where(self, row: int) -> str:
        """By row and name."""
        return f"row {row + 1}, column {self.name}"


def columns_of_frame(X: Any) -> Frame | None:
    """The columns of a frame by name, None for what is no frame. Raises `DataError` for names that are not unique."""
    library = type(X).__module__.partition(".")[0]
    names = {"pandas": "columns", "polars": "columns", "pyarrow": "column_names"}.get(library)
    if names is None or not hasattr(X, names):
        return None
    if library == "pyarrow":
        return table_columns(X)
    listed = [str(name) for name in X.columns]
    twice = next((name for name in listed if listed.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"X: two columns are named {twice!r}; give each a name of its own")
    column_of_series = _of_pandas if library == "pandas" else _of_polars
    series = [X.iloc[:, place] if library == "pandas" else X[name] for place, name in enumerate(X.columns)]
    return {name: column_of_series(name, own) for name, own in zip(listed, series, strict=True)}


def columns_of_rows(X: Any, names: Sequence[str]) -> Frame:
    """An array, or a list of rows, whose columns have these names in this order. Raises `DataError`."""
    try:
        array = np.asarray(X) if isinstance(X, np.ndarray) else np.array(X, object)
    except ValueError as error:
        raise DataError(f"X: is not a table ({error})") from None
    if array.ndim != 2 or array.shape[1] != len(names):
        raise DataError(f"X: shape {array.shape} is not (rows, {len(names)}): {', '.join(names)}")
    if array.dtype.kind in "iufbM":
        return {name: ArrayColumn(name, array[:, place]) for place, name in enumerate(names)}
    return {name: ListColumn(name, [*map(_plain, array[:, place])]) for place, name in enumerate(names)}


def columns_of_observation(x: Mapping[str, Any], paths: Sequence[str]) -> Frame:
    """One observation: flat, or nested as an event is. What is not there is missing."""
    found = {column_of(path): x[column_of(path)] if column_of(path) in x else find(x, steps_of(path)) for path in paths}
    return {name: ListColumn(name, [_plain(value)]) for name, value in found.items()}


def infer_features(columns: Frame) -> tuple[Feature, ...]:
    """A feature for each column, in their order, by the column's type. Raises `DataError` naming one that has none."""
    return tuple(_inferred(name, column) for name, column in columns.items())


def _inferred(name: str, column: Column) -> Feature:
    kind = _kind(name, column)
    plain = name and not set(name) & set('.[]"')
    if not plain and (not name or '"' in name):
        raise DataError(f"X: a column is named {name!r}; give it another name")
    return Feature(
        name=name,
        kind=kind,
        path=name if plain else f'["{name}"]',
        missing="allow" if kind == "number" else "refuse",
        buckets=BUCKETS_DEFAULT if kind == "category" else 0,
    )


def _kind(name: str, column: Column) -> FeatureKind:
    if column.seconds() is not None:
        raise DataError(
            f"X: column {name} holds times; leave it out, or say what part of them counts: "
            f"features={{..., '{name}': {{'time': '{name}', 'cycle': 'day'}}}}"
        )
    numbers = column.numbers()
    if numbers is not None and not (isinstance(column, ListColumn) and np.isnan(numbers).all()):
        return "number"
    values = column.distinct("category").values
    kinds = {*map(type, values)}
    if kinds == {bool}:
        return "flag"
    if kinds and kinds <= {str, int, bool}:
        return "category"
    what = f"holds {type(next(iter(values))).__name__} values" if kinds else "has no value"
    raise DataError(
        f"X: column {name} {what}; say what it is, for instance features={{'{name}': {{'number': '{name}'}}}}"
    )


def _of_pandas(name: str, series: Any) -> Column:
    types = sys.modules["pandas"].api.types
    dtype = series.dtype
    if types.is_datetime64_any_dtype(dtype):
        utc = series.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(dtype, "tz", None) is not None else series
        return ArrayColumn(name, utc.to_numpy())
    missing = series.isna().to_numpy()
    if types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype):
        if not missing.any() and dtype.kind in "iu":
            return ArrayColumn(name, series.to_numpy())
        if dtype.kind == "f":
            return ArrayColumn(name, series.to_numpy(np.float64, na_value=np.nan))
    values = series.astype(object).tolist()
    return ListColumn(name, [None if gone else _plain(value) for gone, value in zip(missing, values, strict=True)])


def _of_polars(name: str, series: Any) -> Column:
    if series.dtype.is_temporal() and series.dtype.base_type().__name__ in ("Date", "Datetime"):
        return ArrayColumn(name, series.to_numpy())
    if series.dtype.is_float() or (series.dtype.is_integer() and not series.null_count()):
        return ArrayColumn(name, series.to_numpy())
    return ListColumn(name, series.to_list())


def _plain(value: Any) -> Any:
    """A value of numpy as Python has it."""
    return value.item() if isinstance(value, np.generic) else value
