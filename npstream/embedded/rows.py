"""Rows of the file as records, each checked: a damaged file gives rows that no version of npstream wrote."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from npstream.embedded.headers import decode_headers
from npstream.records import Record

_CONTENT = {bytes, type(None)}


class DamagedRow(ValueError):
    """The row at `offset` is not one that was written."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset


def records_of(rows: Sequence[tuple[Any, ...]], begin: int, end: int, *, dense: bool) -> list[Record]:
    """Rows (offset, ts, key, value, headers) asked for with `begin <= offset < end`, in order, as records.

    With `dense` every offset from `begin` on has its row. Raises `DamagedRow`.
    """
    if not rows:
        if dense and begin < end:
            raise DamagedRow(begin, "is not there")
        return []
    _check_columns(rows)
    _check_order([row[0] for row in rows], begin, end, dense)
    return [
        Record(offset, ts, key, value, () if headers is None else _headers(offset, headers))
        for offset, ts, key, value, headers in rows
    ]


def _check_columns(rows: Sequence[tuple[Any, ...]]) -> None:
    # By column, which costs a tenth of looking at each row; the row is looked for when there is one.
    offsets, stamps, *contents = zip(*rows, strict=True)
    if {*map(type, offsets), *map(type, stamps)} == {int} and all(_CONTENT.issuperset(map(type, c)) for c in contents):
        return
    for before, row in zip((None, *rows), rows, strict=False):
        if type(row[0]) is not int:
            raise DamagedRow(0 if before is None else before[0] + 1, "has no offset")
        if type(row[1]) is not int or not _CONTENT.issuperset(map(type, row[2:])):
            raise DamagedRow(row[0], "has a column of another type")


def _check_order(offsets: list[int], begin: int, end: int, dense: bool) -> None:
    if dense:
        if offsets != list(range(begin, begin + len(offsets))):
            expected = next(at for at, found in zip(range(begin, end), offsets, strict=False) if at != found)
            raise DamagedRow(expected, "is not there")
    elif offsets[0] < begin or offsets[-1] >= end or any(a >= b for a, b in pairwise(offsets)):
        raise DamagedRow(offsets[0], "and its followers are out of order")


def _headers(offset: int, blob: bytes) -> Sequence[tuple[str, bytes | None]]:
    try:
        return decode_headers(blob)
    except ValueError as error:
        raise DamagedRow(offset, f"has unreadable headers ({error})") from error
