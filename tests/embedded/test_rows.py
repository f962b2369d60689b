"""Rows of the file as records: what no version of npstream wrote is named by the first offset that is wrong."""

from typing import Any

import pytest

from npstream.embedded.rows import DamagedRow, records_of
from npstream.records import Record


def row(offset: object, ts: object = 5, value: object = b"v") -> tuple[Any, ...]:
    """As it was written, but for what the test says."""
    return offset, ts, b"k", value, None


@pytest.mark.parametrize("dense", [True, False])
def test_whole_rows_are_records(dense: bool) -> None:
    """From the first offset that was asked for; none where none was."""
    assert records_of([row(3), row(4)], 3, 9, dense=dense) == [Record(at, 5, b"k", b"v", ()) for at in (3, 4)]
    assert records_of([], 3, 3, dense=dense) == []


def test_compacted_rows_may_lack_some() -> None:
    """All of them, even."""
    assert [record.offset for record in records_of([row(4), row(7)], 3, 9, dense=False)] == [4, 7]
    assert records_of([], 3, 9, dense=False) == []


@pytest.mark.parametrize(
    ("rows", "dense", "offset", "what"),
    [
        ([], True, 3, "is not there"),
        ([row(4), row(5)], True, 3, "is not there"),
        ([row(3), row(5)], True, 4, "is not there"),
        ([row(5), row(4)], False, 5, "and its followers are out of order"),
        ([row(4), row(4)], False, 4, "and its followers are out of order"),
        ([row(2), row(4)], False, 2, "and its followers are out of order"),
        ([row(8), row(9)], False, 8, "and its followers are out of order"),
        ([row(3), row("4")], True, 4, "has no offset"),
        ([row(None)], True, 0, "has no offset"),
        ([row(3), row(4, ts="noon")], True, 4, "has a column of another type"),
        ([row(3, value="text"), row(4)], False, 3, "has a column of another type"),
    ],
)
def test_the_first_that_is_wrong_is_named(rows: list[tuple[Any, ...]], dense: bool, offset: int, what: str) -> None:
    """Asked for from 3 to 9."""
    with pytest.raises(DamagedRow, match=what) as error:
        records_of(rows, 3, 9, dense=dense)
    assert error.value.offset == offset
