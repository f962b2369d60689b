"""Labels of a run that come by way of a foreign topic: how they are written there, and the router that copies them."""

import signal
from collections import Counter
from collections.abc import Sequence
from itertools import count
from random import Random

import orjson

from npstream.codec.murmur2 import partition_for
from npstream.records import Channel
from tests.broker import create_topics
from tests.stage import patience
from tests.stage.child import Child
from tests.stage.command import WorkerCommand
from tests.stage.site import Site
from tests.system import oracle
from tests.system.oracle import Different
from tests.system.stream import Plain, is_label

SOURCES = 2
"""Partitions of the foreign topic: fewer than the events have."""

KILLS = ("after_poll", "begin", "produce", "before_send_offsets", "after_send_offsets", "before_commit", "after_commit")
"""Every point that a router passes."""


def foreign_topic(site: Site) -> str:
    """A topic of somebody else's, made for this site."""
    name = f"{site.name}.verdicts"
    create_topics(site.bootstrap, {name: SOURCES})
    return name


def labels_elsewhere(
    events: Sequence[tuple[int, Plain]], partitions: int
) -> tuple[list[tuple[int, Plain]], Counter[tuple[int, bytes]]]:
    """The events with their labels as the foreign topic has them; and where each label must be copied to."""
    placed, wanted = [], Counter[tuple[int, bytes]]()
    for partition, event in events:
        if is_label(event):
            source, label = _as_foreign(partition, event, partitions)
            placed.append((source, label))
            wanted[partition, label[1] or b""] += 1
        else:
            placed.append((partition, event))
    return placed, wanted


def _as_foreign(partition: int, label: Plain, partitions: int) -> tuple[int, Plain]:
    """A label as that topic has it: on another partition, under another key, with its event's key inside."""
    key, value, headers, timestamp_ms = label
    route = next(text for n in count() if partition_for((text := f"r{n}").encode(), partitions) == partition)
    inside = orjson.dumps({**orjson.loads(value or b""), "route": route, "key": (key or b"").decode()})
    return partition % SOURCES, (b"elsewhere", inside, headers, timestamp_ms)


class RouterProcess(WorkerCommand):
    """`npstream route-labels`, killed at every point it passes, started again each time."""

    def __init__(self, site: Site, source: str, random: Random) -> None:
        super().__init__(site.folder, "router", {**site.settings("router"), "labels": {"topic": site.topics.labels}})
        self._source = source
        self._lives = [f"{point}:{random.randint(*_hits(point))}:kill" for point in KILLS]
        random.shuffle(self._lives)
        self.killed: list[str] = []
        self.exits: list[int] = []

    @property
    def faults_left(self) -> int:
        """Kills that have not happened yet."""
        return len(self._lives)

    def tend(self) -> None:
        """Start it when it is down; note how it ended."""
        if self.running:
            return
        if self.returncode == -signal.SIGKILL:
            self.killed.append(self._lives.pop(0).split(":")[0])
        elif self.returncode is not None:
            self.exits.append(self.returncode)
        Child.launch(
            self,
            *("npstream", "route-labels", "--config", str(self.config)),
            *("--source", self._source, "--key", "route"),
            NPSTREAM_FAILPOINTS=self._lives[0] if self._lives else "",
        )

    def wait_copied(self, site: Site, fed: Counter[tuple[int, bytes]], timeout_s: float = 180.0) -> None:
        """Wait until as many labels are copied as were fed; then each must be there once. Raises `Different`."""

        def all_copied() -> bool:
            self.tend()
            return _copies(site).total() >= fed.total()

        patience.wait_until(all_copied, "every label to be copied", timeout_s)
        copies = _copies(site)
        if copies != fed:
            lost, doubled = (fed - copies).total(), (copies - fed).total()
            raise Different(f"labels: {lost} lost, {doubled} doubled")


def _hits(point: str) -> tuple[int, int]:
    return (50, 300) if point == "produce" else (2, 6)


def _copies(site: Site) -> Counter[tuple[int, bytes]]:
    return Counter(
        (partition, record.value or b"")
        for partition in range(site.partitions)
        for record in oracle.read(site.log, Channel.LABELS, partition)
    )
