"""The lag of a group, seen from outside."""

import time
from pathlib import Path

import orjson
import pytest

from npstream import client
from npstream.records import Channel
from tests.embedded import retention
from tests.history.stages import SETTINGS, as_json, mixed, stage, tool


def test_lag_counts_what_is_not_decided_in_records_and_seconds(tmp_path: Path) -> None:
    """A partition that is done has no lag; the other's oldest undecided event gives the seconds."""
    made = stage(tmp_path, partitions=2)
    made.send(mixed(30), partition=0)
    made.send(mixed(30), partition=1)
    made.run()
    waited_s = 90.0
    at_ms = int((time.time() - waited_s) * 1000)
    made.send([client.event(i, [0.0] * 3, timestamp_ms=at_ms + i) for i in range(5)], partition=1)

    found = as_json(tool(tmp_path, "lag", "--json"))
    assert [(p["committed"], p["end"], p["records"], p["held_back"]) for p in found["partitions"]] == [
        (30, 30, 0, 0),
        (30, 35, 5, 0),
    ]
    assert found["records"] == 5
    assert waited_s <= found["seconds"] < waited_s + 60
    assert found["partitions"][0]["seconds"] == 0.0


@pytest.mark.parametrize(("start", "records"), [("earliest", 12), ("latest", 0)])
def test_a_partition_without_a_position_is_measured_from_where_it_would_start(
    tmp_path: Path, start: str, records: int
) -> None:
    """Before the first start the setting `start` counts."""
    made = stage(tmp_path, start=start)
    made.send(mixed(12))

    found = as_json(tool(tmp_path, "lag", "--json"))["partitions"]
    assert [(p["committed"], p["records"]) for p in found] == [(None, records)]


def test_watching_looks_again(tmp_path: Path) -> None:
    """Each look is a table, or one JSON document a line."""
    made = stage(tmp_path)
    made.send(mixed(3))
    looks = ["--watch", "--interval", "0.1", "--count", "3"]

    lines = tool(tmp_path, "lag", *looks, "--json").stdout.splitlines()
    assert [orjson.loads(line)["records"] for line in lines] == [3, 3, 3]
    assert tool(tmp_path, "lag", *looks).stdout.count("held back") == 3


def test_events_that_retention_took_are_not_counted(tmp_path: Path) -> None:
    """What is no longer there is no lag."""
    made = stage(tmp_path, worker=SETTINGS["worker"])
    made.send(mixed(20))
    made.run()
    made.send(mixed(20, seed=1))
    log = made.log()
    retention.trim(log, Channel.EVENTS, 0, 30)
    log.close()

    assert as_json(tool(tmp_path, "lag", "--json"))["records"] == 10


def test_event_times_that_mean_nothing_give_no_seconds(tmp_path: Path) -> None:
    """Times counted from 1970 are no times of arrival: the seconds are not known, and said so."""
    made = stage(tmp_path)
    made.send([client.event(i, [0.0] * 3, timestamp_ms=i + 1) for i in range(5)])

    found = as_json(tool(tmp_path, "lag", "--json"))
    assert (found["records"], found["seconds"], found["partitions"][0]["seconds"]) == (5, None, None)
    assert [line.split()[-2] for line in tool(tmp_path, "lag").stdout.splitlines()[-2:]] == ["-", "-"]


def test_labels_that_are_not_learned_are_counted_beside_the_events(tmp_path: Path) -> None:
    """They are learned with the next event, so those that came after it wait; without a topic there is no column."""
    made = stage(tmp_path, labels={"topic": "labels"})
    made.send([client.event(i, [0.0] * 3) for i in range(5)])
    made.run()
    log = made.log()
    log.append(Channel.LABELS, 0, [(None, b'{"id": %d, "y": 0}' % i, (), 1) for i in range(3)])
    log.close()

    found = as_json(tool(tmp_path, "lag", "--json"))
    assert (found["records"], found["labels"], found["partitions"][0]["labels"]) == (0, 3, 3)
    assert tool(tmp_path, "lag").stdout.splitlines()[0].split()[-1] == "labels"

    plain = stage(tmp_path / "plain")
    plain.send(mixed(3))
    assert as_json(tool(tmp_path / "plain", "lag", "--json"))["labels"] is None
    assert "labels" not in tool(tmp_path / "plain", "lag").stdout
