"""Reading one data set from one file: .npz, .csv, LIBSVM text or Parquet. Everything comes out dense and finite."""

import csv
from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from npstream.errors import UsageError

Features = NDArray[np.float32]
Labels = NDArray[np.int8]
_CELLS_MAX = 400_000_000  # 1.6 GB as float32: a wrong file should be refused, not swapped to disk


def read(path: Path) -> tuple[Features, Labels]:
    """Features and labels of one file. Raises UsageError naming the file and what is wrong with it.

    Labels -1/1 and 0/1 are taken as they are (1 is the target); of any other
    two values the rarer one becomes the target, as in the paper.
    """
    if path.suffix not in READERS:
        raise UsageError(f"{path}: unknown kind of file; known endings: {', '.join(READERS)}")
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        x, y = READERS[path.suffix](path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read as {path.suffix} ({error})") from error
    if x.ndim != 2 or x.shape[0] == 0 or x.shape[1] == 0:
        raise UsageError(f"{path}: expected rows of features, found shape {x.shape}")
    if y.shape != (x.shape[0],):
        raise UsageError(f"{path}: {x.shape[0]} rows but labels of shape {y.shape}; they must match")
    if not np.isfinite(x).all():
        raise UsageError(f"{path}: holds NaN or infinite values; remove or fill them first")
    return np.ascontiguousarray(x, np.float32), _labels(path, y)


def _labels(path: Path, y: NDArray[np.float64]) -> Labels:
    values, counts = np.unique(y, return_counts=True)
    if values.size != 2:
        raise UsageError(f"{path}: needs exactly two label values, found {values[:6].tolist()}")
    if values.tolist() in ([-1.0, 1.0], [0.0, 1.0]):
        return np.where(y == 1, 1, -1).astype(np.int8)
    return np.where(y == values[np.argmin(counts)], 1, -1).astype(np.int8)


def _read_npz(path: Path) -> tuple[Features, NDArray[np.float64]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return archive["X"].astype(np.float32), archive["y"].astype(np.float64)
    except (KeyError, ValueError, TypeError, AttributeError, EOFError, OSError, BadZipFile) as error:
        # What numpy raises depends on where a file is torn; an .npy inside an .npz name has no arrays to ask for.
        raise UsageError(f"{path}: expected arrays X and y in an .npz archive ({error})") from error


def _read_csv(path: Path) -> tuple[Features, NDArray[np.float64]]:
    """Comma separated; the label is the column named y, else the last. A header is recognised by not being numbers."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise UsageError(f"{path}: is empty")
    header = None if _is_number(rows[0][0]) and _is_number(rows[0][-1]) else rows.pop(0)
    label = header.index("y") if header is not None and "y" in header else -1
    try:
        table = np.array(rows, np.float64)
    except ValueError as error:
        raise UsageError(f"{path}: every row must hold the same number of numbers ({error})") from error
    if table.ndim != 2:
        raise UsageError(f"{path}: holds no rows")
    return np.delete(table, label, axis=1).astype(np.float32), table[:, label]


def _read_libsvm(path: Path) -> tuple[Features, NDArray[np.float64]]:
    """`label index:value ...` a line, indices from 1, absent means 0."""
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
    return x, np.array(y)


def _read_parquet(path: Path) -> tuple[Features, NDArray[np.float64]]:
    """All columns are features but the one named y, else the last."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise UsageError(f"{path}: needs pyarrow; install it: pip install 'npstream[parquet]'") from None
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: is not a Parquet file ({error})") from error
    names = list(table.column_names)
    label = "y" if "y" in names else names[-1]
    columns = [table[name].to_numpy().astype(np.float32) for name in names if name != label]
    return np.stack(columns, axis=1), table[label].to_numpy().astype(np.float64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


READERS: dict[str, Callable[[Path], tuple[Features, NDArray[np.float64]]]] = {
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".libsvm": _read_libsvm,
    ".svm": _read_libsvm,
    ".txt": _read_libsvm,
    ".parquet": _read_parquet,
}
