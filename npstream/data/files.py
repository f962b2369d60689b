"""Reading one data set from one file: .npz, .csv, LIBSVM text or Parquet. Columns with names are taken by them."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Features, Floats, Signs
from npstream.codec.decoder import EventConfig
from npstream.codec.table import Column, TableReader
from npstream.data.arrow_table import ArrowTable, read_parquet
from npstream.data.columns import NO_LABEL, Wanted, choose
from npstream.data.text_table import TextTable, read_csv
from npstream.errors import DataError, UsageError

_PLAIN = EventConfig(d=1)
_CELLS_MAX = 400_000_000  # 1.6 GB as float32: a wrong file should be refused, not swapped to disk


@dataclass(frozen=True, slots=True)
class Rows:
    """What a file holds: the model's columns, the labels or None, and ids where a column has them.

    `columns` says which columns were taken for what, where a file has columns.
    With a mapping `x` has NaN where a value is missing, `y` has 0 where the label
    is, and `cells` are the columns that were mapped.
    """

    x: Features = field(repr=False)
    y: Signs | None = field(repr=False)
    ids: list[str | int] | None = field(default=None, repr=False)
    columns: str | None = None
    cells: Mapping[str, Column] | None = field(default=None, repr=False)


def check(path: Path) -> None:
    """Raises `UsageError` when there is no such file, or none of a kind that can be read."""
    if path.suffix not in READERS:
        raise UsageError(f"{path}: unknown kind of file; known endings: {', '.join(READERS)}")
    if not path.is_file():
        raise UsageError(f"{path}: no such file")


def check_width(path: Path, rows: Rows, events: EventConfig) -> None:
    """Raises `UsageError` when rows have another number of features than the settings say."""
    if rows.x.shape[1] != (1 if events.external else events.d):
        raise wrong_width(path, rows.x.shape[1], events, rows.columns)


def wrong_width(path: Path, found: int, events: EventConfig, columns: str | None = None) -> DataError:
    """What to raise for a file with another number of features than the settings say."""
    wanted = "one score (preset external)" if events.external else f"{events.d} (model.d)"
    taken = "" if columns is None else f"; {columns}"
    return DataError(f"{path}: has {found} features, the settings say {wanted}{taken}")


def read(path: Path) -> tuple[Features, Signs]:
    """Features and labels of one file. Raises `UsageError` naming the file and what is wrong with it."""
    rows = read_rows(path)
    assert rows.y is not None
    return rows.x, rows.y


def read_rows(path: Path, wanted: Wanted | None = None) -> Rows:
    """The columns of one file that are wanted. Raises `UsageError` naming the file and what is wrong with it.

    Labels are read by the settings' rule, where they have one. Otherwise -1/1 and
    0/1 are taken as they are (1 is the target); of any other two values the rarer
    one becomes the target, as in the paper.
    """
    check(path)
    if wanted is not None and wanted.events is not None and wanted.events.transform is not None:
        raise UsageError(
            f"{path}: events.transform takes whole events, and a table has none; give events as lines of a .jsonl file"
        )
    try:
        rows = READERS[path.suffix](path, wanted or Wanted())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as {path.suffix} ({error})") from error
    x, y = rows.x, rows.y
    if x.ndim != 2 or x.shape[0] == 0 or x.shape[1] == 0:
        raise DataError(f"{path}: expected rows of features, found shape {x.shape}")
    if y is not None and y.shape != (x.shape[0],):
        raise DataError(f"{path}: {x.shape[0]} rows but labels of shape {y.shape}; they must match")
    if rows.cells is None and not np.isfinite(x).all():
        raise DataError(f"{path}: holds NaN or infinite values; remove or fill them first")
    return rows


def _dense(x: NDArray[np.generic]) -> Features:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(x, np.float32)


def _two_signs(path: Path, y: NDArray[np.float64]) -> Signs:
    values, counts = np.unique(y, return_counts=True)
    if values.size != 2:
        raise DataError(f"{path}: needs exactly two label values, found {values[:6].tolist()}")
    if values.tolist() in ([-1.0, 1.0], [0.0, 1.0]):
        return np.where(y == 1, 1, -1).astype(np.int8)
    return np.where(y == values[np.argmin(counts)], 1, -1).astype(np.int8)


def _read_npz(path: Path, wanted: Wanted) -> Rows:
    labelled = _has_labels(path, wanted)
    try:
        with np.load(path, allow_pickle=False) as archive:
            x = _dense(archive["X"])
            y = archive["y"].astype(np.float64) if labelled else None
    except (KeyError, ValueError, TypeError, AttributeError, EOFError, OSError, BadZipFile) as error:
        # What numpy raises depends on where a file is torn; an .npy inside an .npz name has no arrays to ask for.
        raise DataError(f"{path}: expected arrays X and y in an .npz archive ({error})") from error
    return Rows(x, None if y is None else _two_signs(path, y))


def _has_labels(path: Path, wanted: Wanted) -> bool:
    """Of a file without names, whether its labels are wanted. Raises `UsageError` when anything asks for names."""
    if wanted.events is not None and wanted.events.mapping is not None:
        raise DataError(f"{path}: has no names of columns for the mapping in events.features to find")
    if wanted.label not in (None, NO_LABEL):
        raise UsageError(f"{path}: has no names of columns for --label {wanted.label} to choose from; leave it out")
    return wanted.label is None


def _read_csv(path: Path, wanted: Wanted) -> Rows:
    """With or without a line of names; without, the label is the last column."""
    table = read_csv(path)
    if table.named:
        return _of_table(path, table, wanted)
    names = [*table.columns]
    last = names.pop() if _has_labels(path, wanted) else None
    label = "none" if last is None else f"column {last}, the last"
    numbers = {name: _numbers(path, column) for name, column in table.columns.items()}
    return Rows(
        _dense(np.stack([numbers[name] for name in names], axis=1) if names else np.empty((0, 0))),
        None if last is None else _two_signs(path, numbers[last]),
        columns=f"no names in the first line; label {label}; all other columns are features, in their order",
    )


def _read_parquet(path: Path, wanted: Wanted) -> Rows:
    return _of_table(path, read_parquet(path), wanted)


def _of_table(path: Path, table: TextTable | ArrowTable, wanted: Wanted) -> Rows:
    """The columns that are wanted, by name; values by the settings' mapping and rule where they have one."""
    columns: Mapping[str, Column] = table.columns
    events = wanted.ruled
    try:
        chosen = choose([*columns], wanted, table.is_numeric)
        reader = TableReader(wanted.events or _PLAIN)
        ids = None if chosen.id is None else reader.ids(columns[chosen.id])
        y = None if events is None or chosen.label is None else reader.labels(columns[chosen.label])
        if events is not None and events.mapping is not None:
            taken = {name: columns[name] for name in chosen.features}
            return Rows(reader.features(taken), y, ids, str(chosen), taken)
    except UsageError as error:
        raise type(error)(f"{path}: {error}") from None
    if events is None and chosen.label is not None:
        y = _two_signs(path, _truths(path, columns[chosen.label]))
    x = np.stack([_numbers(path, columns[name]) for name in chosen.features], axis=1)
    return Rows(_dense(x), y, ids, str(chosen))


