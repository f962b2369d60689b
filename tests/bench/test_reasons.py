"""The benchmark of reasons."""

import itertools

from npstream.bench.reasons import bench_reasons


def test_both_ways_are_measured_at_the_rate_of_alarms() -> None:
    """With a clock that ticks once a reading both take as long; about so many events are alarms as are asked for."""
    ticks = itertools.count()
    row = bench_reasons(events=3_000, rounds=2, tau=0.1, clock=lambda: float(next(ticks)))

    assert 0.05 < row["alarm_share"] <= 0.11
    assert (row["us_per_event"], row["us_with_reasons"], row["throughput"]) == (1000.0, 1000.0, 1.0)
