"""What a partition's checkpoint topic holds of its past."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.codec.changes import Change, encode_change
from npstream.codec.chunks import ResetKey, parse_key, split
from npstream.codec.history import History, read_history
from npstream.codec.resets import How, Reset, decode_reset, encode_reset
from npstream.codec.snapshot import Snapshot, encode_snapshot
from npstream.errors import StateCorrupt
from npstream.records import KeyValue

Pair = tuple[bytes, bytes]


def snapshot(next_offset: int, ring_place: int, tau: float = 0.1) -> list[Pair]:
    """The chunks of a snapshot at an offset."""
    value = Snapshot(
        algorithm=1,
        group="g",
        topic="t",
        partition=0,
        ring_place=ring_place,
        next_offset=next_offset,
        params={"tau": tau},
    )
    return split(encode_snapshot(value), "g", "t", 0, ring_place)


def change(offset: int, old: float | None, new: float) -> list[Pair]:
    """A change of tau; `old` None: the partition began."""
    return [encode_change(Change(offset, {} if old is None else {"tau": old}, {"tau": new}), "g", "t", 0)]


def reset(number: int, origin: int, to: int, how: How) -> list[Pair]:
    """A move of the position."""
    return [encode_reset(Reset(number, origin, to, how, 5), "g", "t", 0)]


def history_of(*parts: list[Pair]) -> History:
    """The history of everything written one after another."""
    records = [pair for part in parts for pair in part]
    return read_history([KeyValue(i, *pair) for i, pair in enumerate(records)], "g", "t", 0)


def offsets(history: History) -> tuple[list[int], list[int]]:
    """Where the snapshots and the changes are."""
    return [kept.next_offset for kept in history.snapshots], [item.offset for item in history.changes]


def test_snapshots_and_changes_come_in_the_order_of_the_input() -> None:
    """A ring place that was used again has its newest snapshot only, and other groups count for nothing."""
    stranger = [(b"other" + key, value) for key, value in change(7, 0.1, 0.2)]
    history = history_of(change(0, None, 0.1), snapshot(0, 0), snapshot(10, 1), snapshot(20, 0), stranger)

    assert offsets(history) == ([10, 20], [0])
    assert history.birth == Change(0, {}, {"tau": 0.1})
    assert history.newest is not None
    assert (history.newest.offset, history.newest.snapshot.ring_place) == (3, 0)


@pytest.mark.parametrize(("offset", "found"), [(9, None), (10, 10), (19, 10), (20, 20), (99, 20)])
def test_the_newest_snapshot_from_which_an_offset_can_be_reached(offset: int, found: int | None) -> None:
    """A snapshot serves every offset from its own on."""
    kept = history_of(snapshot(10, 0), snapshot(20, 1)).at_or_before(offset)

    assert (kept.next_offset if kept else None) == found


def test_of_two_snapshots_at_one_offset_the_later_one_counts() -> None:
    """Settings that change leave a second snapshot at the same offset."""
    kept = history_of(snapshot(10, 0, tau=0.1), snapshot(10, 1, tau=0.3)).at_or_before(10)

    assert kept is not None
    assert kept.snapshot.params == {"tau": 0.3}


def test_a_rollback_strikes_out_what_lies_beyond_it() -> None:
    """Snapshots and changes of the life that was given up no longer count, those of the new one do."""
    before = [change(0, None, 0.1), snapshot(10, 0), snapshot(20, 1), change(20, 0.1, 0.3), snapshot(30, 2)]
    back = [snapshot(10, 3), reset(0, 35, 10, "rollback"), change(10, 0.3, 0.1)]
    history = history_of(*before, *back)

    assert offsets(history) == ([10, 10], [0, 10])
    assert history.resets == (Reset(0, 35, 10, "rollback", 5),)
    assert offsets(history_of(*before, *back, snapshot(25, 0), change(25, 0.1, 0.2))) == ([10, 25], [0, 10, 25])


def test_a_fresh_start_strikes_out_everything_before_it() -> None:
    """Nothing from before can be replayed into a model that started over, not even what lies at lower offsets."""
    history = history_of(
        *[change(0, None, 0.1), snapshot(10, 0), snapshot(20, 1)],
        *[snapshot(15, 2), reset(0, 25, 15, "fresh"), change(15, None, 0.1)],
    )

    assert offsets(history) == ([15], [15])
    assert history.birth is not None


def test_a_model_that_moved_on_can_only_be_followed_from_there() -> None:
    """A kept model at another place leaves its own snapshot and no birth."""
    history = history_of(*[change(0, None, 0.1), snapshot(10, 0)], *[snapshot(90, 1), reset(0, 10, 90, "kept")])

    assert offsets(history) == ([90], [])
    assert history.birth is None


@given(st.integers(0, 10**9), st.text(st.sampled_from("ab/é-0"), min_size=1, max_size=12))
def test_reset_keys_read_back(number: int, group: str) -> None:
    """Reset keys are distinguished from the others whatever the group is called."""
    key = ResetKey(group, "t", 3, number)

    assert parse_key(key.encode()) == key


def test_a_reset_reads_back() -> None:
    """Everything an operator gave is there."""
    said = Reset(3, 500, 100, "rollback", 1_700_000_000_000, "bad labels since noon")

    assert decode_reset(KeyValue(0, *encode_reset(said, "g", "t", 0))) == said


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{}", b'{"at_ms":1,"from":2,"how":"sideways","to":1,"why":""}'])
def test_unreadable_resets_are_refused_by_key(value: bytes | None) -> None:
    """A reset record that cannot be trusted is named."""
    with pytest.raises(StateCorrupt, match="reset/00000000000000000000"):
        history_of(
            [(ResetKey("g", "t", 0, 0).encode(), value)]  # type: ignore[list-item]
        )
