"""The same two learners as one would write them in a notebook: numpy, one event at a time.

The yardstick of `npstream bench kernel`: the same arithmetic, counters and
results as the kernel, vectorised over units and features, with BLAS and libm,
without compiled code or batches. Every event brings its label.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.model.generator import key_of, uniform
from npstream.model.model import Model
from npstream.model.params import Params

Vector = npt.NDArray[np.float64]

# Weights of a fern's five comparisons in the number of its cell.
_BITS = np.array([1, 2, 4, 8, 16])


class PlainRow(NamedTuple):
    """What one event found, before it learned."""

    decision: int
    reason: int
    score: float
    threshold: float
    gamma: float
    fpr: float
    t: int


class PlainGate:
    """Threshold, warm-up, budget and counters. The paper's threshold is fixed and has no budget."""

    def __init__(self, params: Params) -> None:
        self.tau = params.tau
        self.gated = params.preset == "plus"
        self.capacity = params.budget if self.gated else math.inf
        self.warmup = min(1 / params.tau, 100) if self.gated else 0
        self.q = self.centre = self.scale = self.bucket = self.fpr = self.tpr = 0.0
        self.negatives = self.positives = self.false_alarms = self.detections = self.held = self.withheld = 0

    def judge(self, f: float) -> tuple[int, int]:
        """Decision and reason."""
        if f <= self.q:
            return -1, 0
        if self.negatives < self.warmup:
            self.held += 1
            return -1, 1
        if self.bucket >= self.capacity:
            self.withheld += 1
            return -1, 2
        return 1, 0

    def learn(self, f: float, y: int, decision: int) -> None:
        """Count a labelled decision; a negative's also moves bucket and threshold."""
        alarm = decision > 0
        if y > 0:
            self.positives += 1
            self.detections += alarm
            self.tpr += max(1 / self.positives, 1 / 500) * (alarm - self.tpr)
            return
        self.negatives += 1
        self.false_alarms += alarm
        self.fpr += max(1 / self.negatives, self.tau / 20) * (alarm - self.fpr)
        self.bucket = max(-self.capacity, self.bucket + alarm - self.tau)
        if self.gated:
            self.track(f)

    def track(self, f: float) -> None:
        """Move the threshold."""
        n = self.negatives
        rate = max(1 / n, 0.002)
        self.centre += rate * (f - self.centre)
        self.scale += rate * (abs(f - self.centre) - self.scale)
        if n == 1:
            self.q = f
        else:
            unspent = min(max(-self.bucket / self.capacity, 0.0), 1.0)
            target = 0.97 - min(7e-4 / self.tau, 0.07) * (1 - unspent)
            floor = 0.05 + min(1.5e-4 / self.tau, 0.03)
            self.q += 5 * self.scale * max(1 / math.sqrt(n), floor) * ((f > self.q) - target * self.tau)


class PlainNetwork:
    """What both presets share: weights as `Model.create` draws them, gamma and its window."""

    def __init__(self, params: Params) -> None:
        start = Model.create(params).arrays()
        self.params = params
        self.alpha = np.ascontiguousarray(start["alpha"].T, np.float64)
        self.w = np.concatenate([start["wc"], start["ws"]]).astype(np.float64)
        self.b = float(start["head"][1])
        self.gamma = 1.0
        self.window = np.zeros(params.window)
        self.gate = PlainGate(params)

    def step(self, x: npt.NDArray[np.float32], y: int) -> PlainRow:
        """Score and decide, then learn."""
        raw = np.asarray(x, np.float64)
        z = self.transform(raw)
        angle = self.alpha @ z
        phi = np.concatenate([np.cos(angle), np.sin(angle)])
        f = self.score(phi, raw)
        gate = self.gate
        decision, reason = gate.judge(f)
        row = PlainRow(decision, reason, f, gate.q, self.gamma, gate.fpr, gate.negatives + gate.positives)
        gate.learn(f, y, decision)
        trained = self.trained(f)
        self.descend(z, phi, trained, y)
        if y < 0:
            self.move_gamma(trained)
        self.absorb(raw)
        return row

    def transform(self, x: Vector) -> Vector:
        """Features as they are."""
        return x

    def score(self, phi: Vector, x: Vector) -> float:
        """f of the features."""
        return float(self.w @ phi) + self.b

    def trained(self, f: float) -> float:
        """The part of the last score that steps go by."""
        return f

    def descend(self, z: Vector, phi: Vector, f: float, y: int) -> None:
        """One step against the gradient."""
        raise NotImplementedError

    def absorb(self, x: Vector) -> None:
        """Nothing to keep of raw features."""

    def slopes(self, phi: Vector) -> Vector:
        """df/d(angle) of every unit."""
        units = len(self.alpha)
        return self.w[units:] * phi[:units] - self.w[:units] * phi[units:]

    def move_gamma(self, f: float) -> None:
        """A negative's step of the multiplier."""
        n, size, lam = self.gate.negatives, len(self.window), self.params.lam
        self.window[(n - 1) % size] = f > 0
        share = float(self.window[:n].mean())
        beta = self.params.beta / (1 + lam * (n + self.gate.positives - 1))
        low, high = (0.05, 50.0) if self.gate.gated else (1e-6, 1e6)
        self.gamma = min(max(self.gamma * (1 + beta * (share - self.params.tau)), low), high)


