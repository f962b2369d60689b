"""Tables through the mapping of events: a row is what its event would be, wherever its columns are."""

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
import pytest
from pyarrow import parquet

from npstream.codec.decoder import EventConfig, EventDecoder, Kind
from npstream.data.columns import Wanted
from npstream.data.files import Rows, read_rows
from npstream.data.messages import messages_of_file
from npstream.errors import DataError
from npstream.records import Record
from npstream.settings import events_config
from tests.data.payments_table import MAPPED, rows, values, write_csv, write_parquet

PAYMENTS = events_config({"events": MAPPED, "model": {"seed": 7}})


def mapped(features: dict[str, Any], **events: Any) -> EventConfig:
    """Settings with these features."""
    return events_config({"events": {"features": features, **events}})


def read(path: Path, events: EventConfig, label: str | None = None) -> Rows:
    """A file by these settings."""
    return read_rows(path, Wanted.by(events, label))


def decoded(events: list[bytes], using: EventConfig) -> tuple[bytes, list[int], list[object]]:
    """Columns, labels and ids of events, as the worker has them."""
    found = EventDecoder(using).decode([Record(i, 1, None, value, ()) for i, value in enumerate(events)])
    assert found.errors == {}
    return found.x.tobytes(), found.y.tolist(), [*found.ids]


def taken(found: Rows) -> tuple[bytes, list[int], list[object]]:
    """The same of a file."""
    assert found.y is not None
    return found.x.tobytes(), found.y.tolist(), [*(found.ids or ())]


def test_a_row_is_its_event(tmp_path: Path) -> None:
    """CSV, Parquet and JSON of the same payments give the same columns to the bit, the same labels and ids."""
    table = rows(300)
    expected = decoded(values(table), PAYMENTS)

    assert taken(read(write_csv(tmp_path / "a.csv", table), PAYMENTS)) == expected
    assert taken(read(write_parquet(tmp_path / "a.parquet", table), PAYMENTS)) == expected


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_what_produce_sends_is_read_as_the_file(name: str, tmp_path: Path) -> None:
    """The messages of a file are events that the worker reads as a replay reads the rows."""
    table = rows(100)
    path = (write_csv if name == "a.csv" else write_parquet)(tmp_path / name, table)

    count, messages, _ = messages_of_file(path, PAYMENTS, 0)
    sent = list(messages)

    assert (count, [message.key for message in sent]) == (100, [b"p-%d" % i for i in range(100)])
    assert decoded([message.value for message in sent], PAYMENTS) == decoded(values(table), PAYMENTS)
    assert orjson.loads(sent[0].value)["card"] == {"country": table[0]["card.country"]}


def test_labels_of_a_mapped_file_may_come_later(tmp_path: Path) -> None:
    """A row's label has the id of its event, under the names of the settings; a row without one sends none."""
    table = rows(5)
    table[3]["fraud"] = None
    count, messages, _ = messages_of_file(write_csv(tmp_path / "a.csv", table), PAYMENTS, 2)

    found = [orjson.loads(message.value) for message in messages]
    assert count == len(found) == 9
    assert [d for d in found if "amount" not in d] == [
        {"payment_id": f"p-{i}", "fraud": table[i]["fraud"]} for i in (0, 1, 2, 4)
    ]


def test_the_order_of_columns_does_not_matter(tmp_path: Path) -> None:
    """A header in another order gives the same features."""
    table = rows(50)
    one = read(write_csv(tmp_path / "a.csv", table), PAYMENTS)
    other = read(write_csv(tmp_path / "b.csv", table, list(reversed(table[0]))), PAYMENTS)

    assert taken(one) == taken(other)
    assert one.columns == (
        "features amount, velocity_1h, card.country, merchant_mcc, auth.three_ds, created_at; label fraud; "
        "id payment_id; left out note"
    )


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("card.country", "no column card.country (feature country); wanted are amount, velocity_1h, card.country, "),
        ("created_at", "no column created_at (feature hour, weekday); wanted are"),
        ("fraud", "no column fraud (events.label); name the label's with --label NAME"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_header_that_lacks_something_is_refused(name: str, gone: str, message: str, tmp_path: Path) -> None:
    """The message names the column, the feature it is for, and what there is."""
    table = [{column: value for column, value in row.items() if column != gone} for row in rows(5)]
    path = tmp_path / name
    if name == "a.csv":
        write_csv(path, table)
    else:
        parquet.write_table(pyarrow.Table.from_pylist(table), path)

    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read(path, PAYMENTS)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("amount", "", "line 3, column amount: amount: amount is absent or null (a feature that must not be missing"),
        ("amount", "dear", "line 3, column amount: amount: amount is 'dear' (a feature or the score is not a number)"),
        ("amount", "inf", "line 3, column amount: amount: amount is NaN or infinite"),
        ("amount", "1e16", "line 3, column amount: amount: amount is beyond 1e15"),
        ("auth.three_ds", "2", "line 3, column auth.three_ds: three_ds: auth.three_ds is 2.0; it must be true"),
        ("created_at", "soon", "line 3, column created_at: hour: created_at is 'soon'; it must be ISO-8601"),
        ("fraud", "maybe", "line 3, column fraud: fraud is 'maybe'; a target is True or 'Y'"),
        ("payment_id", "", "line 3, column payment_id: is empty"),
    ],
)
def test_a_cell_that_would_be_a_dead_letter_is_named(column: str, cell: str, message: str, tmp_path: Path) -> None:
    """Line, column, feature and what is wrong: in the words of the dead letter."""
    table = rows(3)
    table[1][column] = cell
    with pytest.raises(DataError, match=re.escape(message)):
        read(write_csv(tmp_path / "a.csv", table), PAYMENTS)


