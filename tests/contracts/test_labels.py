"""Both brokers read labels beside the events: from where they are asked to, never further, and bounded."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition

from npstream.errors import Fatal
from npstream.port import LABELS_MAX, NEAR_END, Broker
from npstream.records import Channel, LabelPosition, LabelsWanted, Record
from tests.contracts.builders import Owner, Plain, chunks, events, eventually, joined, share
from tests.stage.places import KafkaPlace, Place

FIRST_MS = 1_700_000_000_000


@pytest.fixture
def apart(place: Place) -> Place:
    """The same place with a labels topic."""
    return place.with_topics(replace(place.topics, labels=place.topics.events + "-labels")).create()


def labels(count: int, first_ms: int = FIRST_MS, first: int = 0) -> list[Plain]:
    """One label a millisecond."""
    return [(b"k", b"label %d" % i, [], first_ms + i) for i in range(first, first + count)]


def read(broker: Broker, partition: int, next_label: int, moment_ms: int = FIRST_MS) -> Sequence[Record]:
    """Labels of one partition."""
    return broker.read_labels([LabelsWanted(partition, next_label, moment_ms)]).get(partition, ())


def wait_for(broker: Broker, partition: int, next_label: int, count: int) -> list[Record]:
    """Ask until so many are there."""
    found: list[Record] = []

    def asked() -> bool:
        found[:] = read(broker, partition, next_label)
        return len(found) >= count

    eventually(asked)
    return found


def owner_at(broker: Broker, place: Place, count: int, polled: int) -> Owner:
    """Owns all partitions; partition 1 has `count` events, of which so many were polled."""
    place.log().append(Channel.EVENTS, 1, events(count))
    owner = joined(broker)
    while sum(map(len, owner.got.values())) < polled:
        owner.poll(polled)
    return owner


def test_labels_are_read_from_where_they_are_wanted(apart: Place) -> None:
    """Asking does not move on; asking further on does, and asking for what was handed out before goes back."""
    broker = apart.broker()
    apart.log().append(Channel.LABELS, 1, labels(10))
    owner_at(broker, apart, 5, 5)

    assert [record.offset for record in wait_for(broker, 1, 0, 10)] == list(range(10))
    assert [record.value for record in wait_for(broker, 1, 4, 6)] == [b"label %d" % i for i in range(4, 10)]
    assert wait_for(broker, 1, 2, 8)[0].offset == 2
    apart.log().append(Channel.LABELS, 1, labels(3, first=10))
    assert [record.offset for record in wait_for(broker, 1, 10, 3)] == [10, 11, 12]
    assert read(broker, 0, 0) == []


def test_a_partition_that_lags_gets_labels_that_are_not_younger_than_its_batch(apart: Place) -> None:
    """The first call already has them all: labels are awaited while there are events left to read."""
    broker = apart.broker()
    apart.log().append(Channel.LABELS, 1, labels(50))
    owner = owner_at(broker, apart, 10 * NEAR_END, 20)

    assert [record.offset for record in read(broker, 1, 0, FIRST_MS + 30)] == list(range(31))
    assert read(broker, 1, 31, FIRST_MS + 30) == []
    owner.collect(10 * NEAR_END - 20)
    assert len(wait_for(broker, 1, 31, 19)) == 19


def test_labels_at_hand_are_bounded(apart: Place) -> None:
    """However many there are, one call hands out no more than its bound, and none is left out."""
    broker = apart.broker()
    total = 3 * LABELS_MAX + 7
    apart.log().append(Channel.LABELS, 1, labels(total))
    owner_at(broker, apart, 5, 5)

    seen: list[int] = []
    while len(seen) < total:
        found = wait_for(broker, 1, len(seen), 1)
        assert len(found) <= LABELS_MAX
        seen += [record.offset for record in found]
    assert seen == list(range(total))


def test_labels_that_are_gone_are_reported(apart: Place) -> None:
    """The owner hears that the partition cannot go on; one that has learned none begins with what is left."""
    broker = apart.broker()
    for partition in (1, 2):
        apart.log().append(Channel.LABELS, partition, labels(10))
        apart.trim(partition, 6, Channel.LABELS)
    owner = owner_at(broker, apart, 5, 5)

    assert wait_for(broker, 1, 0, 4)[0].offset == 6

    def failed() -> bool:
        return not read(broker, 2, 3) and 2 in owner.failures

    eventually(failed)
    assert owner.failures.keys() == {2}
    assert "label" in str(owner.failures[2])
    assert "npstream reset" in str(owner.failures[2])


def test_the_committed_position_has_the_merges(apart: Place) -> None:
    """They are read back with it; without a labels topic there are none."""
    broker = apart.broker()
    joined(broker)
    merged = LabelPosition(3, ((7, 7), (8, 9)))
    made = share(1, 7, chunks=chunks(2))
    broker.commit([replace(made, position=replace(made.position, labels=merged))])

    position = broker.state.committed(1)

    assert position is not None
    assert position.labels == merged


@pytest.mark.kafka
def test_lag_tools_see_the_labels_topic(apart: Place) -> None:
    """The label offset is committed under the group, in the same transaction."""
    if not isinstance(apart, KafkaPlace):
        pytest.skip("an embedded log has no such tools")
    broker = apart.broker()
    joined(broker)
    made = share(1, 7, chunks=chunks(2))
    broker.commit([replace(made, position=replace(made.position, labels=LabelPosition(3, ((7, 9),))))])
    assert apart.topics.labels is not None
    reader = Consumer(
        {"bootstrap.servers": apart.bootstrap, "group.id": apart.group, "isolation.level": "read_committed"}
    )
    try:
        (found,) = reader.committed([TopicPartition(apart.topics.labels, 1)], timeout=30)
    finally:
        reader.close()

    assert found.offset == 9


def test_a_labels_topic_with_more_partitions_is_refused(place: Place) -> None:
    """Its keys would lead to other partitions than those of the events."""
    name = place.topics.events + "-wide"
    place.with_topics(replace(place.topics, events=name, decisions=name + "-d")).create(5)
    wide = place.with_topics(replace(place.topics, labels=name))

    with pytest.raises(Fatal, match=r"has 5 partitions.*route-labels"):
        wide.broker()
