"""`npstream label`: labels of a file reach their events, however old those are, once."""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from npstream import client
from npstream.backend import backend_of
from npstream.cli.exits import FATAL, OK, USAGE
from npstream.codec.learn_header import LEARN_HEADER
from npstream.partition import PartitionProcessor
from npstream.records import Channel, Record
from npstream.settings import load
from npstream.state import committed_snapshot, processor_of
from npstream.testing import Stage
from tests.cli.lines import SMALL, Done, npstream, settings_file

BUFFER: dict[str, Any] = {"labels": {"buffer_max": 20}}
PARTITIONS = 2


def stage_of(folder: Path, count: int = 200, **sections: Any) -> Stage:
    """Settings on a log with observations that wait for their labels, of which few can wait."""
    stage = Stage({**SMALL, **BUFFER, **sections}, folder, PARTITIONS)
    settings_file(folder, **BUFFER, **sections)
    stage.send([client.event(f"e-{i}", [i % 7, i % 3, 1.0]) for i in range(count)])
    return stage


def label(folder: Path, rows: Sequence[str], *arguments: str, header: str = "id,y") -> Done:
    """The command on a file with these rows."""
    file = folder / "labels.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return npstream("label", file, "--config", folder / "settings.yaml", *arguments)


def said(done: Done) -> dict[str, Any]:
    """Its JSON document."""
    assert done.code == OK, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def labels_in(stage: Stage) -> list[tuple[int, Record]]:
    """The labels that are in the events topic, with their partitions."""
    return [
        (partition, record)
        for partition in range(stage.partitions)
        for record in stage.records(Channel.EVENTS, partition)
        if any(name == LEARN_HEADER for name, _ in record.headers)
    ]


def learned(stage: Stage) -> Counter[str]:
    """Fates of labels over all partitions, and how many events the models have learned from."""
    counts: Counter[str] = Counter()
    for partition in range(stage.partitions):
        machine = processor(stage, partition)
        tally = machine.tally
        counts.update(
            echoed=tally.labels_echoed,
            duplicate=tally.labels_duplicate,
            joined=tally.labels_joined,
            t=machine.model.t,
            waiting=len(machine.pending),
        )
    return counts


def processor(stage: Stage, partition: int) -> PartitionProcessor:
    """A partition as it is committed."""
    group, topic = stage.settings.group, stage.settings.topic_names().events
    with closing(backend_of(stage.settings).open_state()) as state, closing(stage.log()) as log:
        position = state.committed(partition)
        assert position is not None
        return processor_of(committed_snapshot(state, log, group, topic, partition, position))


def test_labels_of_old_events_are_learned_once(tmp_path: Path) -> None:
    """Those that nothing waits for any more, and those that still wait; a second run changes nothing."""
    stage = stage_of(tmp_path)
    stage.run()
    rows = [f"e-{i},{i % 2}" for i in range(0, 200, 2)]

    first = said(label(tmp_path, rows, "--json"))
    stage.run()
    once = learned(stage)
    second = said(label(tmp_path, rows, "--json"))
    result = stage.run()

    assert (first["published"], first["known"], first["not_found"]) == (100, 0, [])
    assert (second["published"], second["known"]) == (0, 100)
    assert len(labels_in(stage)) == 100
    assert once == learned(stage)
    assert (once["echoed"], once["duplicate"], once["t"]) == (100, 0, 100)
    assert once["waiting"] < 2 * 20  # those that were still waiting wait no more
    assert Counter(decision.id for decision in result.decisions) == Counter(f"e-{i}" for i in range(200))


def test_a_label_is_learned_once_whichever_way_it_comes(tmp_path: Path) -> None:
    """A label that came alone before or comes later is a duplicate of the one in the file."""
    stage = stage_of(tmp_path, 10)
    stage.run()
    stage.send([client.label("e-9", target=True)])
    stage.run()
    label(tmp_path, ["e-8,1", "e-9,1"])
    stage.run()
    stage.send([client.label("e-8", target=True)])
    stage.run()

    found = learned(stage)
    assert (found["joined"], found["echoed"], found["duplicate"], found["t"]) == (1, 1, 2, 2)


def test_a_label_goes_where_its_event_is(tmp_path: Path) -> None:
    """Same partition, key and value, and the time of the newest events there."""
    stage = stage_of(tmp_path)
    before = {record.value: (p, record) for p in range(PARTITIONS) for record in stage.records(Channel.EVENTS, p)}
    newest = {p: stage.records(Channel.EVENTS, p)[-1].timestamp_ms for p in range(PARTITIONS)}
    label(tmp_path, [f"e-{i},1" for i in range(0, 200, 9)])

    found = labels_in(stage)
    assert len(found) == 23
    for partition, record in found:
        place, event = before[record.value]
        assert (partition, record.key, record.headers) == (place, event.key, [(LEARN_HEADER, b"1")])
        assert newest[partition] - 200 <= record.timestamp_ms <= newest[partition]


