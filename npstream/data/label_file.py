"""Labels in a file: one row or line per event, found by the event's id. CSV, Parquet and lines of JSON."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from npstream.codec.event import EventConfig
from npstream.codec.features import LabelRule, column_of
from npstream.codec.mapping import Mapping
from npstream.codec.table import Column, TableReader
from npstream.data.arrow_table import read_parquet
from npstream.data.columns import ID, LABELS
from npstream.data.text_table import read_csv
from npstream.errors import BadEvent, DataError, UsageError

_LINES = ".jsonl"
_ENDINGS = (".csv", ".parquet", _LINES)


@dataclass(frozen=True, slots=True)
class FileLabels:
    """1 for a target, -1 for a non-target, by the text of the id; of an id that is there twice the last row counts.

    `rows` are all rows, `unlabelled` those without a label, `overruled` those after which another label came.
    """

    signs: dict[str, int]
    rows: int
    unlabelled: int
    overruled: int


def read_labels(path: Path, id_column: str | None, label_column: str | None, id: str, rule: LabelRule) -> FileLabels:
    """The labels of a file: in columns named so, else as the paths `id` and `rule.path` are; in JSON at these paths.

    Raises `UsageError` naming the file and what is wrong with it.
    """
    _check(path)
    if path.suffix == _LINES:
        names, signs = _of_lines(path, id_column or id, replace(rule, path=label_column or rule.path))
    else:
        columns = _columns(path)
        identity = _chosen(path, "--id", id_column, (column_of(id), ID), columns)
        label = _chosen(path, "--label", label_column, (column_of(rule.path), *LABELS), columns)
        reader = TableReader(_events(id, rule))
        try:
            names = [str(own) for own in reader.ids(columns[identity])]
            signs = reader.labels(columns[label]).tolist()
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
    found: dict[str, int] = {}
    overruled = 0
    for name, sign in zip(names, signs, strict=True):
        if sign:
            overruled += found.get(name, sign) != sign
            found[name] = sign
    return FileLabels(found, len(names), signs.count(0), overruled)


def _check(path: Path) -> None:
    if path.suffix not in _ENDINGS:
        raise UsageError(f"{path}: unknown kind of file; known endings: {', '.join(_ENDINGS)}")
    if not path.is_file():
        raise UsageError(f"{path}: no such file")


def _events(id: str, rule: LabelRule) -> EventConfig:
    return EventConfig(d=0, external=True, mapping=(), id=id, label=rule)


def _of_lines(path: Path, id: str, rule: LabelRule) -> tuple[list[str], list[int]]:
    try:
        mapping = Mapping(_events(id, rule))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    names, signs = list[str](), list[int]()
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            own, sign = mapping.read_label(orjson.loads(line))
        except orjson.JSONDecodeError:
            raise DataError(f"{path}, line {number}: is not one JSON document") from None
        except BadEvent as error:
            raise DataError(f"{path}, line {number}: {error.detail}") from None
        names.append(str(own))
        signs.append(sign)
    return names, signs


def _columns(path: Path) -> dict[str, Column]:
    try:
        if path.suffix == ".parquet":
            return {**read_parquet(path).columns}
        table = read_csv(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as {path.suffix} ({error})") from error
    if not table.named:
        raise DataError(f"{path}: has no names of columns in its first line, such as payment_id,fraud; add them")
    return {**table.columns}


def _chosen(path: Path, option: str, asked: str | None, usual: Sequence[str], columns: dict[str, Column]) -> str:
    """The column that is asked for, or the first of the usual names that is there, whatever its case."""
    by_name = {name.casefold(): name for name in columns}
    if asked is not None:
        if asked in columns:
            return asked
        raise UsageError(f"{path}: {option} {asked}: no such column; there are {', '.join(columns)}")
    for name in usual:
        if name.casefold() in by_name:
            return by_name[name.casefold()]
    listed = ", ".join(dict.fromkeys(usual))
    raise UsageError(f"{path}: no column {listed}; name one with {option} NAME; there are {', '.join(columns)}")