class PlainPaper(PlainNetwork):
    """Algorithm 1."""

    def score(self, phi: Vector, x: Vector) -> float:
        """With the paper's 1/sqrt(D)."""
        return float(self.w @ phi) / math.sqrt(len(self.alpha)) + self.b

    def descend(self, z: Vector, phi: Vector, f: float, y: int) -> None:
        """Lines 8 to 11."""
        negatives, positives, lam = self.gate.negatives, self.gate.positives, self.params.lam
        t = negatives + positives
        mu = t / positives if y > 0 else self.gamma * t / negatives
        eta = self.params.eta / (1 + lam * (t - 1))
        decay = math.exp(-abs(f))
        g = -y * mu * decay / (1 + decay) ** 2
        slopes = g * self.slopes(phi)
        self.w -= eta * (lam * self.w + g / math.sqrt(len(self.alpha)) * phi)
        self.b -= eta * g
        self.alpha -= eta * np.outer(slopes, z)


class PlainTables:
    """Markers, a table for each number, and ferns."""

    def __init__(self, params: Params) -> None:
        start = Model.create(params).arrays()
        self.d, self.eta = params.d, params.eta
        self.cell, self.acc = start["cell"][:, 0].copy(), start["cell"][:, 1].copy()
        self.first = np.concatenate([17 * np.arange(params.d), 17 * params.d + 32 * np.arange(64)])
        self.column, self.level = start["fern_column"].astype(np.int64), start["fern_level"].astype(np.float64)
        self.limit = np.zeros((5, 64), np.float32)
        self.marker, self.ring, self.rows = np.zeros((15, params.d)), np.zeros((64, params.d), np.float32), 0
        self.clip = np.full(params.d, 5.0)
        self.draws, self.key = int(start["clock"][4]), key_of(np.uint64(params.seed), np.uint64(0))
        self.at = np.empty(0, np.int64)

    def score(self, x: Vector) -> float:
        """The sum of the selected cells."""
        if self.rows < 16:
            return 0.0
        below = (self.marker < x).sum(axis=0)
        bits = x.astype(np.float32)[self.column] > self.limit
        self.at = self.first + np.concatenate([below, (_BITS[:, None] * bits).sum(axis=0)])
        return float(self.cell[self.at].sum(dtype=np.float64))

    def learn(self, g: float) -> None:
        """Adagrad on the selected cells."""
        if self.rows >= 16:
            self.acc[self.at] = np.float32(1 - 1e-4) * self.acc[self.at] + np.float32(g * g)
            self.cell[self.at] -= np.float32(self.eta * g) / np.sqrt(self.acc[self.at] + np.float32(1))

    def take(self, x: Vector, t: int) -> None:
        """A row for the markers."""
        stride = 1 if t <= 1000 else 4
        if t % stride:
            return
        self.ring[self.rows % 64] = x
        self.rows += 1
        if self.rows % 64 and self.rows not in (16, 32):
            return
        m = min(self.rows, 64)
        rank = (np.arange(15) + 0.5) / 15 * m - 0.5
        low = rank.astype(int)
        ordered = np.sort(self.ring[:m], axis=0).astype(np.float64)
        share = (rank - low)[:, None]
        quantile = ordered[low] + share * (ordered[np.minimum(low + 1, m - 1)] - ordered[low])
        self.marker += max(m / self.rows, m * stride / 10_000) * (quantile - self.marker)
        self.clip = np.where((self.marker == self.marker[7]).sum(axis=0) >= 14, 1.0, 5.0)
        if self.rows == 64:
            self.redraw()
        self.set_limits()

    def redraw(self) -> None:
        """Bits on constant columns look at another one."""
        constant = self.marker[0] == self.marker[14]
        for b, f in np.ndindex(5, 64):
            for _ in range(8):
                if not constant[self.column[b, f]]:
                    break
                self.column[b, f] = int(uniform(self.key, self.draws) * self.d)
                self.draws += 1

    def set_limits(self) -> None:
        """What the bits compare with, from the markers."""
        place = self.level * 15 - 0.5
        low = place.astype(int)
        a, b, top = self.marker[low, self.column], self.marker[low + 1, self.column], self.marker[14, self.column]
        limit = a + (place - low) * (b - a)
        lower = np.where(self.marker < self.marker[14], self.marker, -np.inf).max(axis=0)[self.column]
        self.limit = np.where((limit >= top) & np.isfinite(lower), lower, limit).astype(np.float32)