def test_what_becomes_of_each_label_is_reported(tmp_path: Path) -> None:
    """Ids that are not there, bad events, events with labels of their own; a changed mind is published again."""
    stage = stage_of(tmp_path, 5)
    stage.send([client.event("own", [1, 2, 3], target=True), client.Message(b"k", b'{"id":"bad","x":[1]}')])
    rows = ["e-1,1", "e-2,0", "e-2,1", "e-3,", "own,0", "bad,1", "ghost,1", "17,1"]

    first = said(label(tmp_path, rows, "--json", "--not-found", str(tmp_path / "lost.txt")))
    second = said(label(tmp_path, ["e-1,0"], "--json"))
    third = label(tmp_path, ["e-1,0", "own,0", "ghost,1"])

    counts = {name: first[name] for name in ("rows", "unlabelled", "overruled", "labels", "published", "with_label")}
    assert counts == {"rows": 8, "unlabelled": 1, "overruled": 1, "labels": 6, "published": 2, "with_label": 1}
    assert (first["other_label"], first["bad"], first["not_found"]) == (1, ["bad"], ["ghost", "17"])
    assert (tmp_path / "lost.txt").read_text() == "ghost\n17\n"
    assert (second["published"], second["corrected"]) == (1, 1)
    assert [
        dict(record.headers)[LEARN_HEADER] for _, record in labels_in(stage) if b"e-1" in (record.value or b"")
    ] == [
        b"1",
        b"-1",
    ]
    assert "0 labels published" in third.out
    assert "1 not found, deleted or never sent: ghost" in third.out


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """It says what would be published."""
    stage = stage_of(tmp_path, 20)

    found = said(label(tmp_path, ["e-1,1", "e-2,0"], "--dry-run", "--json"))

    assert (found["published"], found["dry_run"]) == (2, True)
    assert labels_in(stage) == []


def test_events_before_since_are_not_looked_at(tmp_path: Path) -> None:
    """The moment is that of the events."""
    stage = stage_of(tmp_path, 20)
    records = [record for p in range(PARTITIONS) for record in stage.records(Channel.EVENTS, p)]
    moments = sorted(record.timestamp_ms for record in records)
    since = datetime.fromtimestamp(moments[10] / 1000, UTC).isoformat()

    found = said(label(tmp_path, [f"e-{i},1" for i in range(20)], "--since", since, "--json"))

    assert (found["events"], found["published"], len(found["not_found"])) == (10, 10, 10)


def test_ids_and_labels_are_read_by_the_settings(tmp_path: Path) -> None:
    """A mapping's id and label rule; columns by option, and lines of JSON; integers in the topic, text in the file."""
    events = {
        "id": "payment.id",
        "label": {"path": "verdict", "target": ["fraud"], "non_target": ["fine"]},
        "features": {"a": {"number": "a"}, "b": {"number": "b"}, "c": {"category": "c"}},
    }
    stage = Stage({**SMALL, "model": {"D": 8, "tau": 0.1}, "events": events}, tmp_path)
    settings_file(tmp_path, model={"D": 8, "tau": 0.1}, events=events)
    documents = [{"payment": {"id": i}, "a": i, "b": 1, "c": "x", "verdict": None} for i in range(6)]
    stage.send([client.Message(b"k", orjson.dumps(document)) for document in documents])
    lines = tmp_path / "labels.jsonl"
    lines.write_text('{"payment":{"id":4},"verdict":"fraud"}\n\n{"payment":{"id":"5"},"verdict":"fine"}\n')

    table = said(label(tmp_path, ["1,fraud", "2,fine"], "--id", "n", "--label", "y", "--json", header="n,y"))
    json_lines = said(npstream("label", lines, "--config", tmp_path / "settings.yaml", "--json"))
    stage.run()

    assert (table["published"], json_lines["published"]) == (2, 2)
    assert learned(stage)["t"] == 4
    assert [dict(record.headers)[LEARN_HEADER] for _, record in labels_in(stage)] == [b"1", b"-1", b"1", b"-1"]


@pytest.mark.parametrize(
    ("rows", "arguments", "reported"),
    [
        (["a,1"], ["--id", "nowhere"], "--id nowhere: no such column; there are id, y"),
        (["a,1"], ["--label", "nowhere"], "--label nowhere: no such column"),
        (["a,maybe"], [], "line 2, column y: y is 'maybe'"),
        ([",1"], [], "line 2, column id: is empty"),
        (["a,1"], ["--since", "yesterday"], "'yesterday' is not a timestamp such as"),
    ],
)
def test_a_file_that_cannot_be_used(rows: list[str], arguments: list[str], reported: str, tmp_path: Path) -> None:
    """One line that says where and why, and the usage code."""
    stage = stage_of(tmp_path, 3)

    done = label(tmp_path, rows, *arguments)

    assert (done.code, done.out) == (USAGE, "")
    assert reported in done.err
    assert labels_in(stage) == []


def test_one_command_at_a_time(tmp_path: Path) -> None:
    """A second one is refused while the first holds the log; a dry run is not."""
    stage_of(tmp_path, 3)
    settings = load(tmp_path / "settings.yaml", {}, ())
    with closing(backend_of(settings).open_labelling()) as other:
        other.open()
        refused = label(tmp_path, ["e-1,1"])
        dry = label(tmp_path, ["e-1,1"], "--dry-run")

    assert (refused.code, dry.code) == (FATAL, OK)
    assert "another `npstream label` runs" in refused.err
    assert label(tmp_path, ["e-1,1"]).code == OK
