"""Which partition is held to be the cause of a refusal, and when."""

import pytest

from npstream.errors import Refused, StateCorrupt
from npstream.worker.refusals import UNKNOWN, Refusals


def refused(partition: int | None, strikes: int = 1) -> Refused:
    return Refused("too large", partition, strikes)


def is_refused(refusals: Refusals, partition: int, committed: int) -> bool:
    try:
        refusals.check(partition, committed)
    except StateCorrupt:
        return True
    return False


def test_after_a_refusal_partitions_are_published_one_by_one_for_a_while() -> None:
    """Whoever it was: then the next refusal has one suspect only."""
    refusals = Refusals()
    assert not refusals.apart(100.0)

    refusals.note(refused(None), UNKNOWN, 100.0)

    assert refusals.apart(100.0)
    assert refusals.apart(109.9)
    assert not refusals.apart(110.0)


def test_nobody_is_refused_while_several_took_part() -> None:
    """An error without a partition condemns none."""
    refusals = Refusals()
    for _ in range(5):
        refusals.note(refused(None), UNKNOWN, 0.0)

    assert not any(is_refused(refusals, partition, offset) for partition in range(3) for offset in (UNKNOWN, 0, 7))


def test_a_partition_is_refused_at_the_offset_it_happened_at() -> None:
    """One that has moved on, or another, is not."""
    refusals = Refusals()
    refusals.note(refused(1), 7, 0.0)

    assert [is_refused(refusals, 1, offset) for offset in (6, 7, 8)] == [False, True, False]
    assert not is_refused(refusals, 0, 7)


def test_what_has_no_name_must_come_back() -> None:
    """At the same offset: progress in between starts the count again."""
    refusals = Refusals()
    for offset in (7, 7, 8, 7, 7):
        refusals.note(refused(1, strikes=3), offset, 0.0)
        assert not is_refused(refusals, 1, offset)

    refusals.note(refused(1, strikes=3), 7, 0.0)

    with pytest.raises(StateCorrupt, match="too large"):
        refusals.check(1, 7)
