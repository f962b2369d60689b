"""The kernel against the oracle, compiled and interpreted."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from npstream.model import Model, Params
from tests import naive
from tests.model.against_oracle import Gap, cases, compare

Vector = npt.NDArray[np.float64]

CASES = cases()
CLOSE = 1e-9
CLOSE_WITH_TABLES = 1e-6
"""Cells are float32: a last bit that falls the other way once moves a score by about 1e-8."""


def close(name: str) -> float:
    """How near kernel and oracle must be in a case."""
    return CLOSE_WITH_TABLES if name.startswith("plus") else CLOSE


@pytest.mark.parametrize("name", CASES)
def test_compiled_kernel_follows_the_oracle(name: str, pytestconfig: pytest.Config) -> None:
    """Over 10,000 events (500 in a quick run) no decision, reason or counter differs; numbers are close."""
    gap = compare(CASES[name], 500 if pytestconfig.getoption("--quick") else 10_000)

    assert gap.differing == 0
    assert gap.largest < close(name)


@pytest.mark.slow
def test_interpreted_kernel_follows_the_oracle() -> None:
    """With the compiler switched off the same functions follow the oracle over 500 events in every case."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.model.against_oracle", "500"],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=170,
        check=True,
    )
    gaps = {}
    for line in done.stdout.splitlines():
        name, rows, differing, largest = line.split()
        gaps[name] = Gap(int(rows), int(differing), float(largest))

    assert gaps.keys() == CASES.keys()
    assert {name: gap for name, gap in gaps.items() if gap.differing or gap.largest >= close(name)} == {}


COLD = [
    Params(d=1, D=3),
    Params(d=3, D=10, seed=2**63 - 1),
    Params(d=8, D=20, seed=5),
    Params(d=12, D=7, kernel="matern"),
    Params(d=4, D=9, kernel="laplacian"),
    Params(preset="paper", d=5, D=11, g=0.3),
    Params(preset="paper", d=5, D=11, kernel="laplacian"),
    Params(preset="paper", d=5, D=11, kernel="matern", seed=9),
]


@pytest.mark.parametrize("params", COLD, ids=lambda p: f"{p.preset}-{p.kernel}-{p.d}x{p.D}")
@pytest.mark.parametrize("stream", [0, 1, 977])
def test_cold_start_is_the_oracles(params: Params, stream: int) -> None:
    """Directions, weights, bias and the number of draws agree with plain integers and libm to 1e-12."""
    start = Model.create(params, stream).arrays()
    oracle = naive.Naive(params, stream)

    scale = np.abs(oracle.alpha).max()
    np.testing.assert_allclose(start["alpha"].T, oracle.alpha, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(start["wc"], oracle.wc, rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(start["ws"], oracle.ws, rtol=1e-12, atol=1e-16)
    assert start["head"][1] == pytest.approx(oracle.b, rel=1e-12)
    assert start["clock"][4] == oracle.draws.taken


def test_streams_and_seeds_start_apart() -> None:
    """Every (seed, stream) has its own directions."""
    starts = {Model.create(Params(d=2, D=4, seed=seed), stream).digest() for seed in range(5) for stream in range(5)}

    assert len(starts) == 25


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        ("rbf", lambda u, s: np.exp(-0.5 * s**2 * (u**2).sum())),
        ("laplacian", lambda u, s: np.exp(-s * np.abs(u).sum())),
        ("matern", lambda u, s: (1 + np.sqrt(3) * s * np.sqrt((u**2).sum())) * np.exp(-np.sqrt(3 * (u**2).sum()) * s)),
    ],
)
def test_random_features_approximate_their_kernel(kernel: str, value: Callable[[Vector, float], float]) -> None:
    """The mean of cos(alpha'u) over many directions is the kernel at u (Bochner, eqs. 7-9)."""
    g = 0.2
    params = Params.from_dict({"preset": "paper", "d": 2, "D": 50_000, "g": g, "kernel": kernel})
    alpha = Model.create(params).arrays()["alpha"]
    for u in (np.array([0.3, -0.2]), np.array([1.5, 1.0]), np.array([-2.0, 0.5])):
        approximated = np.cos(u @ alpha).mean()

        assert abs(approximated - value(u, np.sqrt(2 * g))) < 0.02
