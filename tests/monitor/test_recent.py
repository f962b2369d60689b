"""Windows over counters that only grow."""

from hypothesis import given
from hypothesis import strategies as st

from npstream.monitor.recent import STILL_AFTER, Recent, Stillness, window_for


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1)), min_size=1, max_size=300), st.integers(64, 500))
def test_a_window_counts_what_was_added_last(batches: list[tuple[int, float]], size: int) -> None:
    """Hits and trials are those of a run of the latest batches, as long as the window and a step at most."""
    recent = Recent(size)
    totals = [(1000, 100)]
    recent.update(*totals[0])
    for trials, share in batches:
        totals.append((totals[-1][0] + trials, totals[-1][1] + round(trials * share)))
        recent.update(*totals[-1])

    hits, counted = recent.counts()

    assert any((hits, counted) == (totals[-1][1] - h, totals[-1][0] - t) for t, h in totals)
    whole = totals[-1][0] - totals[0][0]
    assert counted == whole if whole < size else counted >= size
    assert counted < size + size // 64 + 40


def test_memory_is_bounded() -> None:
    """However long it runs, a window keeps some 64 old counts."""
    recent = Recent(640)
    for n in range(100_000):
        recent.update(n, n // 2)

    assert len(recent._marks) <= 66
    assert recent.counts()[1] in range(640, 651)


def test_counts_that_went_back_start_over() -> None:
    """After a roll-back of the state nothing of the undone part is left."""
    recent = Recent(100)
    recent.update(50, 10)
    recent.update(90, 30)
    recent.update(60, 12)
    recent.update(70, 14)

    assert recent.counts() == (2, 10)


def test_nothing_seen_is_nothing_counted() -> None:
    """A window without an update has no trials."""
    assert Recent(100).counts() == (0, 0)


def test_stillness_needs_many_labels_without_any_movement() -> None:
    """A value is pinned after a thousand labels at one and the same number, and free again when it moves."""
    still = Stillness()
    verdicts = [still.update(1.5, 0), still.update(1.5, STILL_AFTER - 1), still.update(1.5, STILL_AFTER)]
    moved = still.update(1.6, STILL_AFTER + 1)

    assert verdicts == [False, False, True]
    assert not moved
    assert not still.update(1.6, 2 * STILL_AFTER)


def test_the_window_follows_tau() -> None:
    """A rarer alarm needs more labels to be judged by, within bounds."""
    assert [window_for(tau) for tau in (0.5, 0.05, 0.01, 1e-6)] == [500, 1000, 5000, 50_000]
