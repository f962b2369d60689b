"""CSV files as tables: comma separated, UTF-8, with a line of names or without."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npstream.arrays import Floats
from npstream.codec.table import Distinct, Role, encoded
from npstream.errors import DataError

_WHOLE_DIGITS_MAX = 18  # longer ones may not fit the 64 bits that JSON's readers have for them
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class TextColumn:
    """The cells of one column; `lines` are the lines of the file they are from. An empty cell is missing."""

    name: str
    lines: Sequence[int] = field(repr=False)
    cells: tuple[str, ...] = field(repr=False)

    def numbers(self) -> Floats | None:
        """When every cell is a number or empty."""
        try:
            return _floats(self.cells)
        except ValueError:
            filled = [cell if cell.strip() else "nan" for cell in self.cells]
        try:
            return _floats(filled)
        except ValueError:
            return None

    def seconds(self) -> Floats | None:
        """Text has no type of time."""
        return None

    def distinct(self, role: Role) -> Distinct:
        """A category is the text as it is; elsewhere white space is none of it, and numbers and truths are such."""
        if role == "category":
            return encoded([cell or None for cell in self.cells])
        if role == "id":
            texts = [cell.strip() for cell in self.cells]
            return encoded([*map(int, texts)] if all(map(_is_whole, texts)) else [text or None for text in texts])
        values, index = encoded([cell.strip() or None for cell in self.cells])
        return Distinct([*map(_value, values)], index)

    def where(self, row: int) -> str:
        """By line and name."""
        return f"line {self.lines[row]}, column {self.name}"


@dataclass(frozen=True, slots=True)
class TextTable:
    """The columns of a CSV file by name; without a line of names they are called by their places, from 1."""

    columns: dict[str, TextColumn]
    named: bool

    def is_numeric(self, name: str) -> bool:
        """Whether a column can be a feature where none are named."""
        return self.columns[name].numbers() is not None


def read_csv(path: Path) -> TextTable:
    """The table in a file. Raises `DataError` naming line and problem, and what `csv` and the file system raise."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        lines = [(reader.line_num, row) for row in reader if row]
    if not lines:
        raise DataError(f"{path}: is empty")
    width = len(lines[0][1])
    for number, row in lines:
        if len(row) != width:
            raise DataError(f"{path}, line {number}: every row must hold the same number of cells, {width} as before")
    numbers = [is_number(cell) for cell in lines[0][1]]
    if any(numbers) and not all(numbers):
        raise DataError(f"{path}, line 1: is neither a header, a name for each column, nor a row of numbers")
    named = not all(numbers)
    names = [name.strip() for name in lines.pop(0)[1]] if named else [str(place + 1) for place in range(width)]
    if not lines:
        raise DataError(f"{path}: holds no rows")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: two columns are named {twice!r}; give each a name of its own")
    places = [number for number, _ in lines]
    cells = zip(*(row for _, row in lines), strict=True)
    return TextTable({name: TextColumn(name, places, own) for name, own in zip(names, cells, strict=True)}, named)


def _floats(cells: Sequence[str]) -> Floats:
    return np.array(cells, np.float64)


def is_number(text: str) -> bool:
    """Whether a text is read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _value(text: str) -> Any:
    """What a cell says: a truth, a number, else its text."""
    truth = _WORDS.get(text.lower())
    if truth is not None:
        return truth
    return float(text) if is_number(text) else text


def _is_whole(text: str) -> bool:
    """Whether a text is what a whole number is written as, so that nothing is lost by reading it as one."""
    plain = len(text) <= _WHOLE_DIGITS_MAX and text.isascii() and text.removeprefix("-").isdecimal()
    return plain and str(int(text)) == text
