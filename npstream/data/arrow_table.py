"""Parquet files as tables. Fields of structures are columns by their path: `card.country`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npstream.arrays import Floats
from npstream.codec.table import Distinct, Role, encoded
from npstream.codec.times import seconds_of_datetimes
from npstream.errors import DataError, UsageError


@dataclass(frozen=True, slots=True)
class ArrowColumn:
    """One column as pyarrow holds it; null is missing."""

    name: str
    array: Any = field(repr=False)
    """A pyarrow array in one piece."""
    types: Any = field(repr=False)
    """pyarrow.types."""

    def numbers(self) -> Floats | None:
        """Integers, floats and decimals; no booleans, which are flags."""
        of, kind = self.types, self.array.type
        if of.is_decimal(kind):
            return np.array([np.nan if value is None else float(value) for value in self.array.to_pylist()])
        if not (of.is_integer(kind) or of.is_floating(kind)):
            return None
        numbers: Floats = self.array.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return numbers

    def seconds(self) -> Floats | None:
        """Timestamps and dates; without a zone they are UTC."""
        of, kind = self.types, self.array.type
        if not (of.is_timestamp(kind) or of.is_date(kind)):
            return None
        return seconds_of_datetimes(self.array.to_numpy(zero_copy_only=False))

    def distinct(self, role: Role) -> Distinct:
        """Whole numbers are whole, also where missing ones have made them floats."""
        if self.types.is_nested(self.array.type):
            return encoded(self.array.to_pylist())
        held = self.array if self.types.is_dictionary(self.array.type) else self.array.dictionary_encode()
        values = held.dictionary.to_pylist()
        index = held.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if role in ("category", "id"):
            values = [int(value) if type(value) is float and value.is_integer() else value for value in values]
        # A dictionary may hold null, and floats NaN.
        missing = [place for place, value in enumerate(values) if value is None or value != value]
        index[np.isin(index, missing)] = -1
        return Distinct(values, index)

    def where(self, row: int) -> str:
        """By row and name."""
        return f"row {row + 1}, column {self.name}"


@dataclass(frozen=True, slots=True)
class ArrowTable:
    """The columns of a Parquet file by name."""

    columns: dict[str, ArrowColumn]

    def is_numeric(self, name: str) -> bool:
        """Whether a column can be a feature where none are named."""
        column = self.columns[name]
        of, kind = column.types, column.array.type
        return any(test(kind) for test in (of.is_integer, of.is_floating, of.is_decimal, of.is_boolean))


def read_parquet(path: Path) -> ArrowTable:
    """The table in a file. Raises `DataError`, and `UsageError` without pyarrow."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise UsageError(f"{path}: needs pyarrow; install it: pip install 'npstream[parquet]'") from None
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is not a Parquet file ({error})") from error
    if table.num_rows == 0:
        raise DataError(f"{path}: holds no rows")
    try:
        return ArrowTable(table_columns(table))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def table_columns(table: Any) -> dict[str, ArrowColumn]:
    """The columns of a pyarrow table. Raises `DataError` for names that are not unique."""
    from pyarrow import types

    while any(types.is_struct(column.type) for column in table.schema):
        table = table.flatten()
    names = list(table.column_names)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"two columns are named {twice!r}; give each a name of its own")
    return {name: ArrowColumn(name, _one(table[name]), types) for name in names}


def _one(chunks: Any) -> Any:
    """A column's pieces as one array, with one dictionary."""
    whole = chunks.unify_dictionaries().combine_chunks()
    return whole.chunk(0) if hasattr(whole, "chunks") else whole
