"""Four topics on the shared broker, for what only Kafka can do."""

from collections.abc import Iterator

import pytest

from npstream.kafka import KafkaLog
from tests.broker import Kafka
from tests.stage.places import KafkaPlace, topics_of


@pytest.fixture
def place(kafka: Kafka, topic_prefix: str) -> Iterator[KafkaPlace]:
    """Four fresh topics of three partitions, and a group nobody has used."""
    made = KafkaPlace(kafka.bootstrap, topics_of(topic_prefix), topic_prefix + "group").create()
    yield made
    made.leave()


@pytest.fixture
def log(place: KafkaPlace) -> KafkaLog:
    """A reader and writer beside the worker."""
    return place.log()
