"""The benchmark of observations that wait."""

import itertools

from npstream.bench.waiting import bench_waiting


def test_checkpoints_write_about_what_parking_costs() -> None:
    """All of them wait after a restore; in a full buffer an event writes at most twice what it is parked with."""
    ticks = itertools.count()
    row = bench_waiting(50_000, 8, clock=lambda: float(next(ticks)))

    assert row["waiting"] == 50_000
    parked = 4 * 8 + 4 * 8  # features in four bytes each; id, offset, time, decision and label
    assert 4 * 8 < row["filling"] <= 2 * parked
    assert 4 * 8 < row["full"] <= 2 * parked
    assert (row["checkpoint_ms"], row["restore_s"]) == (1000.0, 1.0)
