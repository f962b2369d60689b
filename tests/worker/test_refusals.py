"""Which partition is held to be the cause of a refusal, and when."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from npstream.errors import Refused, StateCorrupt
from npstream.port import FinishCommit
from npstream.records import Channel, Share
from npstream.testing import MortalBroker
from npstream.worker.refusals import UNKNOWN, Refusals
from tests.partition.builders import config, labelled
from tests.stage.stage import on_file


def refused(
    partition: int | None, committed: int | None = None, strikes: int = 1, together: frozenset[int] = frozenset()
) -> Refused:
    error = Refused("too large", partition, strikes)
    error.committed, error.together = committed, together
    return error


def is_refused(refusals: Refusals, partition: int, committed: int) -> bool:
    try:
        refusals.check(partition, committed)
    except StateCorrupt:
        return True
    return False


def test_after_a_refusal_partitions_are_published_one_by_one_until_each_came_through() -> None:
    """However long that takes: published, paused or given away, it is no suspect any more."""
    refusals = Refusals()
    assert not refusals.apart

    refusals.note(refused(None, together=frozenset({0, 2})), 100.0)

    for partition, left in ((1, True), (2, True), (0, False)):
        refusals.clear(partition)
        assert refusals.apart == left


def test_nobody_is_refused_while_several_took_part() -> None:
    """An error without a partition condemns none."""
    refusals = Refusals()
    for now in range(100):
        refusals.note(refused(None), now)

    assert not any(is_refused(refusals, partition, offset) for partition in range(3) for offset in (UNKNOWN, 0, 7))


def test_a_partition_is_refused_at_the_offset_it_happened_at() -> None:
    """One that has moved on, or another, is not."""
    refusals = Refusals()
    refusals.note(refused(1, committed=7), 0.0)

    assert [is_refused(refusals, 1, offset) for offset in (6, 7, 8)] == [False, True, False]
    assert not is_refused(refusals, 0, 7)


def test_a_partition_without_a_committed_offset_is_refused_wherever_it_begins() -> None:
    """Its beginning moves with the log, the refusal does not."""
    refusals = Refusals()
    refusals.note(refused(1), 0.0)

    with pytest.raises(StateCorrupt, match="too large"):
        refusals.check(1, UNKNOWN)


def test_what_has_no_name_must_come_back_often_enough() -> None:
    """At the same offset: progress in between starts the count again."""
    refusals = Refusals()
    for now, offset in enumerate((7, 7, 8, 7, 7)):
        refusals.note(refused(1, offset, strikes=3), 10.0 * now)
        assert not is_refused(refusals, 1, offset)

    refusals.note(refused(1, 7, strikes=3), 50.0)

    assert is_refused(refusals, 1, 7)


def test_what_has_no_name_must_come_back_for_long_enough() -> None:
    """A hiccup may strike many times in a second."""
    refusals = Refusals()
    for now in (0.0, 0.2, 0.7, 1.7, 3.7):
        refusals.note(refused(1, 7, strikes=3), now)
        assert not is_refused(refusals, 1, 7)

    refusals.note(refused(1, 7, strikes=3), 8.7)

    assert is_refused(refusals, 1, 7)


class Picky(MortalBroker):
    """Refuses every transaction with outputs of partition 0, without saying whose they are."""

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        """Take it or not."""
        if any(share.partition == 0 and share.outputs for share in shares):
            raise Refused("a record is larger than its topic allows")
        return super().start_commit(shares)


def test_the_partition_that_is_refused_is_found_among_those_that_were_published_together(tmp_path: Path) -> None:
    """The others are decided to their ends, it is paused where it was; with the cause gone it goes on from there."""
    bench = on_file(tmp_path / "log.db", partitions=3)
    for partition in range(3):
        bench.feed(partition, labelled(200))

    found = bench.decide(config(), wrap=lambda broker: Picky(broker, lambda: None), batch_max=1000)

    assert found.pauses.keys() == {0}
    assert "larger than its topic allows" in found.pauses[0]
    assert [len(bench.published(Channel.DECISIONS, partition)) for partition in range(3)] == [0, 200, 200]
    bench.decide(config())
    assert [len(bench.published(Channel.DECISIONS, partition)) for partition in range(3)] == [200, 200, 200]
