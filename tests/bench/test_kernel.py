"""The plain form and the benchmark that uses it."""

import itertools

import numpy as np
import pytest

from npstream.bench.kernel import PRESETS, SHAPES, bench_kernel
from npstream.bench.plain import plain_of
from npstream.model import Model, Params
from npstream.model.params import Preset
from tests.model.streams import shells


@pytest.mark.parametrize("preset", PRESETS)
def test_plain_form_is_the_same_learner(preset: Preset) -> None:
    """Over 3,000 events the plain form decides as the kernel does, with all numbers within 1e-9."""
    params = Params(preset=preset, d=4, D=24, tau=0.05, budget=3)
    x, y = shells(3000, 4, seed=5)
    got = Model.create(params).stream(x, y)
    plain = plain_of(params)
    rows = [plain.step(row, int(label)) for row, label in zip(x, y, strict=True)]

    for name in ("decision", "reason", "t"):
        assert [getattr(row, name) for row in rows] == getattr(got, name).tolist()
    for name in ("score", "threshold", "gamma", "fpr"):
        np.testing.assert_allclose([getattr(row, name) for row in rows], getattr(got, name), rtol=0, atol=1e-9)


def test_bench_has_a_row_for_every_preset_and_shape() -> None:
    """Rows name preset, d and D, and the ratio is that of the two rates."""
    ticks = itertools.count()
    rows = bench_kernel(events=40, plain_events=20, rounds=1, clock=lambda: float(next(ticks)))

    assert [(row["preset"], row["d"], row["D"]) for row in rows] == [(p, *shape) for p in PRESETS for shape in SHAPES]
    assert {(row["events_per_s"], row["plain_events_per_s"], row["ratio"]) for row in rows} == {(40, 20, 2.0)}
