"""Histories that cannot be used, reported alike by every command that replays one."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npstream import client
from npstream.cli.exits import FAILED, FATAL, OK, STATE, USAGE
from npstream.records import Channel
from npstream.testing import Stage
from tests.cli.lines import SMALL, Done, npstream, settings_file

REPLAYING = ("backtest", "train", "tune")
_FUTURE = "2099-01-01T00:00:00Z"


def replay(command: str, folder: Path, *arguments: str | Path) -> Done:
    """A replaying command whose results, if any, go to the folder."""
    out: dict[str, list[str | Path]] = {
        "train": ["--out", folder / "model.npstream"],
        "tune": ["--out", folder / "best.yaml", "--trials", "1", "--jobs", "1"],
    }
    return npstream(command, *arguments, *out.get(command, []))


def empty_log(folder: Path) -> Path:
    """Settings whose topics exist and hold nothing."""
    Stage(SMALL, folder)
    return settings_file(folder)


def filled_log(folder: Path) -> Path:
    """Settings whose topic holds ten events."""
    Stage(SMALL, folder).send([client.event(i, [i, 1.0, 2.0], target=i % 2 > 0) for i in range(10)])
    return settings_file(folder)


def refused(done: Done) -> str:
    """What is reported about something that cannot be used: one message, nothing else."""
    assert (done.code, done.out) == (USAGE, ""), done.err
    assert done.err.startswith("npstream: ")
    assert done.err.count("\n") == 1
    return done.err


@pytest.mark.parametrize("command", [*REPLAYING, "produce"])
@pytest.mark.parametrize(
    ("name", "content", "reported"),
    [
        ("nowhere.npz", None, "no such file"),
        ("nowhere.jsonl", None, "No such file"),
        ("empty.csv", b"", "is empty"),
        ("empty.npz", b"", "expected arrays X and y"),
        ("empty.jsonl", b"\n", "is empty"),
        ("data.xlsx", b"", "unknown kind of file; known endings: .npz"),
        ("wide.csv", b"1,2,3,4,1\n1,2,3,5,0\n", "has 4 features, the settings say 3 (model.d)"),
    ],
)
def test_a_file_that_cannot_be_used(
    command: str, name: str, content: bytes | None, reported: str, tmp_path: Path
) -> None:
    """Wrong path, empty file, wrong kind and wrong feature count: one line that names the file, the usage code."""
    config = empty_log(tmp_path)
    if content is not None:
        (tmp_path / name).write_bytes(content)

    message = refused(replay(command, tmp_path, tmp_path / name, "--config", config))

    assert name in message
    assert reported in message
    assert list(tmp_path.glob("best*")) + list(tmp_path.glob("model*")) == []


def table(folder: Path, header: str) -> Path:
    """Forty rows under these names; `hour` and `amount` are far apart in size."""
    cells = {"hour": "{h}", "amount": "{a}", "y": "{y}", "fraud": "{y}", "id": "o-{i}"}
    row = ",".join(cells[name] for name in header.split(","))
    rows = [row.format(h=i % 24, a=1000 + i, y=i % 2, i=i) for i in range(40)]
    path = folder / "table.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize("command", [*REPLAYING, "produce"])
def test_columns_of_a_table_are_taken_by_name(command: str, tmp_path: Path) -> None:
    """Whatever their order in the file, what is replayed or sent is the same; the command says what it took."""
    named = {"events": {"features": ["amount", "hour"]}, "model": {"D": 8, "tau": 0.1}}
    Stage({**SMALL, **named}, tmp_path)
    config = settings_file(tmp_path, **named)

    one = replay(command, tmp_path, table(tmp_path, "hour,id,amount,y"), "--config", config)
    other = replay(command, tmp_path, table(tmp_path, "fraud,amount,id,hour"), "--config", config, "--label", "fraud")

    assert (one.code, other.code) == (OK, OK), other.err
    assert "table.csv: features amount, hour; label y; id id\n" in one.err
    assert "table.csv: features amount, hour; label fraud; id id\n" in other.err
    if command == "backtest":
        assert one.out == other.out


def test_columns_that_are_sent_are_those_of_the_settings(tmp_path: Path) -> None:
    """On the topic each number is under its own name, and the row's id is the event's."""
    named = {"events": {"features": ["amount", "hour"]}, "model": {"D": 8, "tau": 0.1}}
    stage = Stage({**SMALL, **named}, tmp_path)

    npstream("produce", table(tmp_path, "hour,id,amount,y"), "--config", settings_file(tmp_path, **named))

    found = [json.loads(record.value or b"") for record in stage.records(Channel.EVENTS, 0)]
    assert found[3] == {"id": "o-3", "x": {"amount": 1003, "hour": 3}, "y": 1}


@pytest.mark.parametrize("command", [*REPLAYING, "produce"])
def test_a_table_whose_label_has_no_known_name_is_refused(command: str, tmp_path: Path) -> None:
    """Neither the last column nor the first is taken for the label; the message says how to name it."""
    config = settings_file(tmp_path, events={"features": ["amount", "hour"]}, model={"D": 8, "tau": 0.1})

    message = refused(replay(command, tmp_path, table(tmp_path, "fraud,amount,hour"), "--config", config))

    assert "--label NAME" in message
    assert "there are fraud, amount, hour" in message


def test_rows_without_labels_are_sent_and_not_replayed(tmp_path: Path) -> None:
    """A file without labels can be produced; there is nothing in it to learn from."""
    path = table(tmp_path, "hour,amount")
    named = {"events": {"features": ["amount", "hour"]}, "model": {"D": 8, "tau": 0.1}}
    Stage({**SMALL, **named}, tmp_path)
    config = settings_file(tmp_path, **named)

    assert npstream("produce", path, "--config", config, "--label", "none").code == OK
    assert "has no labels" in refused(npstream("backtest", path, "--config", config, "--label", "none"))


def test_features_can_be_named_without_a_settings_file(tmp_path: Path) -> None:
    """On the command line they count themselves, as in a file."""
    path = table(tmp_path, "hour,amount,y")
    features = ("--set", "events.features=[amount]", "--set", "model.D=8")

    done = npstream("backtest", path, *features)

    assert done.code == OK, done.err
    assert "features amount; label y; left out hour" in done.err


@pytest.mark.parametrize("command", [*REPLAYING, "export"])
@pytest.mark.parametrize(
    ("log", "arguments", "reported"),
    [
        (empty_log, [], "events: is empty; send events first"),
        (filled_log, ["--from", _FUTURE], "no event between 2099-01-01T00:00:00Z and the end; it holds offsets 0 to 9"),
        (filled_log, ["--from", "10"], "no event between 10 and the end"),
        (filled_log, ["--partition", "4"], "partition 4 does not exist"),
        (filled_log, ["--from", "soon"], "neither an offset nor a timestamp such as"),
        (filled_log, ["--to", "2026-05-01T00:00:00"], "must name its time zone"),
    ],
)
def test_a_range_that_cannot_be_used(
    command: str, log: Callable[[Path], Path], arguments: list[str], reported: str, tmp_path: Path
) -> None:
    """Empty topic, future range and wrong words: one line with what there is, the usage code."""
    config = log(tmp_path)
    file = [str(tmp_path / "out.jsonl")] if command == "export" else []

    assert reported in refused(replay(command, tmp_path, *file, "--config", config, *arguments))


@pytest.mark.parametrize("command", REPLAYING)
def test_nothing_to_replay_is_reported(command: str, tmp_path: Path) -> None:
    """Neither a file nor settings: the message says what to give."""
    assert "give a file, or --config" in refused(replay(command, tmp_path))


@pytest.mark.parametrize("command", REPLAYING)
def test_a_missing_topic_ends_with_the_code_for_brokers(command: str, tmp_path: Path) -> None:
    """A topic that does not exist is not an empty one: the fix is another."""
    empty_log(tmp_path)
    done = replay(command, tmp_path, "--config", settings_file(tmp_path, topics={"events": "other"}))

    assert (done.code, done.out) == (FATAL, "")
    assert "other" in done.err


def test_options_for_topics_and_files_are_not_mixed(tmp_path: Path) -> None:
    """A range of a file, and the spreading of a topic, would silently do nothing: they are refused."""
    (tmp_path / "a.csv").write_text("1,2,3,1\n1,2,4,0\n")
    config = filled_log(tmp_path)

    assert "leave them out" in refused(npstream("backtest", tmp_path / "a.csv", "--from", "3"))
    assert "a topic has its own" in refused(npstream("backtest", "--config", config, "--partitions", "3"))
    assert "a topic has its own" in refused(npstream("tune", "--config", config, "--delay", "3"))


def test_mostly_bad_events_are_reported(tmp_path: Path) -> None:
    """A replay that stopped where a worker would pause says so and exits 1; training on it is refused."""
    lines = ['{"x":[1,2,3],"y":1}', *['{"x":"?"}'] * 700]
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    config = settings_file(tmp_path)

    replayed = npstream("backtest", tmp_path / "bad.jsonl", "--config", config)
    trained = replay("train", tmp_path, tmp_path / "bad.jsonl", "--config", config)

    assert replayed.code == FAILED
    assert "stopped early: events/0: more than 50% of a block of 1000 events are bad" in replayed.err
    assert (trained.code, (tmp_path / "model.npstream").exists()) == (STATE, False)


@pytest.mark.parametrize("command", ["train", "tune"])
def test_a_place_that_cannot_be_written_is_reported_before_the_work(command: str, tmp_path: Path) -> None:
    """A file where a folder should be: refused at once, with the path."""
    (tmp_path / "file").write_text("")
    np.savez(tmp_path / "a.npz", X=np.eye(4, dtype=np.float32), y=np.array([1, 0, 1, 0]))

    message = refused(npstream(command, tmp_path / "a.npz", "--out", tmp_path / "file" / "out.x"))

    assert f"cannot write {tmp_path / 'file' / 'out.x'}" in message


def test_a_report_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """The same for the folder of a report."""
    (tmp_path / "file").write_text("")
    np.savez(tmp_path / "a.npz", X=np.eye(4, dtype=np.float32), y=np.array([1, 0, 1, 0]))

    assert "cannot write" in refused(npstream("backtest", tmp_path / "a.npz", "--report", tmp_path / "file"))


def test_two_rows_are_enough(tmp_path: Path) -> None:
    """The smallest data set runs: one row of each class."""
    (tmp_path / "a.csv").write_text("1,2,3,1\n1,2,4,0\n")

    assert npstream("backtest", tmp_path / "a.csv", "--json").code == OK
    assert replay("train", tmp_path, tmp_path / "a.csv", "--json").code == OK
