"""Plain reading and writing, outside any group."""

from itertools import islice
from random import Random

import pytest

from npstream.errors import NpstreamError
from npstream.port import Ends, Log
from npstream.records import Channel
from tests.contracts.builders import chunks, decision, events, eventually, joined, share, values
from tests.stage.places import PARTITIONS, Place


def test_a_new_topic_is_empty(place: Place, log: Log) -> None:
    """Partition counts are those of the topic, and each partition holds nothing."""
    assert [log.partitions(channel) for channel in place.topics.channels()] == [PARTITIONS] * 4
    assert log.ends(Channel.EVENTS, 2) == Ends(0, 0, 0)
    assert values(log, Channel.EVENTS, 2) == []


def test_the_ends_follow_what_is_written(place: Place, log: Log) -> None:
    """The end grows with appends, the beginning with deletion."""
    log.append(Channel.EVENTS, 1, events(10))
    assert log.ends(Channel.EVENTS, 1) == Ends(0, 10, 10)

    place.trim(1, 4)
    assert log.ends(Channel.EVENTS, 1) == Ends(4, 10, 10)
    assert [record.offset for record in log.read(Channel.EVENTS, 1, 0, 100)] == list(range(4, 10))


def test_many_ends_are_those_asked_for_one_by_one(log: Log) -> None:
    """Each place gets its own range, in whatever order they are asked for."""
    log.append(Channel.EVENTS, 0, events(3))
    log.append(Channel.EVENTS, 2, events(5))
    log.append(Channel.DECISIONS, 0, events(7))
    places = [(Channel.DECISIONS, 0), (Channel.EVENTS, 2), (Channel.EVENTS, 1), (Channel.EVENTS, 0)]

    assert log.all_ends(places) == {place: log.ends(*place) for place in places}
    assert [ends.stable for ends in log.all_ends(places).values()] == [7, 5, 0, 3]
    assert log.all_ends([]) == {}


def test_offset_at_finds_ends_and_times(place: Place, log: Log) -> None:
    """Earliest, latest, and the first event at or after a time; beyond the last event it is the end."""
    log.append(Channel.EVENTS, 0, [(None, b"v", (), ts) for ts in (1000, 2000, 2000, 3000)])

    assert log.offset_at(0, "earliest") == 0
    assert log.offset_at(0, "latest") == 4
    assert [log.offset_at(0, ts) for ts in (1, 1000, 1001, 2000, 3000, 3001)] == [0, 0, 1, 1, 3, 4]

    place.trim(0, 2)
    assert [log.offset_at(0, "earliest"), log.offset_at(0, 1)] == [2, 2]
    log.append(Channel.DECISIONS, 0, [(b"k", b"v", (), ts) for ts in (500, 1500)])
    assert [log.offset_at(0, ts, Channel.DECISIONS) for ts in (1, 501, 1501)] == [0, 1, 2]


def test_a_read_is_bounded_by_what_was_asked_and_by_the_end(log: Log) -> None:
    """Both bounds hold, and what is written after the call does not lengthen it."""
    log.append(Channel.EVENTS, 0, events(10))

    assert [record.offset for record in log.read(Channel.EVENTS, 0, 3, 7)] == [3, 4, 5, 6]
    assert [record.offset for record in log.read(Channel.EVENTS, 0, 8, 100)] == [8, 9]
    assert list(log.read(Channel.EVENTS, 0, 10, 100)) == []

    reading = log.read(Channel.EVENTS, 0, 0, 100)
    log.append(Channel.EVENTS, 0, events(10))
    assert [record.offset for record in reading] == list(range(10))


def test_a_long_partition_is_read_whole(log: Log) -> None:
    """More than any page holds."""
    log.append(Channel.EVENTS, 0, events(12_345))

    assert values(log, Channel.EVENTS, 0) == [value for _, value, _, _ in events(12_345)]


def test_a_read_that_is_given_up_leaves_nothing_for_the_next_one(log: Log) -> None:
    """Wherever it was left, and also while another one is going on."""
    log.append(Channel.EVENTS, 0, events(3_000))
    log.append(Channel.EVENTS, 1, events(3_000))
    random = Random(5)
    whole = log.read(Channel.EVENTS, 1, 0, 3_000)
    offsets = [next(whole).offset for _ in range(3)]

    for _ in range(60):
        partition, begin = random.randrange(2), random.randrange(2_990)
        end, taken = begin + random.randrange(1, 1_500), random.choice((1, 2, 10, 5_000))
        reading = log.read(Channel.EVENTS, partition, begin, end)
        read = [record.offset for record in islice(reading, taken)]
        del reading
        assert read == list(range(begin, min(end, 3_000, begin + taken)))

    assert offsets + [record.offset for record in whole] == list(range(3_000))


def test_a_reader_sees_committed_records_only_and_in_order(place: Place, log: Log) -> None:
    """Commits appear in the order they were made, with nothing in between."""
    broker = place.broker()
    joined(broker)
    for turn in range(10):
        broker.commit([share(0, turn, [decision(b"%d.%d" % (turn, n)) for n in range(3)], chunks(1))])

    eventually(lambda: len(values(log, Channel.DECISIONS, 0)) == 30)
    assert values(log, Channel.DECISIONS, 0) == [b"%d.%d" % (turn, n) for turn in range(10) for n in range(3)]


def test_a_partition_that_does_not_exist_is_refused(log: Log) -> None:
    """Reading or writing beyond the partition count is an error of ours, not a wait without end."""
    with pytest.raises(NpstreamError):
        log.ends(Channel.EVENTS, PARTITIONS)
    with pytest.raises(NpstreamError):
        log.append(Channel.EVENTS, PARTITIONS, events(1))


def test_closing_twice_is_harmless(place: Place) -> None:
    """Close never raises."""
    log = place.log()
    log.close()
    log.close()
