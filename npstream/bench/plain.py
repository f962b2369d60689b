"""The same two learners as one would write them in a notebook: numpy, one event at a time.

The yardstick of `npstream bench kernel`: the same arithmetic, counters and
results as the kernel, vectorised over units and features, with BLAS and libm,
without compiled code or batches. Every event brings its label.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.model.model import Model
from npstream.model.params import Params

Vector = npt.NDArray[np.float64]


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
            self.q += 5 * self.scale * max(1 / math.sqrt(n), 0.05) * ((f > self.q) - 0.97 * self.tau)


class PlainNetwork:
    """What both presets share: weights as `Model.create` draws them, gamma and its window."""

    def __init__(self, params: Params) -> None:
        start = Model.create(params).arrays()
        self.params = params
        self.alpha = np.ascontiguousarray(start["alpha"].T, np.float64)
        self.w = np.concatenate([start["wc"], start["ws"]]).astype(np.float64)
        self.b = float(start["head"][2])
        self.gamma = 1.0
        self.window = np.zeros(params.window)
        self.gate = PlainGate(params)

    def step(self, x: npt.NDArray[np.float32], y: int) -> PlainRow:
        """Score and decide, then learn."""
        raw = np.asarray(x, np.float64)
        z = self.transform(raw)
        angle = self.alpha @ z
        phi = np.concatenate([np.cos(angle), np.sin(angle)])
        f = self.score(phi)
        gate = self.gate
        decision, reason = gate.judge(f)
        row = PlainRow(decision, reason, f, gate.q, self.gamma, gate.fpr, gate.negatives + gate.positives)
        gate.learn(f, y, decision)
        self.descend(z, phi, f, y)
        if y < 0:
            self.move_gamma(f)
        self.absorb(raw)
        return row

    def transform(self, x: Vector) -> Vector:
        """Features as they are."""
        return x

    def score(self, phi: Vector) -> float:
        """f of the features."""
        return float(self.w @ phi) + self.b

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

    def score(self, phi: Vector) -> float:
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


class PlainPlus(PlainNetwork):
    """The stream form."""

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.mean, self.var, self.inv_sd = np.zeros(params.d), np.zeros(params.d), np.zeros(params.d)
        self.acc_w, self.acc_a, self.acc_b = np.zeros(2 * params.D), np.zeros(params.D), 0.0
        self.prior = 0.5

    def transform(self, x: Vector) -> Vector:
        """Running z-score, clipped."""
        return np.clip((x - self.mean) * self.inv_sd, -5, 5)

    def descend(self, z: Vector, phi: Vector, f: float, y: int) -> None:
        """One Adagrad step on the weighted logistic loss."""
        self.prior += 1e-3 * ((y > 0) - self.prior)
        mu = min(20.0, 1 / self.prior if y > 0 else self.gamma / (1 - self.prior))
        g = -y * mu / (1 + math.exp(y * f))
        slopes, gradient = g * self.slopes(phi), g * phi
        keep, eta = 1 - 1e-4, self.params.eta
        self.acc_a = keep * self.acc_a + slopes**2 * (z @ z)
        self.acc_w = keep * self.acc_w + gradient**2
        self.acc_b = keep * self.acc_b + g * g
        rate = eta * 10 / math.sqrt(len(z))
        self.alpha -= np.outer(rate * slopes / np.sqrt(self.acc_a + 1e-8), z)
        self.w -= eta * gradient / np.sqrt(self.acc_w + 1e-8)
        self.b -= eta * g / math.sqrt(self.acc_b + 1e-8)

    def absorb(self, x: Vector) -> None:
        """Running moments, winsorised."""
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


def plain_of(params: Params) -> PlainNetwork:
    """The plain form of a preset; `paper` takes its features as they are."""
    return PlainPlus(params) if params.preset == "plus" else PlainPaper(params)