def test_cells_of_text_are_read_by_their_kind(tmp_path: Path) -> None:
    """In CSV everything is text: a flag may be written in several ways, a time as a number, a category as it is."""
    features = {"on": {"flag": "on"}, "hour": {"time": "at", "cycle": "day"}, "code": {"category": "code"}}
    (tmp_path / "a.csv").write_text(
        "on,at,code,y\n"
        "TRUE,2026-05-01T06:00:00Z,7,1\n"
        ' 1 ,1777615200000,"7",0\n'
        "1.0,1777615200, 7,\n"
        "false,2026-05-01,,1\n"
    )

    found = read(tmp_path / "a.csv", mapped(features))

    on, sine, cosine, code = found.x.T
    assert on.tolist() == [1, 1, 1, 0]
    assert {*zip(sine[:3].tolist(), cosine[:3].tolist(), strict=True)} == {(sine[0], cosine[0])}
    assert code[0] == code[1] != code[2]  # a space belongs to the text
    assert np.isnan(code[3])
    assert found.y is not None
    assert found.y.tolist() == [1, -1, 0, 1]


def test_typed_columns_are_read_by_their_type(tmp_path: Path) -> None:
    """Decimals are numbers, dates times; whole numbers are categories, also where missing ones made them floats."""
    path = tmp_path / "a.parquet"
    big = 2**63 - 1
    columns = {
        "price": pyarrow.array([Decimal("12.34"), Decimal("0.10"), None]),
        "mcc": pyarrow.array([5411.0, None, 4829.0]),
        "card": pyarrow.array([big, big - 1, None]),
        "day": pyarrow.array([date(2026, 5, 1), None, date(1969, 12, 31)]),
        "y": [True, False, True],
    }
    parquet.write_table(pyarrow.table(columns), path)
    using = mapped(
        {
            "price": {"number": "price", "missing": "allow"},
            "mcc": {"category": "mcc"},
            "card": {"category": "card"},
            "day": {"time": "day", "cycle": "year", "missing": "allow"},
        }
    )
    events = [
        {"price": 12.34, "mcc": 5411, "card": big, "day": "2026-05-01", "y": 1},
        {"price": 0.1, "card": big - 1, "y": 0},
        {"mcc": 4829, "day": "1969-12-31", "y": 1},
    ]

    assert taken(read(path, using))[:2] == decoded([orjson.dumps(event) for event in events], using)[:2]


@pytest.mark.parametrize(
    ("feature", "column", "message"),
    [
        ({"number": "v"}, pyarrow.array([True, False]), "row 1, column v: f: v is True (a feature or the score is not"),
        ({"number": "v"}, pyarrow.array(["1", "2"]), "row 1, column v: f: v is '1' (a feature or the score is not a"),
        (
            {"category": "v"},
            pyarrow.array([1.0, 2.5]),
            "row 2, column v: f: v is 2.5; use text, an integer or a boolean",
        ),
        ({"category": "v"}, pyarrow.array([[1], [2]]), "row 1, column v: f: v is [1]; use text"),
        ({"flag": "v"}, pyarrow.array(["yes", None]), "row 1, column v: f: v is 'yes'; it must be true"),
        ({"time": "v", "cycle": "day"}, pyarrow.array([True, False]), "row 1, column v: f: v is True; it must be ISO"),
    ],
)
def test_a_type_that_the_topic_would_refuse_is_refused(
    feature: dict[str, str], column: Any, message: str, tmp_path: Path
) -> None:
    """Parquet has types, and they mean what they mean in an event."""
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"v": column, "y": [0, 1]}), path)

    with pytest.raises(DataError, match=re.escape(message)):
        read(path, mapped({"f": feature}))


def test_raw_floats_are_rounded_as_on_the_topic(tmp_path: Path) -> None:
    """With format f32 a row's numbers are the topic's float32 before they are scaled."""
    features = {"a": {"number": "a", "scale": "log"}, "b": {"number": "b", "missing": "allow"}}
    using = mapped(features, format="f32")
    (tmp_path / "a.csv").write_text("a,b,y\n0.1,7,1\n123.456,,0\n")

    _, messages, _ = messages_of_file(tmp_path / "a.csv", using, 0)
    sent = [Record(i, 1, m.key, m.value, m.headers) for i, m in enumerate(messages)]
    found = EventDecoder(using).decode(sent)

    assert found.kinds == [Kind.LABELLED] * 2
    assert found.x.tobytes() == read(tmp_path / "a.csv", using).x.tobytes()


def test_files_without_names_cannot_be_mapped(tmp_path: Path) -> None:
    """An archive, LIBSVM text and a table of numbers alone have nothing that a path could name."""
    np.savez(tmp_path / "a.npz", X=np.eye(2, dtype=np.float32), y=np.array([1, 0]))
    (tmp_path / "a.svm").write_text("1 1:1 2:0\n0 1:0 2:1\n")
    (tmp_path / "a.csv").write_text("1,2,1\n3,4,0\n")

    for name in ("a.npz", "a.svm", "a.csv"):
        with pytest.raises(DataError, match="has no names of columns for the mapping"):
            read(tmp_path / name, mapped({"a": {"number": "a"}}))
