"""The random beginning of a network: directions drawn from a kernel's spectrum, weights near zero.

By Bochner's theorem the directions' density is the Fourier transform of the
kernel (eqs. 7-9). With s = sqrt(2 g), a direction is s times

    rbf        N(0, I)                            exp(-g |u|^2)
    laplacian  independent Cauchy coordinates     exp(-s |u|_1)
    matern     multivariate Student t, 3 dof      (1 + sqrt(3) s |u|) exp(-sqrt(3) s |u|)

`plus` gives unit j the bandwidth g times 1, 4 or 16 in turn, so that none
has to be chosen. Draw numbers are part of the format: the same key gives the
same network forever.
"""

import math

import numpy as np

from npstream.arrays import Floats
from npstream.jit import jit
from npstream.model.generator import cauchy, normal

RBF, LAPLACIAN, MATERN = range(3)

WEIGHT_SD = 1e-4
"""Weights and bias begin around zero."""

_BANDWIDTHS = (1.0, 4.0, 16.0)
_MATERN_DOF = 3


@jit
def draw_directions(key: np.uint64, kernel: int, g: float, spread: bool, alpha: Floats) -> int:
    """Fill `alpha`, float64[d, D]; returns the number of draws taken. `spread` asks for several bandwidths."""
    d, units = alpha.shape
    draws = 0
    for j in range(units):
        scale = math.sqrt(2.0 * g * (_BANDWIDTHS[j % 3] if spread else 1.0))
        for i in range(d):
            alpha[i, j] = scale * (cauchy(key, draws) if kernel == LAPLACIAN else normal(key, draws))
            draws += 2
    return _divide_by_chi(key, draws, alpha) if kernel == MATERN else draws


@jit
def draw_weights(key: np.uint64, draws: int, wc: Floats, ws: Floats) -> int:
    """Fill the weights of all units from draw number `draws` on; returns the number of draws taken so far."""
    for j in range(wc.size):
        wc[j] = WEIGHT_SD * normal(key, draws)
        ws[j] = WEIGHT_SD * normal(key, draws + 2)
        draws += 4
    return draws


@jit
def _divide_by_chi(key: np.uint64, draws: int, alpha: Floats) -> int:
    """Turn normal directions into Student t directions."""
    for j in range(alpha.shape[1]):
        factor = math.sqrt(1.0 * _MATERN_DOF) / _chi(key, draws, _MATERN_DOF)
        draws += 2 * _MATERN_DOF
        for i in range(alpha.shape[0]):
            alpha[i, j] *= factor
    return draws


@jit
def _chi(key: np.uint64, draws: int, dof: int) -> float:
    """The length of a normal vector of `dof` coordinates."""
    total = 0.0
    for k in range(dof):
        value = normal(key, draws + 2 * k)
        total += value * value
    return math.sqrt(total)
