"""Labels routed from a foreign topic: killed or stopped anywhere, each is copied once, to where its event is."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import yaml

from npstream.codec.murmur2 import partition_for
from npstream.kafka import KafkaConfig, KafkaLog
from npstream.records import Channel
from tests.broker import Kafka, create_topics
from tests.stage import patience
from tests.stage.places import topics_of

SOURCES, PARTITIONS, LABELS = 2, 3, 600
FIRST_MS = 1_700_000_000_000


class Routed:
    """A foreign topic with labels, and the group they are for."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path) -> None:
        self.source = f"{prefix}verdicts"
        self.topics = replace(topics_of(prefix), labels=f"{prefix}labels")
        create_topics(bootstrap, {self.source: SOURCES, **dict.fromkeys(self.topics.names(), PARTITIONS)})
        foreign = replace(self.topics, events=self.source, labels=None)
        self.foreign = KafkaLog(KafkaConfig(bootstrap, f"{prefix}feed", "feed", foreign))
        self.log = KafkaLog(KafkaConfig(bootstrap, f"{prefix}g", "log", self.topics))
        self._file, self._log = folder / "settings.yaml", folder / "router.log"
        settings = {
            "kafka": {
                "bootstrap": bootstrap,
                "group": f"{prefix}g",
                "worker_name": "w",
                "transaction_timeout_ms": 20_000,
            },
            "topics": {"events": self.topics.events},
            "model": {"d": 2},
            "labels": {"topic": self.topics.labels},
        }
        self._file.write_text(yaml.safe_dump(settings))

    def feed(self) -> None:
        """Labels of many cards; some without a card, one that is not JSON."""
        for source in range(SOURCES):
            numbers = range(source, LABELS, SOURCES)
            values = [orjson.dumps({"id": i, "y": 1, "card": {"id": f"card-{i % 37}"}}) for i in numbers]
            values[7], values[11] = orjson.dumps({"id": "nobody", "y": 1}), b"no json"
            headers = [("s", b"%d" % source)]
            self.foreign.append(Channel.EVENTS, source, [(b"k", value, headers, FIRST_MS) for value in values])

    def start(self, failpoints: str, *options: str) -> subprocess.Popen[bytes]:
        """A router process."""
        line = [sys.executable, "-m", "npstream", "route-labels", "--config", str(self._file), "--source", self.source]
        environment = {**os.environ, "NPSTREAM_FAILPOINTS": failpoints}
        with self._log.open("ab") as log:
            return subprocess.Popen([*line, *options], env=environment, stdout=log, stderr=subprocess.STDOUT)

    def run(self, failpoints: str, *options: str) -> int:
        """Run it to its end."""
        return self.start(failpoints, "--until-end", *options).wait(120)

    def said(self) -> str:
        """What routers have printed."""
        return self._log.read_text()

    def copies(self, partition: int) -> list[tuple[bytes | None, bytes | None]]:
        """Source partition and value of what is in the labels topic, in order."""
        ends = self.log.ends(Channel.LABELS, partition)
        records = self.log.read(Channel.LABELS, partition, ends.begin, ends.stable)
        return [(dict(record.headers)["s"], record.value) for record in records]

    def wanted(self, partition: int) -> dict[bytes, list[bytes | None]]:
        """What must be there, by source partition."""
        found: dict[bytes, list[bytes | None]] = {}
        for source in range(SOURCES):
            ends = self.foreign.ends(Channel.EVENTS, source)
            for record in self.foreign.read(Channel.EVENTS, source, ends.begin, ends.stable):
                key = b"card-" in (record.value or b"") and orjson.loads(record.value or b"")["card"]["id"].encode()
                if not key or partition_for(key, PARTITIONS) == partition:
                    found.setdefault(b"%d" % source, []).append(record.value)
        return found

    def compare(self, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        """Every label of each source partition is there once, in its order."""
        for partition in partitions:
            got: dict[bytes, list[bytes | None]] = {}
            for source, value in self.copies(partition):
                got.setdefault(source or b"", []).append(value)
            assert got == self.wanted(partition)


@pytest.fixture
def routed(kafka: Kafka, topic_prefix: str, tmp_path: Path) -> Routed:
    """Nothing is fed yet."""
    return Routed(kafka.bootstrap, topic_prefix, tmp_path)


@pytest.mark.parametrize(
    "points",
    [
        ["after_poll:1", "begin:1", "produce:50"],
        ["before_send_offsets:1", "after_send_offsets:1", "before_commit:1", "after_commit:1"],
    ],
    ids=["sending", "committing"],
)
def test_a_router_killed_anywhere_copies_each_label_once(routed: Routed, points: list[str]) -> None:
    """Whichever point it dies at, the next one goes on behind the last transaction."""
    for point in points:
        routed.feed()
        assert routed.run(f"{point}:kill", "--key", "card.id") == -signal.SIGKILL, routed.said()
    assert routed.run("", "--key", "card.id") == 0, routed.said()

    routed.compare()


def test_a_stopped_router_is_fenced_by_the_next(routed: Routed) -> None:
    """It wakes up inside its transaction, cannot end it, and says so; nothing is doubled."""
    routed.feed()
    sleeper = routed.start("after_send_offsets:1:stop", "--key", "card.id")
    stat = Path(f"/proc/{sleeper.pid}/stat")
    patience.wait_until(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T", "the stop")
    assert routed.run("", "--key", "card.id") == 0, routed.said()
    sleeper.send_signal(signal.SIGCONT)

    assert sleeper.wait(60) != 0
    routed.compare()


def test_a_label_with_only_an_id_goes_to_all_partitions(routed: Routed) -> None:
    """With --broadcast each partition has every label, once."""
    routed.feed()
    assert routed.run("", "--broadcast") == 0, routed.said()

    for partition in range(PARTITIONS):
        assert len(routed.copies(partition)) == LABELS
