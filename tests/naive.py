"""The slow, obvious oracle: Algorithm 1 of Can and Ozkan (2020) and its stream form, one event at a time.

Plain Python and numpy, written from the equations (numbers are those of the
paper) and not from the kernel. Nothing here is shared with `npstream.model`.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

SCORE, SCORE_LEARN, LEARN, RELEASE = "score", "score_learn", "learn", "release"


class Event(NamedTuple):
    """One operation: features (or a score), a label where it learns, the place it waits in, if any."""

    op: str
    x: Vector
    y: int = 0
    place: int | None = None
    score: float = 0.0


class Row(NamedTuple):
    """What was found before learning."""

    decision: int
    reason: str
    score: float
    threshold: float
    gamma: float
    fpr: float
    t: int


# ------------------------------------------------------------------ random numbers

_WORD = 2**64
_GOLDEN = 0x9E3779B97F4A7C15


def mix(word: int) -> int:
    """The finaliser of splitmix64, on Python integers."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % _WORD
    return word ^ (word >> 31)


@dataclass
class Draws:
    """Uniform numbers in (0, 1), counted."""

    seed: int
    stream: int
    taken: int = 0

    def uniform(self) -> float:
        key = mix(mix((self.seed + _GOLDEN) % _WORD) ^ (self.stream * _GOLDEN % _WORD))
        self.taken += 1
        return ((mix((key + self.taken * _GOLDEN) % _WORD) >> 11) + 0.5) / 2**53

    def normal(self) -> float:
        """Box and Muller."""
        u, v = self.uniform(), self.uniform()
        return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)

    def cauchy(self) -> float:
        """The tangent of a uniform angle; takes two numbers like a normal, uses one."""
        u, _ = self.uniform(), self.uniform()
        return math.tan(math.pi * (u - 0.5))

    def chi(self, dof: int) -> float:
        return math.sqrt(sum(self.normal() ** 2 for _ in range(dof)))


def cold_start(params: Any, draws: Draws) -> tuple[Vector, Vector, Vector, float]:
    """Directions (D, d) from the kernel's spectrum (eqs. 7-9), weights and bias near zero."""
    d, D = params.d, params.D
    plus = params.preset == "plus"
    draw = draws.cauchy if params.kernel == "laplacian" else draws.normal
    rows = np.array([[draw() for _ in range(d)] for _ in range(D)])
    if params.kernel == "matern":
        rows = rows * np.array([[math.sqrt(3) / draws.chi(3)] for _ in range(D)])
    spread = np.array([(0.25, 1, 4, 16)[j % 4] if plus else 1.0 for j in range(D)])
    alpha = np.sqrt(2 * params.g * spread)[:, None] * rows  # N(0, 2 g I)
    wc, ws = np.zeros(D), np.zeros(D)
    for j in range(D):
        wc[j], ws[j] = 1e-4 * draws.normal(), 1e-4 * draws.normal()
    return alpha, wc, ws, 1e-4 * draws.normal()


# ------------------------------------------------------------------ threshold and budget


@dataclass
class Gate:
    """Tracked threshold, token bucket, warm-up hold, counters."""

    params: Any
    q: float = 0.0
    centre: float = 0.0
    scale: float = 0.0
    tracked: int = 0
    bucket: float = 0.0
    outstanding: int = 0
    negatives: int = 0
    positives: int = 0
    false_alarms: int = 0
    detections: int = 0
    held: int = 0
    withheld: int = 0
    fpr: float = 0.0
    tpr: float = 0.0

    def decide(self, score: float) -> tuple[int, str]:
        if score <= self.q:
            return -1, "score"
        if self.params.preset == "paper":
            return 1, "score"
        if self.tracked < min(1 / self.params.tau, 100):
            return -1, "warmup"
        charged = self.bucket + (self.outstanding if self.params.charge == "issue" else 0)
        return (1, "score") if charged < self.params.budget else (-1, "budget")

    def settle(self, y: int, alarm: bool) -> None:
        tau = self.params.tau
        if y == 1:
            self.positives += 1
            self.detections += alarm
            self.tpr += max(1 / self.positives, 1 / 500) * (alarm - self.tpr)
            return
        self.negatives += 1
        self.false_alarms += alarm
        self.fpr += max(1 / self.negatives, tau / 20) * (alarm - self.fpr)
        floor = -math.inf if self.params.preset == "paper" else -self.params.budget
        self.bucket = max(floor, self.bucket + alarm - tau)

    def track(self, score: float) -> None:
        """q follows the (1 - 0.97 tau) quantile of negative scores."""
        self.tracked += 1
        rate = max(1 / self.tracked, 0.002)
        self.centre += rate * (score - self.centre)
        self.scale += rate * (abs(score - self.centre) - self.scale)
        if self.tracked == 1:
            self.q = score
        else:
            step = 5 * self.scale * max(self.tracked**-0.5, 0.05)
            self.q += step * ((score > self.q) - 0.97 * self.params.tau)


