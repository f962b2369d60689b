"""Labels from a file at both places: killed anywhere, given again, each is in the topic once."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml

from npstream.codec.learn_header import LEARN_HEADER
from npstream.port import Log
from npstream.records import Channel
from tests.stage.places import PARTITIONS, EmbeddedPlace, KafkaPlace, LastingPlace, topics_of

EVENTS = 300
KILLS = ("begin:1", "begin:2", "produce:1", "before_commit:1", "before_commit:2", "after_commit:1", "after_commit:3")


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def place(request: pytest.FixtureRequest, tmp_path: Path, topic_prefix: str) -> Iterator[LastingPlace]:
    """Fresh topics that other processes can come to."""
    topics, made = topics_of(topic_prefix), list[LastingPlace]()
    if request.param == "embedded":
        made.append(EmbeddedPlace(tmp_path / "log.db", topics, topic_prefix + "group").create())
    else:
        bootstrap = request.getfixturevalue("kafka").bootstrap
        made.append(KafkaPlace(bootstrap, topics, topic_prefix + "group").create())
    yield made[0]
    made[0].leave()


def fed(place: LastingPlace, log: Log, folder: Path) -> list[str]:
    """Events on every partition, a file of labels for most of them, settings: the command's arguments."""
    for partition in range(PARTITIONS):
        events = [orjson.dumps({"id": f"{partition}-{i}", "x": [i, 1.0]}) for i in range(EVENTS)]
        log.append(
            Channel.EVENTS, partition, [(b"k", value, (), 1_700_000_000_000 + i) for i, value in enumerate(events)]
        )
    rows = [f"{partition}-{i},{i % 2}" for partition in range(PARTITIONS) for i in range(0, EVENTS, 2)]
    (folder / "labels.csv").write_text("\n".join(["id,y", *rows, "ghost,1"]) + "\n")
    kind, where, group, *names = place.arguments()
    home = {"path": where, "group": group} if kind == "embedded" else {"bootstrap": where, "group": group}
    if kind == "kafka":
        home |= {"worker_name": "w"}
    topics = dict(zip(("events", "decisions", "dead_letters", "checkpoints"), names, strict=True))
    (folder / "settings.yaml").write_text(yaml.safe_dump({kind: home, "topics": topics, "model": {"d": 2}}))
    return ["label", str(folder / "labels.csv"), "--config", str(folder / "settings.yaml"), "--json"]


def run(arguments: list[str], failpoints: str = "") -> tuple[int, bytes]:
    """The command in a process of its own: how it ended, and what it printed."""
    environment = {**os.environ, "NPSTREAM_FAILPOINTS": failpoints}
    line = [sys.executable, "-m", "npstream", *arguments]
    done = subprocess.run(line, env=environment, capture_output=True, timeout=300, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode, done.stdout


def labels(log: Log) -> Counter[tuple[int, str, bytes | None]]:
    """Partition, id and label of what is in the topic with a label."""
    found: Counter[tuple[int, str, bytes | None]] = Counter()
    for partition in range(PARTITIONS):
        ends = log.ends(Channel.EVENTS, partition)
        for record in log.read(Channel.EVENTS, partition, ends.begin, ends.stable):
            given = dict(record.headers).get(LEARN_HEADER)
            if given is not None:
                found[partition, orjson.loads(record.value or b"")["id"], given] += 1
    return found


def wanted() -> Counter[tuple[int, str, bytes | None]]:
    """Each label of the file, once."""
    return Counter(
        (partition, f"{partition}-{i}", b"1" if i % 2 else b"-1")
        for partition in range(PARTITIONS)
        for i in range(0, EVENTS, 2)
    )


@pytest.mark.slow
def test_killed_anywhere_and_given_again_each_label_is_there_once(place: LastingPlace, tmp_path: Path) -> None:
    """Whatever a dead command had published is skipped, whatever it had not is published by the next."""
    log = place.log()
    arguments = fed(place, log, tmp_path)
    for point in KILLS:
        code, _ = run(arguments, f"{point}:kill")
        found = labels(log)
        assert code == -signal.SIGKILL or found == wanted()
        assert found <= wanted()
    _, last = run(arguments)
    _, again = run(arguments)

    assert labels(log) == wanted()
    assert orjson.loads(last)["published"] + orjson.loads(last)["known"] == wanted().total()
    assert (orjson.loads(again)["published"], orjson.loads(again)["known"]) == (0, wanted().total())
    assert orjson.loads(again)["not_found"] == ["ghost"]
