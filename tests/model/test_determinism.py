"""The same events give the same bytes, however batched, in any process, on any processor."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.model import Model, Params, kernel
from tests.model.digest_of_run import RUNS, digest
from tests.model.streams import delayed

ROOT = Path(__file__).parents[2]

GOLDEN = {
    "plus": "f5d2c3cae03af2a4c4104e74a5dc1297",
    "plus-one-class": "392ebe03b623f04fe0f1be7ac6313001",
    "plus-mixed": "e09a96fc654cca47b572b61a574dc5c9",
    "paper": "16b36a8487bea24ba4a4adde5a8ca0b2",
    "external": "f34b1e1efc772d90d5e5a2814ab563fc",
    "plus-alarm-rate": "d5c6626f6610029fbfada257c6b3566c",
}
"""A change here is a change of the arithmetic: raise `ALGORITHM` with it."""


@pytest.mark.parametrize("name", RUNS)
def test_golden_digests(name: str) -> None:
    """The state after a fixed stream is what this algorithm version has always given."""
    assert digest(name) == GOLDEN[name]


@pytest.mark.parametrize("size", [1, 7, 500])
@pytest.mark.parametrize("name", RUNS)
def test_batch_size_leaves_no_trace(name: str, size: int) -> None:
    """Batches of 1, 7 and 500 end in the state of one batch."""
    assert digest(name, sizes=[size] * 4000) == digest(name)


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(0, 90), max_size=20))
def test_any_split_gives_the_same_rows_and_state(sizes: list[int]) -> None:
    """Decisions, scores and state do not depend on how a sequence is cut."""
    params = Params(d=2, D=9, tau=0.1)
    whole, cut = Model.create(params), Model.create(params)
    feed = delayed(params, 300, seed=4)
    expected, actual = feed.run(whole), feed.run(cut, sizes=sizes)

    for name in ("decision", "reason", "score", "threshold", "gamma", "fpr", "t"):
        np.testing.assert_array_equal(getattr(expected, name), getattr(actual, name))
    assert whole.to_bytes() == cut.to_bytes()


def test_read_only_and_strided_rows_compile_nothing_new() -> None:
    """Arrays straight from a buffer or a slice run through the code that is there, with the same bytes."""
    params = Params(d=2, D=9, tau=0.1)
    feed = delayed(params, 100, seed=4)
    plain, odd = Model.create(params), Model.create(params)
    feed.run(plain)
    compiled = len(getattr(kernel.run, "signatures", ()))
    operations = feed.operations
    x = np.frombuffer(operations.x.tobytes(), np.float32).reshape(operations.x.shape)
    y = np.repeat(operations.y, 2)[::2]
    odd.run(operations._replace(x=x, y=y), np.zeros(feed.slots, np.int8))

    assert odd.to_bytes() == plain.to_bytes()
    assert len(getattr(kernel.run, "signatures", ())) == compiled


def _digests_elsewhere(cache: Path, **environment: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.model.digest_of_run"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)} | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=580,
        check=True,
    )
    return {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_another_process_gives_the_same_bytes(tmp_path: Path) -> None:
    """A fresh process with an empty code cache ends in the same state."""
    assert _digests_elsewhere(tmp_path) == {name: digest(name) for name in RUNS}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="asks for a plain x86-64")
def test_a_processor_without_features_gives_the_same_bytes(tmp_path: Path) -> None:
    """Compiled for the plainest x86-64, every extension off, the run ends in the same state."""
    plain = _digests_elsewhere(tmp_path, NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="")

    assert plain == {name: digest(name) for name in RUNS}
