"""Files as streams: each kind read once, and refused by name when it cannot be used."""

from pathlib import Path

import numpy as np
import pytest

from npstream import client
from npstream.codec.decoder import EventConfig
from npstream.data.lines import read_lines, to_line
from npstream.errors import UsageError
from npstream.records import Record
from npstream.replay.event_file import LinesFile, open_file
from npstream.replay.source import ArraySource, RecordSource
from tests.replay.data import event_lines, rows, write_lines, write_npz


def refusal(path: Path, width: int = 3, partitions: int = 1, delay: int = 0) -> str:
    """The message to the user about a file."""
    with pytest.raises(UsageError) as caught:
        open_file(path).source(EventConfig(d=width), "events", partitions, delay)
    return str(caught.value)


def test_every_kind_of_data_set_gives_the_same_rows(tmp_path: Path) -> None:
    """An archive, a table and LIBSVM text of the same numbers are the same stream."""
    x, y = rows(40)
    np.savez(tmp_path / "a.npz", X=x, y=y)
    lines = [",".join([*(repr(float(v)) for v in row), str(label)]) for row, label in zip(x, y, strict=True)]
    (tmp_path / "a.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    pairs = [" ".join(f"{i + 1}:{float(v)!r}" for i, v in enumerate(row)) for row in x]
    (tmp_path / "a.svm").write_text("".join(f"{label} {pair}\n" for label, pair in zip(y, pairs, strict=True)))

    for name in ("a.npz", "a.csv", "a.svm"):
        source = open_file(tmp_path / name).source(EventConfig(d=3), "events")
        assert isinstance(source, ArraySource)
        assert (source.x.tolist(), source.y.tolist()) == (x.tolist(), y.tolist()), name


def test_lines_of_events_are_taken_as_they_are(tmp_path: Path) -> None:
    """Each line is one event of partition 0, byte for byte, blank lines left out."""
    lines = event_lines(20)
    path = write_lines(tmp_path / "a.jsonl", [lines[0], b"", *lines[1:]])

    opened = open_file(path)

    assert isinstance(opened, LinesFile)
    assert not opened.exported
    assert [record.value for record in opened.records[0]] == lines
    assert opened.width == 3


def test_an_event_and_its_label_meet_when_a_file_is_spread(tmp_path: Path) -> None:
    """Spread over partitions, events go where their key would send them, and no line is lost."""
    lines = event_lines(200)
    source = open_file(write_lines(tmp_path / "a.jsonl", lines)).source(EventConfig(d=3), "events", 4)

    assert isinstance(source, RecordSource)
    assert sorted(r.value or b"" for part in source.records.values() for r in part) == sorted(lines)
    assert client.partition_for(b"e7", 4) == next(
        p for p, part in source.records.items() if any(b'"e7"' in (r.value or b"") for r in part)
    )
    for part in source.records.values():
        assert [record.offset for record in part] == list(range(len(part)))


def test_an_export_keeps_place_time_key_and_headers(tmp_path: Path) -> None:
    """What was written to a line comes back, text or not."""
    one = Record(4, 9, b"\xff", b'{"x":[1,2,3]}', (("traceparent", b"\xfe"), ("y", None)))
    other = Record(7, 8, None, None, ())
    path = write_lines(tmp_path / "a.jsonl", [to_line(3, one).rstrip(), to_line(0, other).rstrip()])

    assert read_lines(path).by_partition() == {3: [one], 0: [other]}
    assert "keep their partitions" in refusal(path, partitions=2)


@pytest.mark.parametrize(
    ("name", "content", "reported"),
    [
        ("missing.npz", None, "no such file"),
        ("missing.jsonl", None, "No such file"),
        ("a.xls", "", "unknown kind of file; known endings: .npz"),
        ("empty.csv", "", "is empty"),
        ("empty.npz", "", "expected arrays X and y"),
        ("torn.npz", "PK\x03\x04 and no more", "expected arrays X and y"),
        ("binary.csv", "\udcff\udcfe,1\n", "cannot be read as .csv"),
        ("binary.svm", "\udcff\udcfe", "cannot be read as .svm"),
        ("empty.jsonl", "\n\n", "is empty"),
        ("empty.svm", "", "expected LIBSVM rows"),
        ("torn.csv", "1,2,1\n1,2\n", "every row must hold the same number"),
        ("nan.csv", "1,nan,2,1\n1,2,3,0\n", "NaN or infinite"),
        ("one_class.csv", "1,2,3,1\n1,2,4,1\n", "two label values"),
        ("wide.csv", "1,2,3,4,1\n1,2,3,4,0\n", "has 4 features, the settings say 3 (model.d)"),
        ("wide.jsonl", '{"id":1,"y":1}\n{"x":[1,2,3,4]}\n', "has 4 features, the settings say 3 (model.d)"),
        ("torn.jsonl", '{"x":[1,2,3]}\n{"x":[1,2\n', "line 2: is not JSON"),
        ("half.jsonl", '{"partition":0,"offset":1,"value":"{}"}\n', "line 1: is not an exported record"),
        (
            "unsorted.jsonl",
            '{"partition":0,"offset":5,"timestamp":1,"value":"{}"}\n{"partition":0,"offset":4,"timestamp":1,"value":""}',
            "line 2: offset 4 of partition 0 does not follow",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, name: str, content: str | None, reported: str
) -> None:
    """The message names the file and what is wrong with it."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))

    message = refusal(path)

    assert message.startswith(str(path))
    assert reported in message


def test_labels_of_lines_come_when_the_lines_say(tmp_path: Path) -> None:
    """A delay is for data sets, whose rows bring their label at once."""
    assert "--delay is for data sets" in refusal(write_lines(tmp_path / "a.jsonl", event_lines(5)), delay=3)


def test_an_archive_of_another_width_is_refused(tmp_path: Path) -> None:
    """The settings' number of features is compared before anything is replayed."""
    assert "has 5 features, the settings say 3" in refusal(write_npz(tmp_path / "a.npz", d=5))
