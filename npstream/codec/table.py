"""Tables by the rules of events: named columns of a file or a frame to the columns of a model.

Numbers are taken as whole arrays. Of everything else each distinct value is read
once, by the `Mapping` that reads events, so that a row means what its event would.
"""

from collections.abc import Callable, Sequence
from collections.abc import Mapping as Named
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Floats
from npstream.codec.columns import Columns
from npstream.codec.event import ID_MAX_BYTES, MAGNITUDE_MAX, REASONS, EventConfig, EventId
from npstream.codec.features import Feature, FeatureKind, column_of
from npstream.codec.mapping import Mapping
from npstream.codec.times import TIME_LIMIT, seconds_of_numbers
from npstream.errors import BadEvent, DataError

Role = FeatureKind | Literal["label", "id"]
"""What a column is read as."""


_HASHED = {str, int, float, bool}


class Distinct(NamedTuple):
    """The distinct values of a column as JSON has them; `place` has that of each row's, -1 where it is missing."""

    values: Sequence[Any]
    place: NDArray[np.int64]

    def rows(self) -> list[Any]:
        """The values row by row, None where one is missing."""
        values = [*self.values, None]
        return [values[place] for place in self.place.tolist()]


class Column(Protocol):
    """One column of a table, whatever holds it."""

    def numbers(self) -> Floats | None:
        """The rows as numbers, NaN where one is missing; None when this is no column of numbers."""

    def seconds(self) -> Floats | None:
        """The rows as seconds since 1970, NaN where one is missing; None unless the column's type is a time."""

    def distinct(self, role: Role) -> Distinct:
        """The values it holds, as this role in an event needs them."""

    def where(self, row: int) -> str:
        """How a message names a cell."""


class ListColumn:
    """A column of Python values; None and NaN are missing."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self._name, self._values = name, values

    def numbers(self) -> Floats | None:
        """When all are numbers or missing."""
        kinds = {*map(type, self._values)} - {type(None)}
        return np.array(self._values, np.float64) if kinds <= {int, float} else None

    def seconds(self) -> Floats | None:
        """A list has no type of time."""
        return None

    def distinct(self, role: Role) -> Distinct:
        """The values as they are; but whole numbers are whole where missing ones have made them floats."""
        return encoded(self._values, whole=role in ("category", "id"))

    def where(self, row: int) -> str:
        """By row and name."""
        return f"row {row + 1}, column {self._name}"


def encoded(values: Sequence[Any], *, whole: bool = False) -> Distinct:
    """The distinct ones of a list of values; with `whole`, floats that are whole numbers become integers."""
    places: dict[Any, int] = {}
    found: list[Any] = []
    index = np.full(len(values), -1, np.int64)
    # True, 1 and 1.0 are one key of a dict, and not one category.
    kinds = {*map(type, values)} - {type(None)}
    plain = len(kinds) == 1 and kinds <= _HASHED
    for row, value in enumerate(values):
        if value is None or value != value:
            continue
        key = value if plain else (type(value), repr(value))
        place = places.setdefault(key, len(found))
        if place == len(found):
            found.append(int(value) if whole and type(value) is float and value.is_integer() else value)
        index[row] = place
    return Distinct(found, index)


class TableReader:
    """Reads the columns of tables as one `EventConfig` says. Everything raises `DataError` naming the cell."""

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        self._features = config.mapping or ()
        self._mapping = Mapping(config)
        self._columns = Columns(config.mapping)

    def features(self, columns: Named[str, Column]) -> NDArray[np.float32]:
        """float32[rows, d] of the columns that `column_of` names for each path, NaN where a value is missing."""
        raw = np.stack([self._raw(feature, columns[column_of(feature.path)]) for feature in self._features], axis=1)
        # What the topic rounds is rounded here too.
        return self._columns.fill(raw.astype(np.float32) if self._config.format == "f32" else raw)

    def labels(self, column: Column) -> NDArray[np.int8]:
        """1 or -1 by the label's rule, 0 where it is missing."""
        distinct = column.distinct("label")
        return _spread(column, distinct, self._mapping.label_of, 0).astype(np.int8)

    def ids(self, column: Column) -> list[EventId]:
        """The id of every row."""
        distinct = column.distinct("id")
        if (absent := np.flatnonzero(distinct.place < 0)).size:
            raise DataError(f"{column.where(int(absent[0]))}: is empty; an id has 1 to {ID_MAX_BYTES} bytes")
        _spread(column, distinct, lambda value: 0.0 if self._mapping.id_of(value) is None else 1.0, 0.0)
        return distinct.rows()

    def _raw(self, feature: Feature, column: Column) -> Floats:
        match feature.kind:
            case "number":
                if (numbers := column.numbers()) is not None:
                    return self._checked(feature, column, numbers, np.abs(numbers) <= MAGNITUDE_MAX)
            case "time":
                if (seconds := column.seconds()) is not None:
                    return self._checked(feature, column, seconds, np.isfinite(seconds))
                if (numbers := column.numbers()) is not None:
                    known = self._checked(feature, column, numbers, np.abs(numbers) < TIME_LIMIT)
                    return seconds_of_numbers(known)
        missing = None if not feature.may_miss else np.nan
        return _spread(
            column, column.distinct(feature.kind), lambda value: self._mapping.value_of(feature, value), missing
        )

    def _checked(self, feature: Feature, column: Column, values: Floats, good: NDArray[np.bool_]) -> Floats:
        wrong = ~good if not feature.may_miss else ~(good | np.isnan(values))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            value = float(values[row])
            _read(column, row, partial(self._mapping.value_of, feature), None if value != value else value)
        return values


def _spread(column: Column, distinct: Distinct, read: Callable[[Any], float], missing: float | None) -> Floats:
    """What each row's value is read as; `missing` where there is none, which None refuses as `read` does."""
    values, index = distinct
    if missing is None and (absent := np.flatnonzero(index < 0)).size:
        _read(column, int(absent[0]), read, None)
    used = np.flatnonzero(np.bincount(index[index >= 0], minlength=len(values)))
    found = np.full(len(values) + 1, np.nan if missing is None else missing)
    for place in used.tolist():
        try:
            found[place] = read(values[place])
        except BadEvent:
            _read(column, int(np.flatnonzero(index == place)[0]), read, values[place])
    return found[index]


def _read(column: Column, row: int, read: Callable[[Any], float], value: Any) -> None:
    """Raises the `DataError` of a value that cannot be read."""
    try:
        read(value)
    except BadEvent as error:
        raise DataError(f"{column.where(row)}: {error.detail} ({REASONS[error.reason]})") from None
