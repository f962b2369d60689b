"""Late labels."""

import numpy as np
import pytest
from numpy.typing import NDArray

from npstream.model import Model, Op, Operations, Outcome, Params
from npstream.study.delayed import stream_delayed


def problem(n: int, seed: int = 3) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1, -1).astype(np.int8)
    return (rng.normal(0, 1, (n, 2)) + 1.2 * (y == 1)[:, None]).astype(np.float32), y


@pytest.mark.parametrize("charge", ["label", "issue"])
def test_no_delay_equals_immediate_learning(charge: str) -> None:
    """With delay 0 every outcome and the final state are those of test-then-train, byte for byte."""
    x, y = problem(9000)
    params = Params(d=2, D=20, tau=0.1, charge=charge)  # type: ignore[arg-type]
    late, immediate = Model.create(params), Model.create(params)
    found, expected = stream_delayed(late, x, y, 0), immediate.stream(x, y)

    for name, column in found._asdict().items():
        np.testing.assert_array_equal(column, getattr(expected, name), name)
    assert late.digest() == immediate.digest()


@pytest.mark.parametrize("delay", [1, 50, 700])
def test_labels_arrive_exactly_that_much_later(delay: int) -> None:
    """Decisions equal those of a loop that scores one event, then learns the one `delay` events back."""
    x, y = problem(1500)
    params = Params(d=2, D=20, tau=0.1)
    model, plain = Model.create(params), Model.create(params)
    found = stream_delayed(model, x, y, delay)

    decided = np.zeros(len(x), np.int8)
    for i in range(len(x)):
        decided[i] = _one(plain, Op.SCORE, x, y, i, decided).decision[0]
        if i >= delay:
            _one(plain, Op.LEARN, x, y, i - delay, decided)
    np.testing.assert_array_equal(found.decision, decided)
    assert model.digest() == plain.digest()
    assert model.t == len(x) - delay
    assert model.outstanding == (decided[len(x) - delay :] == 1).sum()


def test_negative_delay_is_refused() -> None:
    """Labels cannot come before their events."""
    x, y = problem(10)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        stream_delayed(Model.create(Params(d=2)), x, y, -1)


def _one(
    model: Model, op: Op, x: NDArray[np.float32], y: NDArray[np.int8], i: int, decided: NDArray[np.int8]
) -> Outcome:
    row = slice(i, i + 1)
    operation = Operations(np.array([op], np.int8), x[row], np.zeros(1), y[row], np.array([i], np.int32))
    return model.run(operation, decided)