class PlainPlus(PlainNetwork):
    """The stream form, for features that are all numbers and all there."""

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.mean, self.var, self.inv_sd = np.zeros(params.d), np.zeros(params.d), np.zeros(params.d)
        self.acc_w, self.acc_a, self.acc_b = np.zeros(2 * params.D), np.zeros(params.D), 0.0
        self.tables = PlainTables(params)
        self.parts = 0.0, 0.0
        self.slow_w, self.slow_b, self.share, self.acc_share, self.lag = self.w.copy(), self.b, 1.0, 0.0, 0.0

    def transform(self, x: Vector) -> Vector:
        """Running z-score, clipped."""
        return np.clip((x - self.mean) * self.inv_sd, -self.tables.clip, self.tables.clip)

    def score(self, phi: Vector, x: Vector) -> float:
        """Network and tables, and a share of how far the slow weights are from the network."""
        self.parts = float(self.w @ phi), self.tables.score(x)
        self.lag = float(self.slow_w @ phi) + self.slow_b - (self.parts[0] + self.b)
        return self.trained(0.0) + self.share * self.lag

    def trained(self, f: float) -> float:
        """Without the slow weights."""
        return sum(self.parts) + self.b

    def descend(self, z: Vector, phi: Vector, f: float, y: int) -> None:
        """One Adagrad step on the weighted logistic loss, each part by half of its own score."""
        mu = 1.0 if y > 0 else min(self.gamma, 20.0)
        scores = *(0.5 * f + 0.5 * (part + self.b) for part in self.parts), f, f + self.share * self.lag
        g, g_tables, g_bias, g_share = (-y * mu / (1 + math.exp(y * h)) for h in scores)
        slopes, gradient = g * self.slopes(phi), g * phi
        keep, eta = 1 - 1e-4, self.params.eta
        self.acc_a = keep * self.acc_a + slopes**2 * (z @ z)
        self.acc_w = keep * self.acc_w + gradient**2
        self.acc_b = keep * self.acc_b + g_bias**2
        rate = eta * 20 / math.sqrt(len(z))
        self.alpha -= np.outer(rate * slopes / np.sqrt(self.acc_a + 1e-8), z)
        self.w -= eta * gradient / np.sqrt(self.acc_w + 1e-8)
        self.b -= 0.4 * eta * g_bias / math.sqrt(self.acc_b + 1e-8)
        self.tables.learn(g_tables)
        follow = max(1 / (self.gate.negatives + self.gate.positives), 1e-3)
        self.slow_w += follow * (self.w - self.slow_w)
        self.slow_b += follow * (self.b - self.slow_b)
        self.acc_share = 0.999 * self.acc_share + (g_share * self.lag) ** 2
        step = eta * g_share * self.lag / math.sqrt(self.acc_share + 1e-8)
        self.share = min(max(self.share - step, 0.0), 1.0)

    def absorb(self, x: Vector) -> None:
        """Running moments, winsorised, and markers."""
        n = self.gate.negatives + self.gate.positives
        delta = x - self.mean
        if n > 10:
            reach = 8 / self.inv_sd
            delta = np.clip(delta, -reach, reach)
        step = delta / min(n, 10_000)
        self.mean += step
        self.var += (delta * (delta - step) - self.var) / min(n, 10_000)
        floor = np.maximum(1e-12, 1e-6 * np.abs(self.mean))
        self.inv_sd = 1 / np.maximum(np.sqrt(self.var), floor)
        self.tables.take(x, n)


def plain_of(params: Params) -> PlainNetwork:
    """The plain form of a preset; `paper` takes its features as they are."""
    return PlainPlus(params) if params.preset == "plus" else PlainPaper(params)
