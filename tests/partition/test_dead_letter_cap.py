"""The cap on dead letters: how many of a block, whatever the batches, and under a changed share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.errors import StateCorrupt
from npstream.partition.dead_letter_cap import BLOCK, DeadLetterCap
from tests.partition.builders import config, processor, record


def admitted(cap: DeadLetterCap, bad: list[bool]) -> int:
    """How many records get past the cap, one after another."""
    for at, is_bad in enumerate(bad):
        if is_bad and not cap.admits_one():
            return at
        if not is_bad:
            cap.count(1)
    return len(bad)


def plain(share: float, bad: list[bool]) -> int:
    """The same by counting: the first bad record whose block has had its share already."""
    for at, is_bad in enumerate(bad):
        if is_bad and sum(bad[at - at % BLOCK : at]) + 1 > share * BLOCK:
            return at
    return len(bad)


streams = st.lists(st.tuples(st.booleans(), st.integers(1, 900)), max_size=8).map(
    lambda runs: [is_bad for is_bad, length in runs for _ in range(length)]
)


@given(st.sampled_from([0.0, 0.001, 0.005, 0.25, 0.5, 0.999, 1.0]), streams)
def test_a_partition_pauses_at_the_share_of_its_block(share: float, bad: list[bool]) -> None:
    """Records up to the pause are those that counting each block of a thousand by itself allows."""
    assert admitted(DeadLetterCap(share), bad) == plain(share, bad)


@given(streams.filter(bool), st.data())
def test_batches_leave_no_trace(bad: list[bool], data: st.DataObject) -> None:
    """Good records counted at once, and a cap that was saved and restored, come to the same."""
    cut = data.draw(st.integers(0, len(bad)))
    whole, first = DeadLetterCap(1.0), DeadLetterCap(1.0)
    admitted(whole, bad)
    admitted(first, bad[:cut])
    second = DeadLetterCap(1.0, first.seen, first.bad)
    admitted(second, bad[cut:])

    assert (second.seen, second.bad) == (whole.seen, whole.bad)


@given(st.integers(0, BLOCK - 1), st.integers(0, BLOCK))
def test_good_records_may_be_counted_together(seen: int, n: int) -> None:
    """A run of good records counts as each of them does, over the end of a block too."""
    together, each = DeadLetterCap(1.0, seen, 3), DeadLetterCap(1.0, seen, 3)
    together.count(n)
    for _ in range(n):
        each.count(1)

    assert (together.seen, together.bad) == (each.seen, each.bad)


def test_what_is_not_admitted_is_not_counted() -> None:
    """Asked again, with the same share, the result is the same."""
    cap = DeadLetterCap(0.002)

    assert [cap.admits_one() for _ in range(5)] == [True, True, False, False, False]
    assert (cap.seen, cap.bad) == (2, 2)


@pytest.mark.parametrize(("cap", "taken"), [(0.005, 0), (0.004, 4), (0.007, 7)])
def test_another_cap_starts_a_block_of_its_own(cap: float, taken: int) -> None:
    """What the old cap let through is not held against the new one; settings without a new cap change nothing."""
    made = processor(config(dead_letter_cap=0.005))
    made.process([record(at, b"rubbish") for at in range(20)])
    made.reconfigure(config(dead_letter_cap=cap, on_bad_event="1"))

    step = made.process([record(at, b"rubbish") for at in range(5, 25)])

    assert (step.next_offset, step.halted is not None) == (5 + taken, True)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_processor_stops_before_the_event_and_names_it(size: int) -> None:
    """However they are batched, five of a thousand are let through and the sixth is named, with its offset."""
    made = processor(config(dead_letter_cap=0.005))
    records = [record(at, b"rubbish") for at in range(20)]
    outputs, halted = 0, None
    for at in range(0, len(records), size):
        step = made.process(records[at : at + size])
        outputs += len(step.outputs)
        if step.halted is not None:
            halted = step.halted
            break

    assert (outputs, made.next_offset) == (5, 5)
    assert isinstance(halted, StateCorrupt)
    assert "events/0: more than 0.5% of a block of 1000 events are bad, the last at offset 5 (" in str(halted)


def test_a_block_is_a_thousand_records() -> None:
    """As the setting says: one bad event in each is a share of 0.001."""
    cap = DeadLetterCap(0.001)

    assert cap.admits_one()
    cap.count(998)
    assert not cap.admits_one()
    cap.count(1)
    assert cap.admits_one()
