"""Numbers on disk: one CSV per study, appended task by task, so that an interrupted run can go on.

Every row carries `key`, a digest of all that determines it (settings, data,
algorithm version), and `of`, how many rows its task has. A task counts as done
when all of them are there; a torn tail is dropped and run again.
"""

import csv
import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from npstream.errors import UsageError

Row = Mapping[str, str | int | float]
_LEAD = ("key", "of")


def digest(parts: Mapping[str, Any]) -> str:
    """Sixteen hex digits of everything that determines a result. Values must be plain JSON."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Results:
    """The rows of one study. Reads what is there when built; writes through at every `append`."""

    def __init__(self, path: Path, columns: Sequence[str], *, fresh: bool = False) -> None:
        """Open or create `path`. `fresh` forgets what it holds.

        Raises UsageError when the file has other columns: it belongs to another version.
        """
        self._path = path
        self._columns = (*_LEAD, *columns)
        self._rows: dict[str, list[dict[str, str]]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not fresh:
                self._read()
            self._rewrite()
        except OSError as error:
            raise UsageError(f"cannot write {path} ({error}); choose another folder with --out") from error

    def has(self, key: str) -> bool:
        """Whether this task is done."""
        return key in self._rows

    def rows(self, keys: Iterable[str]) -> list[dict[str, str]]:
        """The rows of these tasks, in the order of the keys. Values are text, exactly as in the file."""
        return [row for key in keys for row in self._rows[key]]

    def append(self, key: str, rows: Sequence[Row]) -> None:
        """Keep a finished task, on disk before this returns."""
        lines = [{"key": key, "of": str(len(rows)), **{name: _text(row[name]) for name in row}} for row in rows]
        with self._path.open("a", newline="") as file:
            file.write(_lines(lines, self._columns))
            file.flush()
            os.fsync(file.fileno())
        self._rows[key] = lines

    def _read(self) -> None:
        # A last line without its end may be a number cut short.
        whole, _, _ = self._path.read_text().rpartition("\n")
        reader = csv.DictReader(io.StringIO(whole))
        if reader.fieldnames is None:
            return
        if tuple(reader.fieldnames) != self._columns:
            raise UsageError(
                f"{self._path} was written by another version of this study; start over with --fresh, "
                f"or choose another folder with --out"
            )
        complete = [row for row in reader if None not in row and None not in row.values()]
        found = Counter(row["key"] for row in complete)
        for row in complete:
            if row["of"] == str(found[row["key"]]):
                self._rows.setdefault(row["key"], []).append(row)

    def _rewrite(self) -> None:
        """Leave only whole tasks in the file; the old one stays until the new one is complete."""
        kept = [row for rows in self._rows.values() for row in rows]
        beside = self._path.with_suffix(".part")
        beside.write_text(",".join(self._columns) + "\n" + _lines(kept, self._columns))
        beside.replace(self._path)


def number(row: Mapping[str, str], name: str) -> float:
    """A cell as a number; an empty cell is NaN."""
    return float(row[name]) if row[name] else float("nan")


def _text(value: str | int | float) -> str:
    return repr(float(value)) if isinstance(value, float) else str(value)


def _lines(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.DictWriter(buffer, columns, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
