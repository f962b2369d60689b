"""Topics that exist for a measurement only: made as `npstream init` makes them, filled, removed."""

import logging
from collections.abc import Sequence
from concurrent.futures import wait

from npstream.kafka.admin import Admin
from npstream.kafka.clients import Sink, new_admin
from npstream.kafka.config import KafkaConfig, common_settings
from npstream.kafka.log import KafkaLog
from npstream.kafka.topics import Wishes
from npstream.records import Channel, Headers

_DELETE_S = 10.0


def make_topics(config: KafkaConfig, partitions: int) -> None:
    """Create those of the four topics that do not exist; return when they can be seen."""
    admin = Admin(config)
    admin.prepare(admin.plan(Wishes(partitions=partitions)))


def fill(
    config: KafkaConfig, partitions: int, events: Sequence[tuple[bytes, Headers]], first_ms: int
) -> dict[int, int]:
    """Spread events over the partitions, an equal share each; return where each ends."""
    log = KafkaLog(config)
    try:
        for partition in range(partitions):
            own = [
                (b"%d" % number, value, headers, first_ms + number)
                for number, (value, headers) in enumerate(events)
                if number % partitions == partition
            ]
            log.append(Channel.EVENTS, partition, own)
        return {p: log.ends(Channel.EVENTS, p).stable for p in range(partitions)}
    finally:
        log.close()


def try_remove(config: KafkaConfig, topics: Sequence[str], group: str) -> None:
    """Best effort: topics and groups that remain have clear names and do no harm."""
    admin = new_admin(common_settings(config), Sink(logging.getLogger("npstream.kafka")))
    futures = [*admin.delete_topics(list(topics), operation_timeout=_DELETE_S).values()]
    futures += admin.delete_consumer_groups([group], request_timeout=_DELETE_S).values()
    wait(futures, _DELETE_S)
