"""Four topics on the shared broker, for what only Kafka can do."""

from collections.abc import Iterator

import pytest

from npstream.kafka import KafkaLog
from npstream.records import Topics
from tests.broker import Kafka
from tests.contracts.places import KafkaPlace


@pytest.fixture
def place(kafka: Kafka, topic_prefix: str) -> Iterator[KafkaPlace]:
    """Four fresh topics of three partitions, and a group nobody has used."""
    topics = Topics(*(topic_prefix + name for name in ("events", "decisions", "dead", "checkpoints")))
    made = KafkaPlace(kafka.bootstrap, topics, topic_prefix + "group").create()
    yield made
    made.leave()


@pytest.fixture
def log(place: KafkaPlace) -> KafkaLog:
    """A reader and writer beside the worker."""
    return place.log()
