"""A counter-based generator: draw number n of a key is a pure function of both.

The mixer is splitmix64's. There is no hidden state: who draws keeps the counter.
"""

import math

import numpy as np

from npstream.jit import jit
from npstream.model.maths import log, sincos

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TWO_PI = 6.283185307179586


@jit
def mix(word: np.uint64) -> np.uint64:
    """splitmix64's finaliser: a bijection of 64-bit words without visible pattern."""
    word = (word ^ (word >> _30)) * _MIX_1
    word = (word ^ (word >> _27)) * _MIX_2
    return word ^ (word >> _31)


@jit
def key_of(seed: np.uint64, stream: np.uint64) -> np.uint64:
    """The key of one stream under one seed."""
    return mix(mix(seed + _GOLDEN) ^ (stream * _GOLDEN))


@jit
def word_of(key: np.uint64, value: int, place: int) -> np.uint64:
    """The hash of a value at a place: a random word for each pair of them, always the same one."""
    return mix(mix(key + np.uint64(value + 1) * _GOLDEN) ^ (np.uint64(place) * _GOLDEN))


@jit
def uniform(key: np.uint64, counter: int) -> float:
    """Draw number `counter`, uniform on the open interval (0, 1)."""
    word = mix(key + np.uint64(counter + 1) * _GOLDEN)
    return (np.float64(word >> _11) + 0.5) * 1.1102230246251565e-16


@jit
def normal(key: np.uint64, counter: int) -> float:
    """A standard normal from draws `counter` and `counter + 1` (Box-Muller)."""
    _, cosine = sincos(_TWO_PI * uniform(key, counter + 1))
    return math.sqrt(-2.0 * log(uniform(key, counter))) * cosine


@jit
def cauchy(key: np.uint64, counter: int) -> float:
    """A standard Cauchy variate from draw `counter`: the tangent of a uniform angle."""
    sine, cosine = sincos(0.5 * _TWO_PI * (uniform(key, counter) - 0.5))
    return sine / cosine
