"""Synthetic streams that change while they run, each with its recipe. Their order is their point.

All but `imb1` and `imb01` start from the same problem: 8 features, two classes of
four unit Gaussians each, centres drawn from N(0, 0.81 I), half of the events targets.
"Half way" is event n // 2.
"""

import numpy as np
from numpy.typing import NDArray

from npstream.study.generators import Recipe, Xy, labels

_D = 8
_SPREAD = 0.9
Centres = NDArray[np.float64]


def flip(rng: np.random.Generator, n: int) -> Xy:
    """Labels swapped half way: what was a target is a non-target from then on."""
    x, y = _mixture(rng, _centres(rng), labels(rng, n, 0.5))
    y[n // 2 :] *= -1
    return _finish(x, y)


def jump(rng: np.random.Generator, n: int) -> Xy:
    """All centres are drawn again half way."""
    before, after, y = _centres(rng), _centres(rng), labels(rng, n, 0.5)
    x, _ = _mixture(rng, before, y)
    x[n // 2 :] = _mixture(rng, after, y[n // 2 :])[0]
    return _finish(x, y)


def scalejump(rng: np.random.Generator, n: int) -> Xy:
    """The unit of every feature changes half way: all values times 3 from then on."""
    x, y = _mixture(rng, _centres(rng), labels(rng, n, 0.5))
    x[n // 2 :] *= 3
    return _finish(x, y)


def negshift(rng: np.random.Generator, n: int) -> Xy:
    """Non-targets swing along one random direction, amplitude 1.5, four periods over the stream."""
    x, y = _mixture(rng, _centres(rng), labels(rng, n, 0.5))
    direction = rng.normal(size=_D)
    swing = 1.5 * np.sin(8 * np.pi * np.arange(n) / n)
    x += np.where(y == -1, swing, 0.0)[:, None] * direction / np.linalg.norm(direction)
    return _finish(x, y)


def rot(rng: np.random.Generator, n: int) -> Xy:
    """The feature space turns once around over the stream, in the planes (0, 1), (2, 3), (4, 5) and (6, 7)."""
    x, y = _mixture(rng, _centres(rng), labels(rng, n, 0.5))
    angle = 2 * np.pi * np.arange(n) / n
    even, odd = x[:, 0::2].copy(), x[:, 1::2].copy()
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x[:, 0::2], x[:, 1::2] = cos * even - sin * odd, sin * even + cos * odd
    return _finish(x, y)


def prior(rng: np.random.Generator, n: int) -> Xy:
    """The share of targets falls evenly from 30% to 1%."""
    y = np.where(rng.random(n) < np.linspace(0.30, 0.01, n), 1, -1).astype(np.int8)
    x, y = _mixture(rng, _centres(rng), y)
    return _finish(x, y)


def imb1(rng: np.random.Generator, n: int) -> Xy:
    """Nothing changes, 1% targets."""
    return _finish(*_mixture(rng, _centres(rng), labels(rng, n, 0.01)))


def imb01(rng: np.random.Generator, n: int) -> Xy:
    """Nothing changes, 0.1% targets."""
    return _finish(*_mixture(rng, _centres(rng), labels(rng, n, 0.001)))


def _centres(rng: np.random.Generator) -> Centres:
    return rng.normal(0, _SPREAD, (2, 4, _D))


def _mixture(
    rng: np.random.Generator, centres: Centres, y: NDArray[np.int8]
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    n = y.shape[0]
    return centres[(y + 1) // 2, rng.integers(0, 4, n)] + rng.normal(0, 1, (n, _D)), y


def _finish(x: NDArray[np.float64], y: NDArray[np.int8]) -> Xy:
    return np.ascontiguousarray(x, np.float32), y


DRIFTING: dict[str, Recipe] = {
    "flip": Recipe(flip, 40_000, ordered=True),
    "jump": Recipe(jump, 40_000, ordered=True),
    "scalejump": Recipe(scalejump, 40_000, ordered=True),
    "negshift": Recipe(negshift, 40_000, ordered=True),
    "rot": Recipe(rot, 40_000, ordered=True),
    "prior": Recipe(prior, 40_000, ordered=True),
    "imb1": Recipe(imb1, 40_000, ordered=True),
    "imb01": Recipe(imb01, 150_000, ordered=True),
}
