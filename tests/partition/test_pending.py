"""The buffer of waiting observations as a snapshot holds it, and the arrays it lies in."""

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.digest import key_of, keys_of
from npstream.partition import LabelConfig, PartitionProcessor
from npstream.partition.keyed import append, append_all, find, keyed, oldest, remove, slots_of
from npstream.partition.pending import Pending, Widths
from tests.partition.builders import D, config, processor, record


def machine(**rules: Any) -> PartitionProcessor:
    """A processor with these rules for labels."""
    return processor(config(labels=LabelConfig(**rules)))


def observe(made: PartitionProcessor, first: int, last: int) -> None:
    """Observations with these numbers as ids."""
    begin = made.next_offset
    made.process([record(begin + i, {"id": n, "x": [n, 0, 0]}) for i, n in enumerate(range(first, last))])


def label(made: PartitionProcessor, *ids: int) -> None:
    """Labels for these ids."""
    begin = made.next_offset
    made.process([record(begin + i, {"id": n, "y": 1}) for i, n in enumerate(ids)])


@settings(deadline=None)
@given(st.integers(1, 9), st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=80))
def test_entries_are_found_by_key_and_kept_in_order(size: int, todo: list[tuple[bool, int]]) -> None:
    """As in an ordered dictionary, whatever comes and goes, in any order, when it is full and when it is empty."""
    entries, plain = keyed(size), OrderedDict[int, int]()
    keys = keys_of(range(13))
    with np.errstate(over="ignore"):
        for adds, n in todo:
            first, second = keys[n]
            assert find(entries, first, second) == plain.get(n, -1)
            if adds and n not in plain and len(plain) < size:
                plain[n] = append(entries, first, second)
            elif not adds and n in plain:
                remove(entries, plain.pop(n))
            assert slots_of(entries).tolist() == list(plain.values())
            assert len({*plain.values()}) == len(plain)
            assert not plain or oldest(entries) == next(iter(plain.values()))
        assert [find(entries, *keys[n]) for n in range(13)] == [plain.get(n, -1) for n in range(13)]


def test_keys_that_share_their_place_in_the_table() -> None:
    """Entries that all begin at one place push one another on, and are found when some of them have left."""
    entries = keyed(8)
    keys = [(np.uint64(7), np.uint64(n)) for n in range(8)]
    with np.errstate(over="ignore"):
        slots = [append(entries, *key) for key in keys]
        for n in (3, 0, 6):
            remove(entries, slots[n])
        found = [find(entries, *key) for key in keys]

    assert found == [-1 if n in (3, 0, 6) else slot for n, slot in enumerate(slots)]


def test_a_snapshot_of_it_is_bounded() -> None:
    """However many came and went, it has the bytes of a full buffer, a full memory of ids and of early labels."""
    made = machine(buffer_max=7, remembered_max=20, early_max=5)
    observe(made, 0, 100)
    label(made, *range(1000, 1050))

    entry = 16 + 4 * D + 8 + 8 + 1 + 1
    assert sum(map(len, made.pending.dump().values())) == 7 * entry + 17 * (20 + 5)


def test_the_bytes_do_not_depend_on_slots() -> None:
    """Two ways to the same waiting observations give the same snapshot, although they lie elsewhere."""
    straight, roundabout = machine(buffer_max=3), machine(buffer_max=3)
    observe(straight, 100, 103)
    label(straight, 100, 101, 102)
    observe(straight, 1, 4)
    observe(roundabout, 100, 103)
    label(roundabout, 101, 100, 102)
    observe(roundabout, 1, 4)

    assert slots_of(straight.pending.buffer.entries).tolist() != slots_of(roundabout.pending.buffer.entries).tolist()
    kept = [
        {name: blob for name, blob in made.pending.dump().items() if name not in ("labels.gone", "pending.decided")}
        for made in (straight, roundabout)
    ]
    assert kept[0] == kept[1]


