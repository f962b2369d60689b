"""The random beginning of a network: directions drawn from a kernel's spectrum, weights near zero.

By Bochner's theorem the directions' density is the Fourier transform of the
kernel (eqs. 7-9). With s = sqrt(2 g), a direction is s times

    rbf        N(0, I)                            exp(-g |u|^2)
    laplacian  independent Cauchy coordinates     exp(-s |u|_1)
    matern     multivariate Student t, 3 dof      (1 + sqrt(3) s |u|) exp(-sqrt(3) s |u|)

`plus` draws rbf and matern directions in orthogonal blocks, which covers the
space more evenly, and gives unit j the bandwidth g times 1/4, 1, 4 or 16 in turn.
Draw numbers are part of the format: the same key gives the same network for ever.
"""

import math

import numpy as np

from npstream.model.generator import cauchy, normal
from npstream.model.jit import jit
from npstream.model.network import BIAS, Network
from npstream.model.threshold import Floats

RBF, LAPLACIAN, MATERN = range(3)

_WEIGHT_SD = 1e-4
_BANDWIDTHS = (0.25, 1.0, 4.0, 16.0)
_MATERN_DOF = 3


@jit
def draw_network(key: np.uint64, kernel: int, g: float, blocks: bool, net: Network, rows: Floats) -> int:
    """Fill alpha, wc, ws and the bias of `net`; answers the number of draws taken.

    `blocks` asks for orthogonal blocks and the spread of bandwidths. `rows` is
    scratch, float64[D, d].
    """
    d, units = net.alpha.shape
    draws = _draw_directions(key, kernel, rows)
    if blocks and kernel != LAPLACIAN:
        draws = _orthogonalise(key, draws, rows)
    if kernel == MATERN:
        draws = _divide_by_chi(key, draws, rows)
    for j in range(units):
        spread = _BANDWIDTHS[j % 4] if blocks else 1.0
        scale = math.sqrt(2.0 * g * spread)
        for i in range(d):
            net.alpha[i, j] = scale * rows[j, i]
    return _draw_weights(key, draws, net)


@jit
def _draw_directions(key: np.uint64, kernel: int, rows: Floats) -> int:
    units, d = rows.shape
    draws = 0
    for j in range(units):
        for i in range(d):
            rows[j, i] = cauchy(key, draws) if kernel == LAPLACIAN else normal(key, draws)
            draws += 2
    return draws


@jit
def _orthogonalise(key: np.uint64, draws: int, rows: Floats) -> int:
    """Gram-Schmidt (modified, fixed order) in blocks of d rows; lengths drawn anew as those of normal vectors."""
    units, d = rows.shape
    for j in range(units):
        for k in range(j - j % d, j):
            _subtract(rows, j, k, _inner(rows, j, k))
        _stretch(rows, j, 1.0 / math.sqrt(_inner(rows, j, j)))
    for j in range(units):
        _stretch(rows, j, _chi(key, draws, d))
        draws += 2 * d
    return draws


@jit
def _divide_by_chi(key: np.uint64, draws: int, rows: Floats) -> int:
    """Turn normal rows into Student t rows."""
    for j in range(rows.shape[0]):
        _stretch(rows, j, math.sqrt(1.0 * _MATERN_DOF) / _chi(key, draws, _MATERN_DOF))
        draws += 2 * _MATERN_DOF
    return draws


@jit
def _chi(key: np.uint64, draws: int, dof: int) -> float:
    """The length of a normal vector of `dof` coordinates."""
    total = 0.0
    for k in range(dof):
        value = normal(key, draws + 2 * k)
        total += value * value
    return math.sqrt(total)


@jit
def _inner(rows: Floats, j: int, k: int) -> float:
    total = 0.0
    for i in range(rows.shape[1]):
        total += rows[j, i] * rows[k, i]
    return total


@jit
def _subtract(rows: Floats, j: int, k: int, times: float) -> None:
    for i in range(rows.shape[1]):
        rows[j, i] -= times * rows[k, i]


@jit
def _stretch(rows: Floats, j: int, factor: float) -> None:
    for i in range(rows.shape[1]):
        rows[j, i] *= factor


@jit
def _draw_weights(key: np.uint64, draws: int, net: Network) -> int:
    for j in range(net.wc.size):
        net.wc[j] = _WEIGHT_SD * normal(key, draws)
        net.ws[j] = _WEIGHT_SD * normal(key, draws + 2)
        draws += 4
    net.head[BIAS] = _WEIGHT_SD * normal(key, draws)
    return draws + 2
