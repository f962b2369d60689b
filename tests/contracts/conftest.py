"""Every contract test runs at all three places."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from npstream.port import Log
from tests.simulation.place import SimulatedPlace
from tests.stage.places import EmbeddedPlace, KafkaPlace, Place, topics_of


@pytest.fixture(params=["embedded", "simulated", pytest.param("kafka", marks=pytest.mark.kafka)])
def place(request: pytest.FixtureRequest, tmp_path: Path, topic_prefix: str) -> Iterator[Place]:
    """Four fresh topics of three partitions, and a group nobody has used."""
    topics = topics_of(topic_prefix)
    made: Place
    if request.param == "embedded":
        made = EmbeddedPlace(tmp_path / "log.db", topics, topic_prefix + "group").create()
    elif request.param == "simulated":
        made = SimulatedPlace(topics, topic_prefix + "group").create()
    else:
        made = KafkaPlace(request.getfixturevalue("kafka").bootstrap, topics, topic_prefix + "group").create()
    yield made
    made.leave()


@pytest.fixture
def log(place: Place) -> Log:
    """A reader and writer beside the worker."""
    return place.log()