def test_a_restored_buffer_that_does_not_fit_is_refused() -> None:
    """Fewer places than observations: nothing is dropped in silence."""
    made = machine(buffer_max=3)
    observe(made, 0, 3)

    with pytest.raises(ValueError, match=r"3 waiting observations do not fit labels\.buffer_max 2"):
        Pending.load(LabelConfig(buffer_max=2), Widths(D), made.pending.dump(), {})


def test_a_damaged_buffer_is_refused() -> None:
    """An id that is there twice, and columns of different lengths."""
    made = machine(buffer_max=3)
    observe(made, 0, 2)
    blobs = made.pending.dump()
    twice = {**blobs, "pending.ids": 2 * key_of(0)}
    short = {**blobs, "pending.count": blobs["pending.count"][:8]}

    for damaged, what in ((twice, "twice"), (short, "reshape")):
        with pytest.raises(ValueError, match=what):
            Pending.load(LabelConfig(buffer_max=3), Widths(D), damaged, {})


def test_a_smaller_memory_keeps_the_newest() -> None:
    """When settings leave less room, the ids that left last are still known."""
    made = machine(buffer_max=1, remembered_max=10)
    observe(made, 0, 11)
    made.reconfigure(config(labels=LabelConfig(buffer_max=1, remembered_max=2)))
    label(made, 9, 8, 7)

    assert (made.tally.labels_late, len(made.pending.dump()["labels.early"])) == (2, 17)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (Widths(3, 2, shadow=True), Widths(2), [[13, 14], [18, 19]]),
        (Widths(3, 0, score=True, shadow=True), Widths(0, score=True), [[], []]),
        (Widths(3, 0, shadow=True), Widths(3), [[10, 11, 12], [13, 14, 15]]),
        (Widths(1, 0, shadow=True), Widths(1), [[10], [11]]),
    ],
    ids=["its own", "none", "the same", "the same one"],
)
def test_a_promoted_challenger_finds_the_features_that_it_reads(
    before: Widths, after: Widths, kept: list[list[int]]
) -> None:
    """Of each waiting observation: those of its own, those of the champion, or none but the event's score."""
    rules = LabelConfig(buffer_max=3)
    made = Pending(rules, before)
    slots = append_all(made.buffer.entries, keys_of([1, 2]))
    made.buffer.parked_at[slots] = [1, 2]
    made.buffer.x[slots] = np.arange(10, 10 + made.buffer.x[slots].size).reshape(2, -1)
    made.buffer.score[slots[: made.buffer.score.size]] = [0.25, 0.5][: made.buffer.score.size]

    promoted = made.promoted(rules, after, 1)

    found = slots_of(promoted.buffer.entries)
    assert promoted.buffer.x[found].tolist() == kept
    assert not after.score or promoted.buffer.score[found].tolist() == [0.25, 0.5]


@pytest.mark.parametrize("corrections", [False, True])
def test_a_smaller_buffer_lets_thousands_go(corrections: bool) -> None:
    """When settings leave less room than waits: the oldest go before the next event, in as many calls as it takes."""
    made = machine(buffer_max=2100, corrections=corrections)
    observe(made, 0, 2100)
    made.reconfigure(config(labels=LabelConfig(buffer_max=10, corrections=corrections)))
    step = made.process([record(made.next_offset, {"x": [0, 0, 0], "y": 1})])

    assert len(step.outputs) == 1
    assert made.tally.observations_expired == 2090
    assert slots_of(made.pending.buffer.entries).size == 10
    label(made, 2090, 2089)
    assert (made.tally.labels_joined, made.tally.labels_late) == (1, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 1000, 1024])
def test_the_table_of_keys_is_at_most_half_full_and_no_larger(size: int) -> None:
    """Memory is taken by `labels.buffer_max` and the like: four places for each entry would be twice what it takes."""
    places = keyed(size).table.size

    assert places >= 2 * size > places // 2
