"""A transaction that nobody ends is named."""

from confluent_kafka import Producer

from npstream.kafka import KafkaLog
from npstream.monitor.stuck import Stuck, StuckWatch, threshold_s
from npstream.port import Ends
from npstream.records import Channel, Topics
from tests.contracts.builders import events, eventually
from tests.stage.places import PARTITIONS, KafkaPlace

EVENTS = (Channel.EVENTS, 0)
PLACES = [(channel, partition) for channel in tuple(Channel)[:4] for partition in range(PARTITIONS)]


def test_the_threshold_is_the_transaction_timeout_and_the_brokers_check() -> None:
    """A transaction may last that long without anybody being to blame."""
    assert threshold_s(15_000) == 25.0


def test_a_stable_end_that_does_not_move_is_found_when_its_time_is_over() -> None:
    """Not before, and not when it moves or catches up in between."""
    topics = Topics("e", "d", "x", "c")
    unmoved, moved, caught_up = Ends(0, 3, 6), Ends(0, 4, 6), Ends(0, 6, 6)

    watch = StuckWatch(topics, after_s=25)
    assert [watch.look(now, {EVENTS: unmoved}) for now in (0.0, 10.0, 25.0)] == [[], [], []]
    assert watch.look(26.0, {EVENTS: unmoved}) == [Stuck(EVENTS, "e", 3, 6, 26.0)]

    for between in (moved, caught_up):
        watch = StuckWatch(topics, after_s=25)
        watch.look(0.0, {EVENTS: unmoved})
        watch.look(20.0, {EVENTS: between})
        assert watch.look(40.0, {EVENTS: unmoved}) == []


def test_a_hanging_transaction_is_named_with_its_remedy(place: KafkaPlace, log: KafkaLog) -> None:
    """Topic, partition, offset and the command that ends it; ending it clears the finding."""
    log.append(Channel.EVENTS, 0, events(3))
    upstream = Producer({"bootstrap.servers": place.bootstrap, "transactional.id": place.group + "-upstream"})
    upstream.init_transactions(10)
    upstream.begin_transaction()
    upstream.produce(place.topics.events, b"hanging", partition=0)
    upstream.flush(10)
    watch = StuckWatch(place.topics, after_s=25)

    assert watch.look(0.0, log.all_ends(PLACES)) == []
    (found,) = watch.look(30.0, log.all_ends(PLACES))

    assert found == Stuck(EVENTS, place.topics.events, 3, 4, 30.0)
    assert f"abort --topic {place.topics.events} --partition 0 --start-offset 3" in str(found)
    upstream.abort_transaction(10)
    eventually(lambda: watch.look(60.0, log.all_ends(PLACES)) == [])
