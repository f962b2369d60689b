"""Export: a range of a topic as a file, and the same decisions from the one as from the other."""

from pathlib import Path

import orjson
import pytest

from npstream import client
from npstream.data.lines import read_lines
from npstream.records import Channel
from tests.history.stages import as_json, mixed, stage, tool
from tests.stage.stage import run_cli


def test_an_export_holds_every_record_as_it_is(tmp_path: Path) -> None:
    """Partition, offset, timestamp, key, headers and value come back, binary or absent ones too."""
    made = stage(tmp_path, partitions=2)
    made.send([*mixed(30), client.Message(b"\xff", b"\x00\xff", [("h", b"\xfe"), ("h", b"2")], 5)], partition=1)
    made.send(mixed(3), partition=0)
    file = tmp_path / "events.jsonl"

    found = as_json(tool(tmp_path, "export", str(file), "--json"))

    assert found == {"file": str(file), "events": 34, "partitions": [0, 1]}
    for partition, records in read_lines(file).by_partition().items():
        wanted = made.records(Channel.EVENTS, partition)
        assert [r._replace(headers=tuple(r.headers)) for r in wanted] == records


def test_a_range_and_standard_output(tmp_path: Path) -> None:
    """Offsets bound the export; - writes lines to a pipe and nothing else."""
    made = stage(tmp_path)
    made.send(mixed(20))
    lines = tool(tmp_path, "export", "-", "--from", "5", "--to", "9").stdout.splitlines()

    assert [orjson.loads(line)["offset"] for line in lines] == [5, 6, 7, 8]


def test_a_backtest_of_the_topic_and_of_its_export_give_the_live_decisions(tmp_path: Path) -> None:
    """One digest for the live run, the topic and the file; the group and its topics stay as they were."""
    made = stage(tmp_path)
    nameless = [client.Message(b"k%d" % i, b'{"x":[%d,0,1],"y":%d}' % (i % 5, i % 2)) for i in range(50)]
    made.send([*mixed(650), *nameless])
    made.run(crashes=[4, 9])
    file = tmp_path / "events.jsonl"
    tool(tmp_path, "export", str(file))
    before = made.path.with_name(made.path.name).stat().st_size, as_json(tool(tmp_path, "lag", "--json"))

    topic = as_json(tool(tmp_path, "backtest", "--json"))[0]
    exported = as_json(run_cli("backtest", str(file), "--config", str(tmp_path / "settings.yaml"), "--json"))[0]

    audited = as_json(tool(tmp_path, "audit", "--json"))
    assert audited["holds"]
    assert topic["digest"] == exported["digest"]
    assert topic["partitions"][0]["chain"] == live_chain(made.path)
    assert topic["events"] == exported["events"] == 700
    assert (made.path.stat().st_size, as_json(tool(tmp_path, "lag", "--json"))) == before


def live_chain(path: Path) -> str:
    """The digest of everything published, as the worker committed it."""
    import sqlite3

    with sqlite3.connect(path) as db:
        (metadata,) = db.execute("SELECT metadata FROM positions").fetchone()
    db.close()
    chain: str = orjson.loads(metadata)["chain"]
    return chain


@pytest.mark.parametrize(
    ("file", "arguments", "message"),
    [
        ("out.jsonl", ["--from", "2099-01-01T00:00:00Z"], "no event between"),
        ("no/such/folder/out.jsonl", [], "cannot be written"),
        ("-", ["--json"], "would mix on standard output"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path: Path, file: str, arguments: list[str], message: str) -> None:
    """One clear message and exit code 2."""
    made = stage(tmp_path)
    made.send(mixed(5))
    result = tool(tmp_path, "export", file if file == "-" else str(tmp_path / file), *arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def test_an_empty_topic_is_reported(tmp_path: Path) -> None:
    """Nothing to export is not an empty file."""
    stage(tmp_path)
    result = tool(tmp_path, "export", str(tmp_path / "out.jsonl"))

    assert result.exit_code == 2
    assert not (tmp_path / "out.jsonl").exists()
