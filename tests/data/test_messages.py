"""Files as messages to produce: rows become events, lines stay what they are."""

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from npstream.codec.decoder import EventConfig
from npstream.codec.features import Transform
from npstream.data.lines import event_key, to_line
from npstream.data.messages import messages_of_file
from npstream.errors import UsageError
from npstream.records import Record
from tests.replay.data import event_lines, rows, write_lines, write_npz


def test_rows_become_events_with_id_features_and_label(tmp_path: Path) -> None:
    """Row i is event i; named features make an object."""
    x, y = rows(20)
    path = write_npz(tmp_path / "a.npz", 20)

    count, messages, _ = messages_of_file(path, EventConfig(d=3, features=("a", "b", "c")), 0)

    documents = [orjson.loads(message.value) for message in messages]
    assert count == 20
    assert [document["id"] for document in documents] == list(range(20))
    assert [list(document["x"].values()) for document in documents] == x.astype(np.float64).tolist()
    assert [document["y"] for document in documents] == y.tolist()


HEADED = "hour,note,fraud,id,amount\n3,a,1,o-1,12.5\n4,b,0,o-2,0.5\n5,c,0,o-3,7\n"
"""Columns in another order than the settings name them, with an id, a label of its own name and a text."""


def sent(path: Path, events: EventConfig, label: str | None, delay: int = 0) -> list[dict[str, Any]]:
    """The documents a file makes."""
    return [orjson.loads(message.value) for message in messages_of_file(path, events, delay, label).messages]


def test_columns_are_taken_by_name(tmp_path: Path) -> None:
    """Features in the order of the settings, the id of the row, the label where it is; the rest is left out."""
    (tmp_path / "a.csv").write_text(HEADED)
    named = EventConfig(d=2, features=("amount", "hour"))

    assert sent(tmp_path / "a.csv", named, "fraud") == [
        {"id": "o-1", "x": {"amount": 12.5, "hour": 3.0}, "y": 1},
        {"id": "o-2", "x": {"amount": 0.5, "hour": 4.0}, "y": -1},
        {"id": "o-3", "x": {"amount": 7.0, "hour": 5.0}, "y": -1},
    ]
    assert [d["x"] for d in sent(tmp_path / "a.csv", EventConfig(d=2), "fraud")] == [[3, 12.5], [4, 0.5], [5, 7]]
    taken = messages_of_file(tmp_path / "a.csv", named, 0, "fraud").columns
    assert taken == "features amount, hour; label fraud; id id; left out note"


def test_late_labels_have_the_id_of_their_row(tmp_path: Path) -> None:
    """An id of the file names event and label alike."""
    (tmp_path / "a.csv").write_text(HEADED)
    found = sent(tmp_path / "a.csv", EventConfig(d=2), "fraud", delay=1)

    assert [d["id"] for d in found if "x" in d] == ["o-1", "o-2", "o-3"]
    assert [(d["id"], d["y"]) for d in found if "x" not in d] == [("o-1", 1), ("o-2", -1), ("o-3", -1)]


def test_rows_without_labels_can_be_sent(tmp_path: Path) -> None:
    """Asked for by name, whatever the kind of file; what has no label cannot send it later."""
    (tmp_path / "a.csv").write_text("id,amount,hour\n7,1,2\n8,3,4\n")
    (tmp_path / "b.csv").write_text("1,2\n3,4\n")
    np.savez(tmp_path / "c.npz", X=np.array([[1, 2], [3, 4]], np.float32))

    for name, first in (("a.csv", 7), ("b.csv", 0), ("c.npz", 0)):
        found = sent(tmp_path / name, EventConfig(d=2), "none")
        assert found == [{"id": first, "x": [1, 2]}, {"id": first + 1, "x": [3, 4]}]
    with pytest.raises(UsageError, match="no labels to send later"):
        messages_of_file(tmp_path / "a.csv", EventConfig(d=2), 3, "none")


def test_raw_rows_are_packed(tmp_path: Path) -> None:
    """Format f32: the row's own bytes, id and label in headers."""
    x, y = rows(20)

    _, messages, _ = messages_of_file(write_npz(tmp_path / "a.npz", 20), EventConfig(d=3, format="f32"), 0)

    found = list(messages)
    assert b"".join(message.value for message in found) == x.tobytes()
    assert [dict(message.headers) for message in found] == [
        {"id": b"%d" % i, "y": b"%d" % label} for i, label in enumerate(y)
    ]


def test_delayed_labels_are_messages_of_their_own(tmp_path: Path) -> None:
    """Twice as many messages as rows; each label comes right after the row `delay` places later."""
    count, messages, _ = messages_of_file(write_npz(tmp_path / "a.npz", 20), EventConfig(d=3), 4)

    documents = [orjson.loads(message.value) for message in messages]
    assert count == len(documents) == 40
    assert [(d["id"], "x" in d) for d in documents[:8]] == [
        *((0, True), (1, True), (2, True), (3, True), (4, True), (0, False), (5, True), (1, False))
    ]


def test_lines_are_sent_as_they_are(tmp_path: Path) -> None:
    """Not a byte of an event changes, and its id is its key."""
    lines = event_lines(20)

    count, messages, _ = messages_of_file(write_lines(tmp_path / "a.jsonl", lines), EventConfig(d=3), 0)

    found = list(messages)
    assert count == len(lines)
    assert [message.value for message in found] == lines
    assert [message.key for message in found] == [orjson.loads(line)["id"].encode() for line in lines]


def test_an_export_is_sent_with_key_headers_and_time(tmp_path: Path) -> None:
    """What was exported can be produced again elsewhere."""
    record = Record(4, 99, b"k", b'{"x":[1,2,3]}', (("traceparent", b"t"), ("empty", None)))
    path = write_lines(tmp_path / "a.jsonl", [to_line(0, record).rstrip()])

    _, messages, _ = messages_of_file(path, EventConfig(d=3), 0)

    (message,) = messages
    assert (message.key, message.value, message.timestamp_ms) == (b"k", record.value, 99)
    assert list(message.headers) == [("traceparent", b"t")]


@pytest.mark.parametrize(
    ("value", "key"),
    [(b'{"id":"a"}', b"a"), (b'{"id":7}', b"7"), (b'{"id":null}', b"3"), (b"{}", b"3"), (b"?", b"3"), (None, b"3")],
)
def test_what_names_no_id_is_keyed_by_its_number(value: bytes | None, key: bytes) -> None:
    """Events without an id spread over the partitions too."""
    assert event_key(value, 3) == key


def test_one_column_is_a_stream_of_scores(tmp_path: Path) -> None:
    """With preset external each row is a score; several columns are refused."""
    external = EventConfig(d=0, external=True)

    _, messages, _ = messages_of_file(write_npz(tmp_path / "a.npz", 20, d=1), external, 0)

    assert [orjson.loads(m.value)["score"] for m in messages] == rows(20, d=1)[0][:, 0].astype(float).tolist()
    with pytest.raises(UsageError, match="has 3 features, the settings say one score"):
        messages_of_file(write_npz(tmp_path / "b.npz", 20), external, 0)


def test_a_table_is_not_for_a_function_of_whole_events(tmp_path: Path) -> None:
    """Its rows are no documents that the user's function could take."""
    transformed = EventConfig(d=3, transform=Transform("pipeline.events:unwrap", "0" * 16))

    with pytest.raises(UsageError, match=r"events\.transform takes whole events, .* lines of a \.jsonl file"):
        messages_of_file(write_npz(tmp_path / "a.npz", 20), transformed, 0)