def _numbers(path: Path, column: Column) -> Floats:
    """A feature of the short form: a number in every row."""
    found = column.numbers()
    found = _truths(path, column) if found is None else found
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        raise DataError(
            f"{path}: {column.where(row)}: is empty, NaN or infinite; fill it, or say that it may be missing, in "
            "events.features: NAME: {number: COLUMN, missing: allow}"
        )
    return found


def _truths(path: Path, column: Column) -> Floats:
    """Numbers, true and false; NaN where nothing is said."""
    values, index = column.distinct("label")
    wrong = [place for place, value in enumerate(values) if not isinstance(value, int | float)]
    if wrong:
        row = int(np.flatnonzero(np.isin(index, wrong))[0])
        raise DataError(f"{path}: {column.where(row)}: {values[index[row]]!r:.40} is not a number")
    return np.array([*values, np.nan], np.float64)[index]


def _read_libsvm(path: Path, wanted: Wanted) -> Rows:
    """`label index:value ...` a line, indices from 1, absent means 0."""
    labelled = _has_labels(path, wanted)
    y: list[float] = []
    cells: list[tuple[int, int, float]] = []
    with path.open() as file:
        for number, line in enumerate(file, 1):
            fields = line.split("#", 1)[0].split()
            if not fields:
                continue
            try:
                pairs = [field.split(":") for field in fields[1:]]
                cells.extend((len(y), int(index) - 1, float(value)) for index, value in pairs)
                y.append(float(fields[0]))
            except ValueError as error:
                raise DataError(f"{path}, line {number}: expected `label index:value ...` ({error})") from error
    if not cells or min(column for _, column, _ in cells) < 0:
        raise DataError(f"{path}: expected LIBSVM rows with indices from 1")
    dims = max(column for _, column, _ in cells) + 1
    if dims * len(y) > _CELLS_MAX:
        raise DataError(f"{path}: {len(y)} x {dims} is too large to hold dense; select features first")
    x = np.zeros((len(y), dims), np.float32)
    row, column, value = (np.array(part) for part in zip(*cells, strict=True))
    x[row, column] = value
    return Rows(x, _two_signs(path, np.array(y)) if labelled else None)


READERS: dict[str, Callable[[Path, Wanted], Rows]] = {
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".libsvm": _read_libsvm,
    ".svm": _read_libsvm,
    ".txt": _read_libsvm,
    ".parquet": _read_parquet,
}
