"""Records that Kafka takes and no reader expects, in one partition of three: they cost themselves and nothing else."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Producer

from npstream.cli import exits
from npstream.codec.dead_letters import DeadLetter, read_dead_letter
from npstream.records import Channel, Record
from tests.broker import Kafka
from tests.broker.raw_produce import produce_raw
from tests.monitor.builders import events
from tests.stage.command import WorkerCommand, npstream
from tests.stage.site import Site

pytestmark = pytest.mark.timeout(600)

PARTITIONS = 3
PART = 200
"""Good events of each partition between two hostile records."""


def unfoldable(size: int) -> bytes:
    """Bytes that repeat at a distance beyond lz4's window: zstd folds them, lz4 does not."""
    block = random.Random(7).randbytes(100_000)
    return (block * (size // len(block) + 1))[:size]


@dataclass(frozen=True)
class Hostile:
    """One hostile record: what it is made of, and what becomes of it."""

    name: str
    reason: str
    value: bytes = b'{"x":[1,2],"y":1}'
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    raw_headers: Sequence[tuple[bytes, bytes]] = ()


DEAD_LETTERS = [
    Hostile("header name", "bad_headers", raw_headers=[(b"\xff\xfe", b"1")]),
    Hostile("3 MB that lz4 cannot fold", "oversize", value=unfoldable(3_000_000)),
    Hostile("20 MB unpacked", "oversize", value=bytes(20_000_000)),
    Hostile("3 MB key", "oversize_key", key=unfoldable(3_000_000)),
    Hostile("20 MB key", "oversize_key", key=bytes(20_000_000)),
    Hostile("3 MB trace header", "bad_headers", headers=[("traceparent", unfoldable(3_000_000))]),
    Hostile("900 kB", "oversize", value=random.Random(3).randbytes(900_000)),
]
BOMB = Hostile("150 MB in 5 kB", "oversize", value=bytes(150_000_000))


@pytest.fixture
def site(kafka: Kafka, tmp_path: Path) -> Iterator[Site]:
    """Three partitions and a group nobody has used."""
    made = Site(kafka.bootstrap, tmp_path / "site", partitions=PARTITIONS)
    yield made
    made.close()


def send(site: Site, hostile: Hostile) -> None:
    """Write it to partition 0, packed as well as can be."""
    topic = site.topics.events
    if hostile.raw_headers:
        produce_raw(site.bootstrap, topic, 0, hostile.value, hostile.raw_headers, timestamp_ms=int(time.time() * 1000))
        return
    producer = Producer(
        {
            "bootstrap.servers": site.bootstrap,
            "compression.type": "zstd",
            "message.max.bytes": 200_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    producer.produce(topic, hostile.value, hostile.key, 0, headers=list(hostile.headers))
    assert producer.flush(60) == 0
    producer.close()


def feed_all(site: Site, seed: int) -> None:
    """Good events for every partition."""
    for partition in range(PARTITIONS):
        site.feed(events(PART, seed=seed * PARTITIONS + partition), partition)


def wait_decided(site: Site, worker: WorkerCommand, partitions: Sequence[int]) -> None:
    """Wait until everything in these partitions is committed."""
    ends = {partition: site.log.ends(Channel.EVENTS, partition).stable for partition in partitions}
    worker.wait_for(lambda: all(committed(site, p) >= end for p, end in ends.items()), "the events to be decided")


def committed(site: Site, partition: int) -> int:
    """How far a partition has come."""
    return site.saved(partition)[0]


def records(site: Site, channel: Channel, partition: int) -> list[Record]:
    """All committed records."""
    return list(site.log.read(channel, partition, 0, 2**40))


def dead_letters(site: Site) -> list[DeadLetter]:
    """The dead letters of the hostile partition."""
    return [read_dead_letter(record) for record in records(site, Channel.DEAD_LETTERS, 0)]


def started(site: Site) -> WorkerCommand:
    """A worker that has decided the first good events of all partitions."""
    feed_all(site, seed=0)
    worker = site.command().start()
    worker.wait_started()
    worker.wait_for(lambda: len(worker.lines("assigned")) == PARTITIONS, "its partitions")
    worker.wait_for(lambda: worker.events() == PARTITIONS * PART, "the first events to be handled")
    wait_decided(site, worker, range(PARTITIONS))
    return worker


def test_each_becomes_a_dead_letter_and_no_other_partition_notices(site: Site) -> None:
    """All partitions, the hostile one too, are decided to their ends, in one session; every tool reads the topic."""
    worker = started(site)
    for number, hostile in enumerate(DEAD_LETTERS, 1):
        send(site, hostile)
        feed_all(site, seed=number)
    wait_decided(site, worker, range(PARTITIONS))
    paused = worker.lines("partition paused")
    code = worker.terminate()

    assert (code, paused, worker.lines("session restart")) == (exits.OK, [], []), worker.said()
    assert [(dead_letter.reason, dead_letter.offset) for dead_letter in dead_letters(site)] == [
        (hostile.reason, number * PART + number - 1) for number, hostile in enumerate(DEAD_LETTERS, 1)
    ]
    good = (len(DEAD_LETTERS) + 1) * PART
    assert [len(records(site, Channel.DECISIONS, p)) for p in range(PARTITIONS)] == [good] * PARTITIONS
    config = str(worker.config)
    audit = npstream("audit", "--config", config)
    exported = npstream("export", str(site.folder / "events.jsonl"), "--config", config)
    replay = npstream("backtest", str(site.folder / "events.jsonl"), "--config", config)
    doctor = npstream("doctor", "--config", config, "--json")
    assert [run.returncode for run in (audit, exported, replay)] == [exits.OK] * 3, (audit, exported, replay)
    assert "Traceback" not in audit.stderr + exported.stderr + replay.stderr + doctor.stderr


def test_one_that_cannot_be_unpacked_pauses_its_partition_until_the_step_that_the_message_names(site: Site) -> None:
    """The others go on in the same session; with the limit raised the bomb becomes a dead letter like any other."""
    worker = started(site)
    send(site, BOMB)
    feed_all(site, seed=1)
    worker.wait_for(lambda: bool(worker.lines("partition paused")), "the pause")
    wait_decided(site, worker, [1, 2])
    feed_all(site, seed=2)
    wait_decided(site, worker, [1, 2])
    (pause,) = worker.lines("partition paused")
    resets, before = worker.lines("session restart"), committed(site, 0)
    doctor = npstream("doctor", "--config", str(worker.config), "--json")
    code = worker.terminate()

    assert (code, resets, before) == (exits.OK, [], PART), worker.said()
    assert pause["partition"] == 0
    assert f"{site.topics.events}/0: the client cannot unpack the record at offset {PART}" in pause["reason"]
    assert "raise kafka.options.receive.message.max.bytes" in pause["reason"]
    problems = [finding["problem"] for finding in orjson.loads(doctor.stdout)["findings"]]
    assert any("cannot unpack the record at offset" in problem for problem in problems), doctor.stdout

    raised = {**site.settings("worker-0")["kafka"], "options": {"receive.message.max.bytes": 1_000_000_000}}
    again = site.command(kafka=raised).start()
    wait_decided(site, again, range(PARTITIONS))
    assert again.terminate() == exits.OK
    assert [(dead_letter.reason, dead_letter.offset) for dead_letter in dead_letters(site)] == [(BOMB.reason, PART)]
    assert orjson.loads(dead_letters(site)[0].truncated or "")["value"]["bytes"] == len(BOMB.value)
