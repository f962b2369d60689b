"""The network: D random Fourier features whose directions are trained, and a linear output.

Unit j has a direction alpha[:, j], a cosine weight wc[j] and a sine weight ws[j]:

    f(z) = scale * sum_j (wc_j cos(alpha_j'z) + ws_j sin(alpha_j'z)) + b       (eqs. 5, 8, 9)

Single steps move the scores of all events alike, about as far as those near the
threshold lie apart. `plus` therefore keeps slow weights as well, the running means
of wc, ws and b, and scores by f plus a share of (slow f - f). The share, from 0 to 1,
is learned by the same loss: next to nothing where the last labels foretell the next.

alpha is stored as d rows of D contiguous units, so that every loop over units is
vector code. Equation numbers are those of Can and Ozkan (2020).
"""

import math
from typing import NamedTuple

from npstream.arrays import Floats
from npstream.jit import jit, jit_inline
from npstream.model.lanes import lane_sum
from npstream.model.maths import exp, sincos

# head: Lagrange multiplier, output bias and its accumulator; bias of the slow weights, their share and its accumulator.
GAMMA, BIAS, BIAS_ACC, SLOW_BIAS, SHARE, SHARE_ACC = range(6)
HEADS = 6

# Accumulators forget over about 10,000 events, so that learning can start over after a change.
_FORGET = 1.0 - 1e-4
# Start of the accumulators: small enough not to slow the first steps, large enough to divide by.
_ACC_FLOOR = 1e-8
# The bias moves all scores at once: it learns more slowly than weights, so that it does not follow every label.
_BIAS_GAIN = 0.4
# The share forgets sooner than weights do: after a change it is the slow ones that are in the way.
_SHARE_FORGET = 0.999
# The slow weights are means over about this many events.
_SLOW_MEMORY = 1000.0


class Network(NamedTuple):
    """Weights, slow weights and Adagrad accumulators; the latter two are empty where plain SGD trains."""

    alpha: Floats
    wc: Floats
    ws: Floats
    slow_c: Floats
    slow_s: Floats
    acc_c: Floats
    acc_s: Floats
    acc_a: Floats
    head: Floats


class Scratch(NamedTuple):
    """Reused memory of one event; nothing in it outlives the event. `part` is what a score is made of."""

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


@jit_inline
def lag(net: Network, work: Scratch) -> float:
    """The slow weights' score of what `forward` has just scored, less the score of the weights; with their biases."""
    _lags(net.wc, net.ws, net.slow_c, net.slow_s, work.cos, work.sin, work.t)
    return float(lane_sum(work.t, work.t.size) + (net.head[SLOW_BIAS] - net.head[BIAS]))


@jit
def _lags(wc: Floats, ws: Floats, slow_c: Floats, slow_s: Floats, cos: Floats, sin: Floats, t: Floats) -> None:
    for j in range(t.size):
        t[j] = (slow_c[j] - wc[j]) * cos[j] + (slow_s[j] - ws[j]) * sin[j]


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
def pull(f: float, y: int, mu: float) -> float:
    """The slope of the weighted logistic loss: unlike the sigmoid it keeps its slope on confidently wrong scores."""
    return float(-y * mu / (1.0 + exp(y * f)))


@jit_inline
def adagrad_step(
    net: Network, g: float, g_bias: float, g_share: float, eta: float, eta_alpha: float, t: int, work: Scratch
) -> None:
    """Step t against g, the slope of the loss by the score: per-weight Adagrad, one accumulator per direction.

    `g_bias` and `g_share` are its slopes by the bias and by the share of the slow weights.
    """
    _slopes(net, g, work)
    _scale_slopes(net.acc_a, _squared_norm(work.z, work.squares), eta_alpha, work.t)
    _turn(net.alpha, work.z, work.t)
    follow = max(1.0 / t, 1.0 / _SLOW_MEMORY)
    _adagrad(net.wc, net.slow_c, net.acc_c, work.cos, g, eta, follow)
    _adagrad(net.ws, net.slow_s, net.acc_s, work.sin, g, eta, follow)
    head = net.head
    head[BIAS_ACC] = _FORGET * head[BIAS_ACC] + g_bias * g_bias
    head[BIAS] -= _BIAS_GAIN * eta * g_bias / math.sqrt(head[BIAS_ACC] + _ACC_FLOOR)
    head[SLOW_BIAS] += follow * (head[BIAS] - head[SLOW_BIAS])
    head[SHARE_ACC] = _SHARE_FORGET * head[SHARE_ACC] + g_share * g_share
    share = head[SHARE] - eta * g_share / math.sqrt(head[SHARE_ACC] + _ACC_FLOOR)
    head[SHARE] = min(max(share, 0.0), 1.0)


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
def _adagrad(w: Floats, slow: Floats, acc: Floats, feature: Floats, g: float, eta: float, follow: float) -> None:
    for j in range(w.size):
        slope = g * feature[j]
        acc[j] = _FORGET * acc[j] + slope * slope
        w[j] -= eta * slope / math.sqrt(acc[j] + _ACC_FLOOR)
        slow[j] += follow * (w[j] - slow[j])


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
