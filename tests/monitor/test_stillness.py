"""Values that should move, and do not."""

from npstream.monitor.stillness import STILL_AFTER, Stillness


def test_stillness_needs_many_labels_without_any_movement() -> None:
    """A value is pinned after a thousand labels at one and the same number, and free again when it moves."""
    still = Stillness()
    verdicts = [still.update(1.5, 0), still.update(1.5, STILL_AFTER - 1), still.update(1.5, STILL_AFTER)]
    moved = still.update(1.6, STILL_AFTER + 1)

    assert verdicts == [False, False, True]
    assert not moved
    assert not still.update(1.6, 2 * STILL_AFTER)
