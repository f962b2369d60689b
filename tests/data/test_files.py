"""Tables: columns by their names, and nothing guessed where names could say."""

import re
from pathlib import Path

import numpy as np
import pytest

from npstream.data.columns import Wanted
from npstream.data.files import Rows, read_rows
from npstream.errors import UsageError

NAMED = ("amount", "hour")


def csv_file(folder: Path, text: str) -> Path:
    """A table with this text."""
    path = folder / "a.csv"
    path.write_text(text, encoding="utf-8")
    return path


def taken(rows: Rows) -> tuple[object, ...]:
    """Features, labels, ids."""
    return rows.x.tolist(), None if rows.y is None else rows.y.tolist(), rows.ids


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        ("hour,amount,y\n1,2,1\n3,4,0\n", Wanted(NAMED), ([[2, 1], [4, 3]], [1, -1], None)),
        ("y,hour,amount\n1,1,2\n0,3,4\n", Wanted(NAMED), ([[2, 1], [4, 3]], [1, -1], None)),
        ("hour,amount,y\n1,2,1\n3,4,0\n", Wanted(), ([[1, 2], [3, 4]], [1, -1], None)),
        ("Label,hour,amount\n1,1,2\n0,3,4\n", Wanted(), ([[1, 2], [3, 4]], [1, -1], None)),
        ("hour,target,amount\n1,true,2\n3,False,4\n", Wanted(), ([[1, 2], [3, 4]], [1, -1], None)),
        ("id,hour,y\n17,1,1\n18,3,0\n", Wanted(), ([[1], [3]], [1, -1], [17, 18])),
        ("ID,hour,y\n017,1,1\n18,3,0\n", Wanted(), ([[1], [3]], [1, -1], ["017", "18"])),
        ("hour,id,y\n1,9,1\n3,8,0\n", Wanted(("id", "hour")), ([[9, 1], [8, 3]], [1, -1], None)),
        ("class,hour,y\n5,1,1\n6,3,0\n", Wanted(("class", "hour")), ([[5, 1], [6, 3]], [1, -1], None)),
        ("fraud,hour,y\n1,1,5\n0,3,6\n", Wanted(label="fraud"), ([[1, 5], [3, 6]], [1, -1], None)),
        ("hour,amount\n1,2\n3,4\n", Wanted(label="none"), ([[1, 2], [3, 4]], None, None)),
        ("hour,note,y\n1,a,1\n3,b,0\n", Wanted(), ([[1], [3]], [1, -1], None)),
        ("\ufeffhour, amount ,y\n1,2,1\n3,4,0\n", Wanted(NAMED), ([[2, 1], [4, 3]], [1, -1], None)),
        (",hour,y\n0,1,1\n1,3,0\n", Wanted(), ([[1], [3]], [1, -1], None)),
        ("1,2,1\n3,4,0\n", Wanted(), ([[1, 2], [3, 4]], [1, -1], None)),
        ("1,2,1\n3,4,0\n", Wanted(label="none"), ([[1, 2, 1], [3, 4, 0]], None, None)),
    ],
)
def test_columns_are_found_by_name(tmp_path: Path, text: str, wanted: Wanted, expected: tuple[object, ...]) -> None:
    """Features in the order that is asked for, label and id wherever they are; a file without names by places."""
    assert taken(read_rows(csv_file(tmp_path, text), wanted)) == expected