# ------------------------------------------------------------------ features


@dataclass
class Moments:
    """Running mean and deviation over the last 10,000 events or so, winsorised; running range."""

    d: int
    n: int = 0
    mean: Vector = field(init=False)
    var: Vector = field(init=False)
    low: Vector = field(init=False)
    high: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.mean, self.var = np.zeros(self.d), np.zeros(self.d)
        self.low, self.high = np.full(self.d, np.inf), np.full(self.d, -np.inf)

    @property
    def sd(self) -> Vector:
        floor = np.maximum(1e-12, 1e-6 * np.abs(self.mean))
        return np.maximum(np.sqrt(self.var), floor)

    def zscore(self, x: Vector) -> Vector:
        if self.n == 0:
            return np.zeros(self.d)
        return np.clip((x - self.mean) / self.sd, -5, 5)

    def absorb(self, x: Vector) -> None:
        if self.n >= 10:
            x = np.clip(x, self.mean - 8 * self.sd, self.mean + 8 * self.sd)
        self.low, self.high = np.minimum(self.low, x), np.maximum(self.high, x)
        self.n += 1
        weight = 1 / min(self.n, 10_000)
        before = x - self.mean
        self.mean = self.mean + weight * before
        self.var = (1 - weight) * self.var + weight * before * (x - self.mean)


# ------------------------------------------------------------------ the classifier


