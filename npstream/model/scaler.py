"""Running standardisation of features, and the feature range for one-class learning.

State per number: how many values were seen, mean, variance and the inverse
standard deviation derived from it; lowest and highest winsorised value in
one-class mode. A missing value (NaN) changes nothing and is 0 once standardised.
"""

import math
from typing import NamedTuple

from npstream.arrays import Floats
from npstream.jit import jit
from npstream.model.lanes import lane_sum

CLIP = 5.0
"""Standardised values end here, so that no outlier reaches a sinusoid's far phase."""

# One outlier must not blow up the moments.
_WINSOR = 8.0
# The moments forget over this many events: a stream has no end, and units and sensors change.
_MEMORY = 10_000
# Deviations of fewer values than this say nothing about what an outlier is.
_WINSOR_FROM = 10


class Scaler(NamedTuple):
    """Moments and range of the features; empty where unused."""

    seen: Floats
    mean: Floats
    var: Floats
    inv_sd: Floats
    clip: Floats
    low: Floats
    high: Floats


@jit
def standardise(x: Floats, mean: Floats, inv_sd: Floats, clip: Floats, z: Floats) -> None:
    """z-score of x, clipped; 0 before the first value."""
    for i in range(z.size):
        value = (x[i] - mean[i]) * inv_sd[i] if x[i] == x[i] else 0.0
        z[i] = min(max(value, -clip[i]), clip[i])


@jit
def to_unit_norm(x: Floats, z: Floats) -> None:
    """x divided by its Euclidean norm; a zero vector stays zero."""
    for i in range(z.size):
        z[i] = x[i] * x[i]
    norm = math.sqrt(lane_sum(z, z.size))
    inverse = 1.0 / norm if norm > 0.0 else 0.0
    for i in range(z.size):
        z[i] = x[i] * inverse


@jit
def absorb(x: Floats, seen: Floats, mean: Floats, var: Floats, inv_sd: Floats) -> None:
    """Take x into the moments (Welford), winsorised at 8 standard deviations."""
    for i in range(mean.size):
        there = x[i] == x[i]
        n = seen[i] + 1.0
        limit = _WINSOR if n > _WINSOR_FROM else math.inf
        delta = _winsorised(x[i] - mean[i], inv_sd[i], limit) if there else 0.0
        rate = 1.0 / min(n, _MEMORY) if there else 0.0
        seen[i] = n if there else seen[i]
        step = rate * delta
        mean[i] += step
        var[i] += rate * (delta * (delta - step) - var[i])
        # A column that is constant so far must not turn its last bit into a feature.
        floor = max(1e-12, 1e-6 * abs(mean[i]))
        inv_sd[i] = 1.0 / max(math.sqrt(var[i]), floor) if there else inv_sd[i]


@jit
def widen(x: Floats, seen: Floats, mean: Floats, inv_sd: Floats, low: Floats, high: Floats) -> None:
    """Take x into the feature range, winsorised like the moments and before them; the first value begins it."""
    for i in range(low.size):
        if x[i] != x[i]:
            continue
        limit = _WINSOR if seen[i] >= _WINSOR_FROM else math.inf
        value = mean[i] + _winsorised(x[i] - mean[i], inv_sd[i], limit)
        low[i] = value if seen[i] == 0 else min(low[i], value)
        high[i] = value if seen[i] == 0 else max(high[i], value)


@jit
def _winsorised(delta: float, inv_sd: float, limit: float) -> float:
    return delta if abs(delta * inv_sd) <= limit else math.copysign(limit / inv_sd, delta)
