"""Running standardisation of features, and the feature range for one-class learning.

State per feature: mean, variance and the inverse standard deviation derived
from it; lowest and highest winsorised value in one-class mode.
"""

import math

from npstream.arrays import Floats
from npstream.jit import jit
from npstream.model.lanes import lane_sum

# One outlier must neither reach a sinusoid's far phase nor blow up the moments.
_CLIP = 5.0
_WINSOR = 8.0
# The moments forget over this many events: a stream has no end, and units and sensors change.
_MEMORY = 10_000
# Deviations of fewer values than this say nothing about what an outlier is.
_WINSOR_FROM = 10


@jit
def standardise(x: Floats, mean: Floats, inv_sd: Floats, z: Floats) -> None:
    """z-score of x, clipped to +-5; all zero before the first `absorb`."""
    for i in range(z.size):
        z[i] = min(max((x[i] - mean[i]) * inv_sd[i], -_CLIP), _CLIP)


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
def absorb(x: Floats, n: int, mean: Floats, var: Floats, inv_sd: Floats) -> None:
    """Take x into the moments as the n-th (Welford), winsorised at 8 standard deviations."""
    limit = _WINSOR if n > _WINSOR_FROM else math.inf
    rate = 1.0 / min(n, _MEMORY)
    for i in range(mean.size):
        delta = _winsorised(x[i] - mean[i], inv_sd[i], limit)
        step = rate * delta
        mean[i] += step
        var[i] += rate * (delta * (delta - step) - var[i])
        # A column that is constant so far must not turn its last bit into a feature.
        floor = max(1e-12, 1e-6 * abs(mean[i]))
        inv_sd[i] = 1.0 / max(math.sqrt(var[i]), floor)


@jit
def widen(x: Floats, n: int, mean: Floats, inv_sd: Floats, low: Floats, high: Floats) -> None:
    """Take x into the feature range, winsorised like the moments and before them; the first begins it."""
    limit = _WINSOR if n > _WINSOR_FROM else math.inf
    for i in range(low.size):
        value = mean[i] + _winsorised(x[i] - mean[i], inv_sd[i], limit)
        low[i] = value if n == 1 else min(low[i], value)
        high[i] = value if n == 1 else max(high[i], value)


@jit
def _winsorised(delta: float, inv_sd: float, limit: float) -> float:
    return delta if abs(delta * inv_sd) <= limit else math.copysign(limit / inv_sd, delta)
