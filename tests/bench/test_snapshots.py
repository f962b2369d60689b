"""The benchmark of saving and restoring a state."""

import itertools

import pytest

from npstream.bench import snapshots
from npstream.model import Model, Params


def test_bench_has_a_row_for_every_number_of_features() -> None:
    """Bytes are those of a model of that size, and of more than the model in a checkpoint; times are the clock's."""
    ticks = itertools.count()
    rows = snapshots.bench_snapshots(events=40, rounds=1, clock=lambda: float(next(ticks)))

    assert [(row["d"], row["D"]) for row in rows] == [(d, 100) for d in snapshots.FEATURES]
    for row in rows:
        assert row["model_bytes"] == len(Model.create(Params(d=row["d"], D=100)).to_bytes())
        assert row["checkpoint_bytes"] > row["model_bytes"]
        assert (row["checkpoint_us"], row["restore_us"]) == (1e6, 1e6)


@pytest.mark.parametrize(("d", "most"), [(8, 40_000), (29, 70_000), (120, 200_000)])
def test_a_state_stays_small(d: int, most: int) -> None:
    """A model with 100 units has at most 40, 70 and 200 kB: what a checkpoint writes and a restore reads."""
    assert len(Model.create(Params(d=d, D=100)).to_bytes()) <= most
