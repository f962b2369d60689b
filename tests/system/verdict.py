"""What a site's workers have published and logged, held against the oracle and the audit."""

from time import monotonic

from confluent_kafka import Consumer, KafkaError, TopicPartition

from npstream.history.audit import audit as audit_past
from npstream.history.coverage import cover
from npstream.history.rebuild import read_past
from npstream.records import Channel
from tests.stage.site import Site
from tests.system import oracle

_READ_S = 120.0


def compare(site: Site, changes: dict[int, oracle.Changes] | None = None) -> int:
    """Compare what is published with the oracle; return how many records are equal. Raises `Different`."""
    plain: oracle.Changes = [(0, site.config)]
    every = dict.fromkeys(range(site.partitions), plain) if changes is None else changes
    return oracle.compare(site.log, every, site.group, site.topics.events)


def changes(site: Site) -> dict[int, oracle.Changes]:
    """The settings of each partition by the offset they count from, as its change records say."""
    return {partition: oracle.changes(site.log, partition) for partition in range(site.partitions)}


def audit(site: Site) -> int:
    """Audit every partition from its first event; return how many records were reproduced. Raises `Different`."""
    reproduced = 0
    for partition, position in site.positions().items():
        assert position is not None
        past = read_past(site.log, site.group, site.topics.events, partition, None, site.topics.labels)
        coverage = cover(past, None, position.next_offset, position.next_offset)
        if coverage is None:  # nothing but labels so far
            continue
        verdict = audit_past(past, coverage, position)
        if not (verdict.holds and verdict.proof and coverage.is_whole):
            raise oracle.Different(f"audit of partition {partition}: {verdict}")
        reproduced += verdict.reproduced
    return reproduced


def replays(site: Site) -> list[int]:
    """The length of each replay that ended on its recorded proof."""
    return [line["replayed"] for worker in site.workers for line in worker.lines("live")]


def pauses(site: Site) -> list[str]:
    """Why partitions were paused: never, in a correct system."""
    return [line["reason"] for worker in site.workers for line in worker.lines("partition paused")]


def aborted(site: Site) -> int:
    """Records of the published topics that only a read_uncommitted reader sees."""
    return sum(
        _count(site, channel, "read_uncommitted") - _count(site, channel, "read_committed")
        for channel in oracle.PUBLISHED
    )


def _count(site: Site, channel: Channel, isolation: str) -> int:
    topic = site.topics.names()[channel]
    consumer = Consumer(
        {
            "bootstrap.servers": site.bootstrap,
            "group.id": f"{site.group}.count",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(site.partitions)])
    count, at_end, deadline = 0, 0, monotonic() + _READ_S
    while at_end < site.partitions:
        assert monotonic() < deadline, f"{topic} could not be read to its end"
        for message in consumer.consume(1000, 1.0):
            error = message.error()
            at_end += error is not None and error.code() == KafkaError._PARTITION_EOF
            count += error is None
    consumer.close()
    return count
