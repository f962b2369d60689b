"""Topics that exist for a measurement only: made as `npstream init` makes them, filled, removed."""

import logging
from collections.abc import Sequence
from concurrent.futures import wait

from npstream.errors import Retryable
from npstream.kafka.admin import Admin
from npstream.kafka.clients import Sink, new_admin, new_producer
from npstream.kafka.config import KafkaConfig, common_settings
from npstream.kafka.log import KafkaLog
from npstream.kafka.topics import Wishes
from npstream.records import Channel, Headers

_DELETE_S = 10.0
_WRITE_S = 30.0


def make_topics(config: KafkaConfig, partitions: int) -> None:
    """Create those of the four topics that do not exist; return when they can be seen."""
    admin = Admin(config)
    admin.prepare(admin.plan(Wishes(partitions=partitions)))


def fill(
    config: KafkaConfig, partitions: int, events: Sequence[tuple[bytes, Headers]], first_ms: int, step_ms: int = 1
) -> dict[int, int]:
    """Spread events over the partitions, an equal share each, so many ms apart; return where each ends."""
    log = KafkaLog(config)
    try:
        for partition in range(partitions):
            own = [
                (b"%d" % number, value, headers, first_ms + number * step_ms)
                for number, (value, headers) in enumerate(events)
                if number % partitions == partition
            ]
            log.append(Channel.EVENTS, partition, own)
        return {p: log.ends(Channel.EVENTS, p).stable for p in range(partitions)}
    finally:
        log.close()


def scatter(config: KafkaConfig, values: Sequence[bytes]) -> None:
    """One more event for each partition, the first of these for partition 0. Raises `Retryable` when it takes long."""
    producer = new_producer({**common_settings(config), "linger.ms": 5, "acks": "all"}, _sink())
    for partition, value in enumerate(values):
        producer.produce(config.topics.events, value, partition=partition)
    if producer.flush(_WRITE_S):
        raise Retryable(f"{config.topics.events!r} did not take {len(values)} events within {_WRITE_S:g} s")


def try_remove(config: KafkaConfig, topics: Sequence[str], group: str) -> None:
    """Best effort: topics and groups that remain have clear names and do no harm."""
    admin = new_admin(common_settings(config), _sink())
    futures = [*admin.delete_topics(list(topics), operation_timeout=_DELETE_S).values()]
    futures += admin.delete_consumer_groups([group], request_timeout=_DELETE_S).values()
    wait(futures, _DELETE_S)


def _sink() -> Sink:
    return Sink(logging.getLogger("npstream.kafka"))
