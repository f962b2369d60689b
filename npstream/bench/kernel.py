"""Speed of the kernel beside the plain form, measured in the same run."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from npstream.bench.plain import plain_of
from npstream.model import Model, Op, Operations
from npstream.model.params import Params, Preset

SHAPES = ((2, 100), (8, 100), (29, 100), (54, 100), (120, 100))
PRESETS: tuple[Preset, ...] = ("plus", "paper")

Clock = Callable[[], float]


def bench_kernel(
    *,
    events: int = 20_000,
    plain_events: int = 1_000,
    rounds: int = 5,
    clock: Clock = time.perf_counter,
) -> list[dict[str, Any]]:
    """One row per preset and shape: `preset`, `d`, `D`, `events_per_s`, `plain_events_per_s`, `ratio`.

    Every event is scored, decided and learned from. The best of `rounds` counts.
    """
    return [_row(preset, d, D, events, plain_events, rounds, clock) for preset, (d, D) in _cases()]


def _cases() -> Iterator[tuple[Preset, tuple[int, int]]]:
    for preset in PRESETS:
        for shape in SHAPES:
            yield preset, shape


def _row(preset: Preset, d: int, D: int, events: int, plain_events: int, rounds: int, clock: Clock) -> dict[str, Any]:
    params = Params(preset=preset, d=d, D=D, tau=0.05)
    kernel, plain = _kernel_pass(params, events), _plain_pass(params, plain_events)
    kernel()
    kernel_s, plain_s = fastest([kernel, plain], rounds, clock)
    return {
        "preset": preset,
        "d": d,
        "D": D,
        "events_per_s": round(events / kernel_s),
        "plain_events_per_s": round(plain_events / plain_s),
        "ratio": round(events / kernel_s / (plain_events / plain_s), 1),
    }


def fastest(work: Sequence[Callable[[], object]], rounds: int, clock: Clock) -> list[float]:
    """Seconds of each in its best round; all take turns, so that other load on the machine disturbs them alike."""
    best = [math.inf] * len(work)
    for _ in range(rounds):
        for at, each in enumerate(work):
            began = clock()
            each()
            best[at] = min(best[at], clock() - began)
    return best


def _kernel_pass(params: Params, n: int) -> Callable[[], None]:
    model = Model.create(params)
    x, y = clouds(n, params.d)
    operations = Operations(np.full(n, Op.SCORE_LEARN, np.int8), x, np.zeros(n), y, np.full(n, -1, np.int32))
    decided = np.empty(0, np.int8)

    def work() -> None:
        model.run(operations, decided)

    return work


def _plain_pass(params: Params, n: int) -> Callable[[], None]:
    plain = plain_of(params)
    x, y = clouds(n, params.d)
    labels = y.tolist()

    def work() -> None:
        for row, label in zip(x, labels, strict=True):
            plain.step(row, label)

    return work


def clouds(n: int, d: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    """Two overlapping clouds, three negatives to a target."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.25, 1, -1).astype(np.int8)
    x = rng.standard_normal((n, d)) + 0.5 * (y > 0)[:, None]
    return x.astype(np.float32), y
