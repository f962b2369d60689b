"""Reading one data set from one file: .npz, .csv, LIBSVM text or Parquet. Everything comes out dense and finite."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Features, Signs
from npstream.codec.decoder import EventConfig
from npstream.data.columns import NO_LABEL, Chosen, Wanted, choose
from npstream.errors import UsageError

_CELLS_MAX = 400_000_000  # 1.6 GB as float32: a wrong file should be refused, not swapped to disk
_ID_MAX_BYTES = 256
_WHOLE_DIGITS_MAX = 18  # longer ones may not fit the 64 bits that JSON's readers have for them
_WORDS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Rows:
    """What a file holds: features, the label of each row or None, and ids where a column has them.

    `columns` says which columns were taken for what, where a file has columns.
    """

    x: Features = field(repr=False)
    y: Signs | None = field(repr=False)
    ids: list[str | int] | None = field(default=None, repr=False)
    columns: str | None = None


@dataclass(frozen=True, slots=True)
class _Raw:
    x: NDArray[np.generic]
    y: NDArray[np.float64] | None
    ids: list[str | int] | None = None
    columns: str | None = None


def check(path: Path) -> None:
    """Raises `UsageError` when there is no such file, or none of a kind that can be read."""
    if path.suffix not in READERS:
        raise UsageError(f"{path}: unknown kind of file; known endings: {', '.join(READERS)}")
    if not path.is_file():
        raise UsageError(f"{path}: no such file")


def check_width(path: Path, rows: Rows, events: EventConfig) -> None:
    """Raises `UsageError` when rows have another number of features than the settings say, or are not for them."""
    if events.mapping is not None:
        raise UsageError(
            f"{path}: the settings find features by path, and a table has none; give events as lines of a .jsonl file"
        )
    if rows.x.shape[1] != events.width:
        raise wrong_width(path, rows.x.shape[1], events, rows.columns)


def wrong_width(path: Path, found: int, events: EventConfig, columns: str | None = None) -> UsageError:
    """What to raise for a file with another number of features than the settings say."""
    wanted = "one score (preset external)" if events.external else f"{events.d} (model.d)"
    taken = "" if columns is None else f"; {columns}"
    return UsageError(f"{path}: has {found} features, the settings say {wanted}{taken}")


def read(path: Path) -> tuple[Features, Signs]:
    """Features and labels of one file. Raises `UsageError` naming the file and what is wrong with it."""
    rows = read_rows(path)
    assert rows.y is not None
    return rows.x, rows.y


def read_rows(path: Path, wanted: Wanted | None = None) -> Rows:
    """The columns of one file that are wanted. Raises `UsageError` naming the file and what is wrong with it.

    Labels -1/1 and 0/1 are taken as they are (1 is the target); of any other
    two values the rarer one becomes the target, as in the paper.
    """
    check(path)
    try:
        raw = READERS[path.suffix](path, wanted or Wanted())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read as {path.suffix} ({error})") from error
    x, y = raw.x, raw.y
    if x.ndim != 2 or x.shape[0] == 0 or x.shape[1] == 0:
        raise UsageError(f"{path}: expected rows of features, found shape {x.shape}")
    if y is not None and y.shape != (x.shape[0],):
        raise UsageError(f"{path}: {x.shape[0]} rows but labels of shape {y.shape}; they must match")
    with np.errstate(over="ignore"):
        features = np.ascontiguousarray(x, np.float32)
    if not np.isfinite(features).all():
        raise UsageError(f"{path}: holds NaN or infinite values; remove or fill them first")
    return Rows(features, None if y is None else _labels(path, y), raw.ids, raw.columns)


def _labels(path: Path, y: NDArray[np.float64]) -> Signs:
    values, counts = np.unique(y, return_counts=True)
    if values.size != 2:
        raise UsageError(f"{path}: needs exactly two label values, found {values[:6].tolist()}")
    if values.tolist() in ([-1.0, 1.0], [0.0, 1.0]):
        return np.where(y == 1, 1, -1).astype(np.int8)
    return np.where(y == values[np.argmin(counts)], 1, -1).astype(np.int8)


def _read_npz(path: Path, wanted: Wanted) -> _Raw:
    labelled = _has_labels(path, wanted)
    try:
        with np.load(path, allow_pickle=False) as archive:
            x = archive["X"].astype(np.float32)
            return _Raw(x, archive["y"].astype(np.float64) if labelled else None)
    except (KeyError, ValueError, TypeError, AttributeError, EOFError, OSError, BadZipFile) as error:
        # What numpy raises depends on where a file is torn; an .npy inside an .npz name has no arrays to ask for.
        raise UsageError(f"{path}: expected arrays X and y in an .npz archive ({error})") from error


def _has_labels(path: Path, wanted: Wanted) -> bool:
    """Of a file without names, whether its labels are wanted."""
    if wanted.label not in (None, NO_LABEL):
        raise UsageError(f"{path}: has no names of columns for --label {wanted.label} to choose from; leave it out")
    return wanted.label is None


def _read_csv(path: Path, wanted: Wanted) -> _Raw:
    """Comma separated, with or without a line of names; without, the label is the last column."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        lines = [(reader.line_num, row) for row in reader if row]
    if not lines:
        raise UsageError(f"{path}: is empty")
    width = len(lines[0][1])
    for number, row in lines:
        if len(row) != width:
            raise UsageError(f"{path}, line {number}: every row must hold the same number of cells, {width} as before")
    numbers = [_is_number(cell) for cell in lines[0][1]]
    if any(numbers) and not all(numbers):
        raise UsageError(f"{path}, line 1: is neither a header, a name for each column, nor a row of numbers")
    header = None if all(numbers) else [name.strip() for name in lines.pop(0)[1]]
    if not lines:
        raise UsageError(f"{path}: holds no rows")
    columns = _Columns(path, [number for number, _ in lines], list(zip(*(row for _, row in lines), strict=True)))
    if header is not None:
        return _named(path, header, columns, wanted)
    last = width - 1 if _has_labels(path, wanted) else None
    places = [place for place in range(width) if place != last]
    label = "none" if last is None else f"column {width}, the last"
    return _Raw(
        np.stack([columns.numbers(place) for place in places], axis=1) if places else np.empty((0, 0)),
        None if last is None else columns.numbers(last),
        columns=f"no names in the first line; label {label}; all other columns are features, in their order",
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """The cells of a text table by column; `lines` are the lines of the file they are from."""

    path: Path
    lines: Sequence[int]
    cells: Sequence[tuple[str, ...]]

    def is_numeric(self, place: int) -> bool:
        try:
            np.array(self.cells[place], np.float64)
        except ValueError:
            return False
        return True

    def numbers(self, place: int) -> NDArray[np.float64]:
        try:
            return np.array(self.cells[place], np.float64)
        except ValueError:
            at = next(at for at, cell in enumerate(self.cells[place]) if not _is_number(cell))
            raise UsageError(
                f"{self.path}, line {self.lines[at]}, column {place + 1}: {self.cells[place][at]!r:.40} is not a number"
            ) from None

    def labels(self, place: int) -> NDArray[np.float64]:
        words = [_WORDS.get(cell.strip().lower()) for cell in self.cells[place]]
        return self.numbers(place) if None in words else np.array(words, np.float64)

    def ids(self, place: int) -> list[str | int]:
        """Whole numbers when all of them are written as such, else texts."""
        texts = [cell.strip() for cell in self.cells[place]]
        _check_ids(self.path, texts)
        return [*map(int, texts)] if all(_is_whole(text) for text in texts) else [*texts]


def _named(path: Path, names: list[str], columns: _Columns, wanted: Wanted) -> _Raw:
    chosen = _chosen(path, names, wanted, lambda name: columns.is_numeric(names.index(name)))
    x = np.stack([columns.numbers(names.index(name)) for name in chosen.features], axis=1)
    y = None if chosen.label is None else columns.labels(names.index(chosen.label))
    return _Raw(x, y, None if chosen.id is None else columns.ids(names.index(chosen.id)), str(chosen))


def _chosen(path: Path, names: Sequence[str], wanted: Wanted, is_numeric: Callable[[str], bool]) -> Chosen:
    try:
        return choose(names, wanted, is_numeric)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _check_ids(path: Path, ids: Sequence[str | int]) -> None:
    for row, identity in enumerate(ids, 1):
        if not 0 < len(str(identity).encode()) <= _ID_MAX_BYTES:
            raise UsageError(f"{path}, row {row}: an id has 1 to {_ID_MAX_BYTES} bytes, not {str(identity)!r:.40}")


def _read_libsvm(path: Path, wanted: Wanted) -> _Raw:
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
                raise UsageError(f"{path}, line {number}: expected `label index:value ...` ({error})") from error
    if not cells or min(column for _, column, _ in cells) < 0:
        raise UsageError(f"{path}: expected LIBSVM rows with indices from 1")
    dims = max(column for _, column, _ in cells) + 1
    if dims * len(y) > _CELLS_MAX:
        raise UsageError(f"{path}: {len(y)} x {dims} is too large to hold dense; select features first")
    x = np.zeros((len(y), dims), np.float32)
    row, column, value = (np.array(part) for part in zip(*cells, strict=True))
    x[row, column] = value
    return _Raw(x, np.array(y) if labelled else None)


def _read_parquet(path: Path, wanted: Wanted) -> _Raw:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError(f"{path}: needs pyarrow; install it: pip install 'npstream[parquet]'") from None
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: is not a Parquet file ({error})") from error
    of = pyarrow.types
    numeric = (of.is_integer, of.is_floating, of.is_decimal, of.is_boolean)
    chosen = _chosen(
        path,
        list(table.column_names),
        wanted,
        lambda name: any(test(table.schema.field(name).type) for test in numeric),
    )

    def numbers(name: str) -> NDArray[np.float64]:
        try:
            return np.array(table[name].to_pylist(), np.float64)  # null becomes NaN
        except (TypeError, ValueError):
            raise UsageError(f"{path}, column {name}: holds something that is not a number") from None

    x = np.stack([numbers(name) for name in chosen.features], axis=1)
    ids = None if chosen.id is None else table[chosen.id].to_pylist()
    if ids is not None:
        _check_ids(path, ["" if identity is None else identity for identity in ids])
    return _Raw(x, None if chosen.label is None else numbers(chosen.label), ids, str(chosen))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_whole(text: str) -> bool:
    """Whether a text is what a whole number is written as, so that nothing is lost by reading it as one."""
    plain = len(text) <= _WHOLE_DIGITS_MAX and text.isascii() and text.removeprefix("-").isdecimal()
    return plain and str(int(text)) == text


READERS: dict[str, Callable[[Path, Wanted], _Raw]] = {
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".libsvm": _read_libsvm,
    ".svm": _read_libsvm,
    ".txt": _read_libsvm,
    ".parquet": _read_parquet,
}
