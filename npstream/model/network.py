"""The network: D random Fourier features whose directions are trained, and a linear output.

Unit j has a direction alpha[:, j], a cosine weight wc[j] and a sine weight ws[j]:

    f(z) = scale * sum_j (wc_j cos(alpha_j'z) + ws_j sin(alpha_j'z)) + b       (eqs. 5, 8, 9)

alpha is stored as d rows of D contiguous units, so that every loop over units is
vector code. Equation numbers are those of Can and Ozkan (2020).
"""

import math
from typing import NamedTuple

from npstream.arrays import Floats
from npstream.jit import jit, jit_inline
from npstream.model.lanes import lane_sum
from npstream.model.maths import sincos

# head: Lagrange multiplier, output bias and its accumulator.
GAMMA, BIAS, BIAS_ACC = range(3)
HEADS = 3

# Accumulators forget over about 10,000 events, so that learning can start over after a change.
_FORGET = 1.0 - 1e-4
# Start of the accumulators: small enough not to slow the first steps, large enough to divide by.
_ACC_FLOOR = 1e-8


class Network(NamedTuple):
    """Weights and Adagrad accumulators; the accumulators are empty where plain SGD trains."""

    alpha: Floats
    wc: Floats
    ws: Floats
    acc_c: Floats
    acc_s: Floats
    acc_a: Floats
    head: Floats


class Scratch(NamedTuple):
    """Reused memory of one event; nothing in it outlives the event. `part` is what network and tables score."""

    part: Floats
    x: Floats
    z: Floats
    squares: Floats
    cos: Floats
    sin: Floats
    t: Floats


@jit_inline
def forward(net: Network, scale: float, work: Scratch) -> float:
    """The score of work.z before the bias; leaves cosines and sines in `work` for a gradient step."""
    _angles(net.alpha, work.z, work.t)
    _features(net.wc, net.ws, work.cos, work.sin, work.t)
    return float(scale * lane_sum(work.t, work.t.size))


@jit
def _angles(alpha: Floats, z: Floats, t: Floats) -> None:
    """alpha'z of every unit. Several features at a time spare memory traffic and keep the order of the sum."""
    d, units = alpha.shape
    first = d % 4
    if first == 1:
        for j in range(units):
            t[j] = alpha[0, j] * z[0]
    elif first == 2:
        for j in range(units):
            t[j] = alpha[0, j] * z[0] + alpha[1, j] * z[1]
    elif first == 3:
        for j in range(units):
            t[j] = (alpha[0, j] * z[0] + alpha[1, j] * z[1]) + alpha[2, j] * z[2]
    else:
        for j in range(units):
            t[j] = 0.0
    for i in range(first, d, 4):
        z0, z1, z2, z3 = z[i], z[i + 1], z[i + 2], z[i + 3]
        for j in range(units):
            t[j] = (((t[j] + alpha[i, j] * z0) + alpha[i + 1, j] * z1) + alpha[i + 2, j] * z2) + alpha[i + 3, j] * z3


@jit
def _features(wc: Floats, ws: Floats, cos: Floats, sin: Floats, t: Floats) -> None:
    """Angles in t become cosines, sines and, in t again, what each unit adds to the score."""
    for j in range(t.size):
        s, c = sincos(t[j])
        cos[j] = c
        sin[j] = s
        t[j] = wc[j] * c + ws[j] * s


@jit_inline
def _slopes(net: Network, g: float, work: Scratch) -> None:
    """g * df/d(angle) of every unit into work.t, with the weights before their own step (eq. 16)."""
    t, cos, sin, wc, ws = work.t, work.cos, work.sin, net.wc, net.ws
    for j in range(t.size):
        t[j] = g * (ws[j] * cos[j] - wc[j] * sin[j])


@jit
def _turn(alpha: Floats, z: Floats, t: Floats) -> None:
    """alpha_j -= t_j z."""
    for i in range(z.size):
        zi = z[i]
        for j in range(t.size):
            alpha[i, j] -= t[j] * zi


@jit_inline
def adagrad_step(net: Network, g: float, g_bias: float, eta: float, eta_alpha: float, work: Scratch) -> None:
    """One step against g, the slope of the loss by the score: per-weight Adagrad, one accumulator per direction."""
    _slopes(net, g, work)
    _scale_slopes(net.acc_a, _squared_norm(work.z, work.squares), eta_alpha, work.t)
    _turn(net.alpha, work.z, work.t)
    _adagrad(net.wc, net.acc_c, work.cos, g, eta)
    _adagrad(net.ws, net.acc_s, work.sin, g, eta)
    head = net.head
    head[BIAS_ACC] = _FORGET * head[BIAS_ACC] + g_bias * g_bias
    head[BIAS] -= eta * g_bias / math.sqrt(head[BIAS_ACC] + _ACC_FLOOR)


@jit
def _squared_norm(z: Floats, squares: Floats) -> float:
    """z'z; `squares` is overwritten."""
    for i in range(z.size):
        squares[i] = z[i] * z[i]
    return lane_sum(squares, z.size)


@jit
def _scale_slopes(acc: Floats, norm2: float, rate: float, t: Floats) -> None:
    for j in range(t.size):
        acc[j] = _FORGET * acc[j] + t[j] * t[j] * norm2
        t[j] = rate * t[j] / math.sqrt(acc[j] + _ACC_FLOOR)


@jit
def _adagrad(w: Floats, acc: Floats, feature: Floats, g: float, eta: float) -> None:
    for j in range(w.size):
        slope = g * feature[j]
        acc[j] = _FORGET * acc[j] + slope * slope
        w[j] -= eta * slope / math.sqrt(acc[j] + _ACC_FLOOR)


@jit_inline
def sgd_step(net: Network, g: float, scale: float, eta: float, lam: float, work: Scratch) -> None:
    """One plain step (eqs. 14-16): as printed, the direction's gradient has no factor `scale`."""
    _sgd(net.wc, net.ws, work.cos, work.sin, work.t, eta * g, eta * g * scale, eta * lam)
    _turn(net.alpha, work.z, work.t)
    net.head[BIAS] -= eta * g


@jit
def _sgd(wc: Floats, ws: Floats, cos: Floats, sin: Floats, t: Floats, turn: float, step: float, shrink: float) -> None:
    for j in range(t.size):
        t[j] = turn * (ws[j] * cos[j] - wc[j] * sin[j])
        wc[j] -= shrink * wc[j] + step * cos[j]
        ws[j] -= shrink * ws[j] + step * sin[j]
