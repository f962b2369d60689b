"""Partitions that fall between two rounds of a rebalance find an owner again."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from npstream.kafka import KafkaLog
from npstream.kafka.admin import Admin
from npstream.kafka.orphans import Assignment, OrphanWatch
from npstream.records import Channel
from tests.contracts.builders import events, eventually, joined, values
from tests.contracts.places import KafkaPlace
from tests.kafka.echo import Echo

CALM: Assignment = {"a": frozenset({1, 2}), "b": frozenset()}


@pytest.mark.parametrize(
    ("looks", "stirs"),
    [
        ([CALM], ()),
        ([CALM, CALM], (0,)),
        ([CALM, None, CALM], ()),
        ([CALM, {"a": frozenset({0, 1, 2}), "b": frozenset()}], ()),
        ([CALM, {"a": frozenset({0, 2}), "b": frozenset()}], ()),
        ([CALM, {"a": frozenset({1, 2}), "aa": frozenset(), "b": frozenset()}], ()),
        ([{}, {}], ()),
    ],
    ids=["seen once", "seen twice", "in motion between", "owned again", "another one", "not on us", "empty group"],
)
def test_a_member_stirs_the_group_for_what_it_has_seen_twice(
    looks: list[Assignment | None], stirs: tuple[int, ...]
) -> None:
    """Only a partition without owner in two looks running counts, and only the least loaded member acts."""
    watch = OrphanWatch(3)

    assert [tuple(watch.look(assignment, "b")) for assignment in looks][-1] == stirs


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
