"""Partitions that fall between two rounds of a rebalance find an owner again."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from npstream.kafka import KafkaLog
from npstream.kafka.admin import Admin
from npstream.kafka.group import Assignment
from npstream.kafka.orphans import OrphanWatch
from npstream.records import Channel
from tests.contracts.builders import events, eventually, joined, values
from tests.kafka.echo import Echo
from tests.stage.places import KafkaPlace

CALM: Assignment = {"a": frozenset({1, 2}), "b": frozenset()}
NEW: Assignment = {"a": frozenset({0, 1}), "b": frozenset()}
"""Partition 2 is above all that are owned: the leader may not have seen it yet."""


@pytest.mark.parametrize(
    ("looks", "rejoins"),
    [
        ([(0, CALM)], ()),
        ([(0, CALM), (3, CALM)], (0,)),
        ([(0, CALM), (3, None), (6, CALM)], ()),
        ([(0, CALM), (3, {"a": frozenset({0, 1, 2}), "b": frozenset()})], ()),
        ([(0, CALM), (3, {"a": frozenset({0, 2}), "b": frozenset()})], ()),
        ([(0, CALM), (3, {"a": frozenset({1, 2}), "aa": frozenset(), "b": frozenset()})], ()),
        ([(0, {}), (3, {})], ()),
        ([(0, NEW), (3, NEW), (9, NEW), (15, NEW)], ()),
        ([(0, NEW), (3, NEW), (9, NEW), (15, NEW), (18, NEW)], (2,)),
    ],
    ids=[
        "seen once",
        "seen twice",
        "in motion between",
        "owned again",
        "another one",
        "not on us",
        "empty group",
        "new: the leader has time to see it",
        "new: and nobody took it",
    ],
)
def test_a_member_rejoins_for_what_stays_without_owner(
    looks: list[tuple[int, Assignment | None]], rejoins: tuple[int, ...]
) -> None:
    """Only a partition without owner in two looks running counts, and only the least loaded member acts."""
    watch = OrphanWatch()

    assert [tuple(watch.look(now, assignment, 3, "b")) for now, assignment in looks][-1] == rejoins


def test_leaving_again_for_the_same_partitions_takes_ever_longer() -> None:
    """A group that cannot be helped is not torn apart every few seconds; another partition has patience of its own."""
    watch, left = OrphanWatch(), []
    for now in range(0, 600, 3):
        if watch.look(now, CALM, 3, "b"):
            left.append(now)
            watch.look(now + 1, None, 3, "b")  # the rebalance that follows

    gaps = [after - before for before, after in pairwise(left)]
    assert 3 <= len(left) <= 12
    assert gaps == sorted(gaps)
    assert gaps[-1] > 60
    watch.look(600, {"a": frozenset({0, 1, 2}), "b": frozenset()}, 3, "b")
    assert [tuple(watch.look(now, CALM, 3, "b")) for now in (603, 606)] == [(), (0,)]


def test_a_static_worker_replaced_between_the_rounds_leaves_no_partition_behind(
    place: KafkaPlace, log: KafkaLog
) -> None:
    """The partition it had been asked to let go, and never did, is read again by somebody."""
    first = place.kafka_broker("a")
    joined(first)
    second = Echo(place, "b", static=True)
    with ThreadPoolExecutor(max_workers=2) as threads:
        running = [threads.submit(second.run)]
        admin = Admin(place.config())
        # The first worker does not poll, so it does not hear that it must let go of a partition.
        eventually(lambda: sorted(len(member.partitions) for member in admin.group().members) == [0, 2])
        first.abandon()
        heir = Echo(place, "a", static=True)
        running.append(threads.submit(heir.run))
        for partition in range(3):
            log.append(Channel.EVENTS, partition, events(5))
        try:
            eventually(lambda: all(len(values(log, Channel.DECISIONS, partition)) == 5 for partition in range(3)))
        finally:
            second.stop.set()
            heir.stop.set()
        for worker in running:
            worker.result(timeout=30)
