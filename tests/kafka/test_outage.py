"""The broker goes away and comes back."""

import pytest

from npstream.errors import Retryable
from npstream.records import Channel, Topics
from tests.broker import JarKafka
from tests.contracts.builders import chunks, decision, events, eventually, joined, offsets, share, values
from tests.stage.places import KafkaPlace

TOPICS = Topics("events", "decisions", "dead", "checkpoints")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_outage_is_outlived(private_kafka: JarKafka) -> None:
    """Idle, the worker waits; a commit ends retryable; whoever comes after finds everything as it was."""
    place = KafkaPlace(private_kafka.bootstrap, TOPICS, "group").create()
    log = place.log()
    log.append(Channel.EVENTS, 0, events(5))
    broker = place.kafka_broker("a", transaction_timeout_ms=8000)
    owner = joined(broker)
    assert offsets(owner.collect(5)) == {0: [0, 1, 2, 3, 4]}
    broker.commit([share(0, 5, [decision(b"before")], chunks(1))])

    private_kafka.kill()
    for _ in range(5):
        owner.poll(timeout_s=0.2)
    with pytest.raises(Retryable):
        broker.commit([share(0, 9, [decision(b"lost")], chunks(1))])
    broker.abandon()
    with pytest.raises(Retryable, match="cannot reach brokers"):
        place.kafka_broker("a", connect_timeout_ms=1000)

    private_kafka.start()
    log.append(Channel.EVENTS, 0, events(2))
    following = place.kafka_broker("a")
    owner = joined(following)
    assert offsets(owner.collect(2)) == {0: [5, 6]}
    following.commit([share(0, 7, [decision(b"after")], chunks(1))])
    eventually(lambda: values(log, Channel.DECISIONS, 0) == [b"before", b"after"])
    place.leave()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_short_outage_in_the_life_of_a_reader_is_not_even_an_error(private_kafka: JarKafka) -> None:
    """A worker that only polls carries on after the broker's restart, with nothing lost and nothing twice."""
    place = KafkaPlace(private_kafka.bootstrap, TOPICS, "group").create()
    log = place.log()
    log.append(Channel.EVENTS, 0, events(5))
    owner = joined(place.kafka_broker("a", session_timeout_ms=45_000))
    first = owner.collect(5)

    private_kafka.kill()
    for _ in range(5):
        owner.poll(timeout_s=0.2)
    private_kafka.start()
    log.append(Channel.EVENTS, 0, events(5))

    second = owner.collect(5)
    assert offsets(first) == {0: [0, 1, 2, 3, 4]}
    assert offsets(second) == {0: [5, 6, 7, 8, 9]}
    place.leave()