class Naive:
    """Both presets and the external one, as sentences of arithmetic."""

    def __init__(self, params: Any, stream: int = 0) -> None:
        self.params = params
        self.gate = Gate(params)
        self.moments = Moments(params.d)
        self.draws = Draws(params.seed, stream)
        if params.preset != "external":
            self.alpha, self.wc, self.ws, self.b = cold_start(params, self.draws)
        D = params.D
        self.acc_c, self.acc_s, self.acc_a, self.acc_b = np.zeros(D), np.zeros(D), np.zeros(D), 0.0
        self.gamma, self.prior = 1.0, 0.5  # Algorithm 1, line 2: gamma_1 = 1
        self.n_pos = self.n_neg = 0  # line 3
        self.window: deque[int] = deque(maxlen=params.window)
        self.decided: dict[int, int] = {}

    @property
    def t(self) -> int:
        return self.n_pos + self.n_neg

    def run(self, events: list[Event]) -> list[Row]:
        return [self.step(event) for event in events]

    def step(self, event: Event) -> Row:
        gate = self.gate
        if event.op == RELEASE:
            assert event.place is not None
            gate.outstanding -= self.decided.pop(event.place) == 1
            return Row(0, "score", 0.0, gate.q, self.gamma, gate.fpr, self.t)
        f = self.score(event)
        decision, reason = gate.decide(f)
        if event.op == LEARN and event.place is not None:
            decision = self.decided[event.place]
        row = Row(decision, reason, f, gate.q, self.gamma, gate.fpr, self.t)
        if event.op in (SCORE, SCORE_LEARN):
            gate.held += reason == "warmup"
            gate.withheld += reason == "budget"
        if event.op == SCORE:
            if event.place is not None:
                self.decided[event.place] = decision
                gate.outstanding += decision == 1
            return row
        if event.op == LEARN and event.place is not None:
            gate.outstanding -= self.decided.pop(event.place) == 1
        gate.settle(event.y, decision == 1)
        if self.params.learning:
            self.learn(event, f)
        return row

    def score(self, event: Event) -> float:
        if self.params.preset == "external":
            return event.score
        return self.forward(self.transform(event.x))

    def transform(self, x: Vector) -> Vector:
        if self.params.input == "zscore":
            return self.moments.zscore(x)
        if self.params.input == "unit":
            norm = float(np.linalg.norm(x))
            return x / norm if norm > 0 else x
        return x

    def forward(self, z: Vector) -> float:
        """f = w'x~ + b with x~ = sqrt(1/D) [cos, sin] (eqs. 5, 8, 9); the stream form has no sqrt(1/D)."""
        angle = self.alpha @ z
        return self.scale * float(self.wc @ np.cos(angle) + self.ws @ np.sin(angle)) + self.b

    @property
    def scale(self) -> float:
        return math.sqrt(1 / self.params.D) if self.params.preset == "paper" else 1.0

    def learn(self, event: Event, f: float) -> None:
        y = event.y
        self.n_pos += y == 1  # line 7
        self.n_neg += y == -1
        if self.params.preset != "external":
            self.descend(self.transform(event.x), y, f)
            self.move_gamma(y, f)
            self.moments.absorb(event.x)
            if self.params.one_class and y == -1:
                self.learn_drawn_target()
        if y == -1 and self.params.preset != "paper":
            self.gate.track(f)

    def learn_drawn_target(self) -> None:
        """One target from the uniform density over the feature range: trains the network, nothing else."""
        low, high = self.moments.low, self.moments.high
        x = np.array([low[i] + self.draws.uniform() * (high[i] - low[i]) for i in range(self.params.d)])
        z = self.transform(x)
        self.descend(z, 1, self.forward(z))

    def descend(self, z: Vector, y: int, f: float) -> None:
        if self.params.preset == "paper":
            self.sgd(z, y, f)
        else:
            self.adagrad(z, y, f)

    def sgd(self, z: Vector, y: int, f: float) -> None:
        """Lines 8-11 and 13."""
        t, lam = self.t, self.params.lam
        share = 2.0 if self.params.one_class else (t / self.n_pos if y == 1 else t / self.n_neg)
        mu = share if y == 1 else self.gamma * share  # eq. 13
        eta = self.params.eta / (1 + lam * (t - 1))
        loss = 1 / (1 + math.exp(y * f))
        g = -(loss**2) * math.exp(y * f) * y  # eq. 15
        angle = self.alpha @ z
        cos, sin = np.cos(angle), np.sin(angle)
        slope = g * (-self.wc * sin + self.ws * cos)  # eq. 16
        self.wc = self.wc - eta * (lam * self.wc + mu * g * self.scale * cos)  # eq. 14
        self.ws = self.ws - eta * (lam * self.ws + mu * g * self.scale * sin)
        self.b -= eta * mu * g
        self.alpha = self.alpha - eta * mu * np.outer(slope, z)

    def adagrad(self, z: Vector, y: int, f: float) -> None:
        """Logistic loss, weights from a forgetful prior, Adagrad with one accumulator per direction."""
        if not self.params.one_class:
            self.prior += 1e-3 * ((y == 1) - self.prior)
        mu = min(20.0, 1 / self.prior if y == 1 else self.gamma / (1 - self.prior))
        g = -y * mu / (1 + math.exp(y * f))
        angle = self.alpha @ z
        cos, sin = np.cos(angle), np.sin(angle)
        slope = g * (-self.wc * sin + self.ws * cos)
        keep, tiny, eta = 1 - 1e-4, 1e-8, self.params.eta
        self.acc_a = keep * self.acc_a + slope**2 * (z @ z)
        self.acc_c = keep * self.acc_c + (g * cos) ** 2
        self.acc_s = keep * self.acc_s + (g * sin) ** 2
        self.acc_b = keep * self.acc_b + g**2
        rate = eta * 10 / math.sqrt(self.params.d)
        self.alpha = self.alpha - np.outer(rate * slope / np.sqrt(self.acc_a + tiny), z)
        self.wc = self.wc - eta * g * cos / np.sqrt(self.acc_c + tiny)
        self.ws = self.ws - eta * g * sin / np.sqrt(self.acc_s + tiny)
        self.b -= eta * g / math.sqrt(self.acc_b + tiny)

    def move_gamma(self, y: int, f: float) -> None:
        """Line 12 (eq. 17), or the stochastic form before it."""
        tau = self.params.tau
        beta = self.params.beta / (1 + self.params.lam * (self.t - 1))
        if self.params.gamma_update == "stochastic":
            error = self.t / self.n_neg / (1 + math.exp(-f)) if y == -1 else 0.0
            self.gamma += beta * (error - tau)
        elif y == -1:
            self.window.append(int(f > 0))
            self.gamma *= 1 + beta * (sum(self.window) / len(self.window) - tau)
        low, high = (1e-6, 1e6) if self.params.preset == "paper" else (0.05, 50.0)
        self.gamma = min(max(self.gamma, low), high)