@pytest.mark.parametrize(
    ("text", "wanted", "message"),
    [
        (
            "hour,y\n1,1\n3,0\n",
            Wanted(NAMED),
            "no column amount; wanted are amount, hour (events.features), there are ",
        ),
        ("hour,fraud\n1,1\n3,0\n", Wanted(), "no column is named y or label or target or class; name the label's with"),
        ("hour,fraud\n1,1\n3,0\n", Wanted(("hour",)), "--label NAME, or --label none where there is none; there are h"),
        ("hour,y,label\n1,1,1\n3,0,0\n", Wanted(), "y, label could all be the label"),
        (
            "hour,y\n1,1\n3,0\n",
            Wanted(label="fraud"),
            "--label fraud: no such column to take the label from; there are ",
        ),
        (
            "hour,y\n1,1\n3,0\n",
            Wanted(("hour",), "hour"),
            "--label hour: no such column to take the label from; it is a",
        ),
        ("hour,hour,y\n1,1,1\n3,3,0\n", Wanted(), "two columns are named 'hour'"),
        ("note,y\na,1\nb,0\n", Wanted(), "no column of numbers besides label and id; there are note, y"),
        ("hour,y\n1,1\nx,0\n", Wanted(("hour",)), "line 3, column hour: 'x' is not a number"),
        ("hour,y\n\n1,1\n3,no\n", Wanted(), "line 4, column y: 'no' is not a number"),
        ("hour,y\n1,1\n3\n", Wanted(), "line 3: every row must hold the same number of cells"),
        ("a-1,2,1\na-2,3,0\n", Wanted(), "line 1: is neither a header"),
        ("id,hour,y\n,1,1\n7,3,0\n", Wanted(), "line 2, column id: is empty; an id has 1 to 256 bytes"),
        ("1,2,1\n3,4,0\n", Wanted(label="fraud"), "has no names of columns for --label fraud to choose from"),
    ],
)
def test_what_names_do_not_say_is_not_guessed(tmp_path: Path, text: str, wanted: Wanted, message: str) -> None:
    """The message names the file, what it has and what is wanted."""
    path = csv_file(tmp_path, text)
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        read_rows(path, wanted)

    assert str(caught.value).startswith(str(path))


def test_what_was_taken_is_said(tmp_path: Path) -> None:
    """Every column is in the sentence, in its part."""
    text = "id,,hour,amount,note,y\n7,0,1,2,a,1\n8,1,3,4,b,0\n"

    all_numbers = read_rows(csv_file(tmp_path, text))
    named = read_rows(csv_file(tmp_path, text), Wanted(("amount",)))
    nameless = read_rows(csv_file(tmp_path, "1,2,1\n3,4,0\n"))

    assert all_numbers.columns == "features hour, amount; label y; id id; left out (unnamed), note"
    assert named.columns == "features amount; label y; id id; left out (unnamed), hour, note"
    assert nameless.columns is not None
    assert "label column 3, the last" in nameless.columns


def test_parquet_columns_are_found_by_name(tmp_path: Path) -> None:
    """The same rules, with types instead of texts."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: Parquet files are NOT tested here")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    columns = {"id": [7, 8], "hour": [1.0, 3.0], "note": ["a", "b"], "amount": [2, 4], "label": [True, False]}
    parquet.write_table(pyarrow.table(columns), path)

    rows = read_rows(path, Wanted(NAMED))
    assert taken(rows) == ([[2, 1], [4, 3]], [1, -1], [7, 8])
    assert rows.columns == "features amount, hour; label label; id id; left out note"
    assert taken(read_rows(path)) == ([[1, 2], [3, 4]], [1, -1], [7, 8])
    with pytest.raises(UsageError, match="no column velocity"):
        read_rows(path, Wanted(("velocity",)))


@pytest.mark.parametrize("name", ["a.npz", "a.svm"])
def test_files_without_names_have_their_labels_or_none(tmp_path: Path, name: str) -> None:
    """An archive and LIBSVM text say by their form what the label is."""
    np.savez(tmp_path / "a.npz", X=np.eye(2, dtype=np.float32), y=np.array([1, 0]))
    (tmp_path / "a.svm").write_text("1 1:1 2:0\n0 1:0 2:1\n")

    assert taken(read_rows(tmp_path / name)) == ([[1, 0], [0, 1]], [1, -1], None)
    assert taken(read_rows(tmp_path / name, Wanted(label="none"))) == ([[1, 0], [0, 1]], None, None)
    with pytest.raises(UsageError, match="no names of columns"):
        read_rows(tmp_path / name, Wanted(label="y"))
