"""The slow, obvious oracle: Algorithm 1 of Can and Ozkan (2020) and its stream form, one event at a time.

Plain Python and numpy, written from the equations (numbers are those of the
paper) and not from the kernel. Nothing here is shared with `npstream.model`.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

SCORE, SCORE_LEARN, LEARN, RELEASE, CORRECT = "score", "score_learn", "learn", "release", "correct"


class Event(NamedTuple):
    """One operation: features (or a score), a label where it learns, the place it waits in, if any.

    For SCORE, y is -2 where the event is in the review sample; for CORRECT it is the new label, not the old one.
    """

    op: str
    x: Vector
    y: int = 0
    place: int | None = None
    score: float = 0.0


class Row(NamedTuple):
    """What was found before learning; `depth` is how many tiers an alarm reached, the widest first.

    `moved` is what each column added to the score of an alarm that is decided now, else None.
    """

    decision: int
    reason: str
    score: float
    threshold: float
    gamma: float
    fpr: float
    t: int
    depth: int
    moved: Vector | None = None


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
    """Directions (D, number columns) from the kernel's spectrum (eqs. 7-9), weights and bias near zero."""
    d, D = len(number_columns(params)), params.D
    plus = params.preset == "plus"
    draw = draws.cauchy if params.kernel == "laplacian" else draws.normal
    rows = np.array([[draw() for _ in range(d)] for _ in range(D)]).reshape(D, d)
    if params.kernel == "matern":
        rows = rows * np.array([[math.sqrt(3) / draws.chi(3)] for _ in range(D)])
    spread = np.array([(1, 4, 16)[j % 3] if plus else 1.0 for j in range(D)])
    alpha = np.sqrt(2 * params.g * spread)[:, None] * rows  # N(0, 2 g I)
    wc, ws = np.zeros(D), np.zeros(D)
    for j in range(D):
        wc[j], ws[j] = 1e-4 * draws.normal(), 1e-4 * draws.normal()
    return alpha, wc, ws, 1e-4 * draws.normal()


def number_columns(params: Any) -> list[int]:
    """Where the numbers are; everything else is a category."""
    return [i for i in range(params.d) if not (params.buckets and params.buckets[i])]


# ------------------------------------------------------------------ threshold and budget


@dataclass
class Gate:
    """Tracked threshold, token bucket, warm-up hold, counters, at one of the rates."""

    params: Any
    tau: float
    q: float = 0.0
    centre: float = 0.0
    scale: float = 0.0
    tracked: int = 0
    bucket: float = 0.0
    outstanding: int = 0  # alarms without a label yet
    waiting: int = 0  # observations without a label yet
    alarms: int = 0
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
        if self.tracked < min(1 / self.tau, 100):
            return -1, "warmup"
        return (1, "score") if self.bucket + self.expected() < self.params.budget else (-1, "budget")

    @property
    def by_alarm(self) -> bool:
        """Whether all alarms are held to tau of all observations, not false ones to tau of labelled non-targets."""
        return bool(self.params.control == "alarm_rate")

    def expected(self) -> float:
        """What outstanding alarms count: each as one, or those that will be false beyond what tau allows meanwhile."""
        if self.by_alarm:
            return 0.0  # an alarm is charged when it is issued, whatever its label
        if self.params.charge == "issue":
            return self.outstanding
        share = (self.false_alarms + 1) / (self.false_alarms + self.detections + 2)
        return float(max(0.0, share * self.outstanding - self.tau * self.waiting))

    def issue(self, alarm: bool) -> None:
        """An observation begins to wait for its label."""
        self.waiting += 1
        self.outstanding += alarm

    def free(self, alarm: bool) -> None:
        """It waits no longer."""
        self.waiting -= 1
        self.outstanding -= alarm

    def settle(self, y: int, alarm: bool, weight: float) -> None:
        if y == 1:
            self.positives += 1
            self.detections += alarm
            self.tpr += min(weight * max(1 / self.positives, 1 / 500), 1) * (alarm - self.tpr)
            return
        self.negatives += 1
        self.false_alarms += alarm
        self.fpr += min(weight * max(1 / self.negatives, self.tau / 20), 1) * (alarm - self.fpr)
        if not self.by_alarm:
            self.charge(alarm, weight)

    def withdraw(self, y: int, alarm: bool, weight: float) -> None:
        """A label was wrong: what it counted is taken back, but for the recent rates and what the bucket had lost."""
        if y == 1:
            self.positives -= 1
            self.detections -= alarm
            return
        self.negatives -= 1
        self.false_alarms -= alarm
        if not self.by_alarm:
            floor = -math.inf if self.params.preset == "paper" else -self.params.budget
            self.bucket = max(floor, self.bucket - weight * alarm + weight * self.tau)

    def charge(self, alarm: bool, weight: float = 1.0) -> None:
        """The bucket fills by one with an alarm, and empties by tau with each observation that counts."""
        floor = -math.inf if self.params.preset == "paper" else -self.params.budget
        # In this order: budgets and alarms are whole numbers, so that ties are common, and the last bit decides them.
        self.bucket = max(floor, self.bucket + weight * alarm - weight * self.tau)

    def track(self, score: float, weight: float = 1.0, pace: float = 1.0) -> None:
        """q follows the (1 - m tau) quantile of the scores, m = 0.97 where all budget is unspent, else less."""
        self.tracked += 1
        rate = min(weight * max(1 / self.tracked, 0.002), max(1 / self.tracked, 0.1))
        self.centre += rate * (score - self.centre)
        self.scale += rate * (abs(score - self.centre) - self.scale)
        if self.tracked == 1:
            self.q = score
        else:
            floor = 0.05 + min(1.5e-4 / self.tau, 0.03)
            step = 5 * self.scale * max(self.tracked**-0.5, floor)
            unspent = min(max(-self.bucket / self.params.budget, 0.0), 1.0)
            m = 0.97 - min(7e-4 / self.tau, 0.07) * (1 - unspent)
            warm = self.tracked > min(1 / self.tau, 100)
            steps = weight / pace if warm and not (weight > 1 and score > self.q) else 1.0
            if weight > 1 and score <= self.q:
                steps *= min(max(1 - self.bucket / self.params.budget, 0.0), 1.0)
            self.q += steps * step * ((score > self.q) - m * self.tau)


@dataclass
class Account:
    """Alarms among events of one kind: of all of them, and in up to 64 blocks of the newest; none of the warm-up."""

    size: int
    total: list[int] = field(default_factory=lambda: [0, 0])
    blocks: list[list[int]] = field(default_factory=lambda: [[0, 0]])

    def note(self, alarm: bool) -> None:
        if self.blocks[-1][1] >= self.size:
            self.blocks = [*self.blocks[-63:], [0, 0]]
        for counts in (self.total, self.blocks[-1]):
            counts[0] += alarm
            counts[1] += 1

    def take_back(self, alarm: bool) -> None:
        like = [block for block in self.blocks if (block[0] if alarm else block[1] - block[0])]
        for counts in [self.total, *like[-1:]]:
            counts[0] -= alarm
            counts[1] -= 1


# ------------------------------------------------------------------ features


@dataclass
class Moments:
    """Running mean and deviation of each column over its last 10,000 values or so, winsorised; running range."""

    d: int
    n: Vector = field(init=False)
    mean: Vector = field(init=False)
    var: Vector = field(init=False)
    low: Vector = field(init=False)
    high: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.n, self.mean, self.var = np.zeros(self.d), np.zeros(self.d), np.zeros(self.d)
        self.low, self.high = np.full(self.d, np.inf), np.full(self.d, -np.inf)

    @property
    def sd(self) -> Vector:
        floor = np.maximum(1e-12, 1e-6 * np.abs(self.mean))
        return np.maximum(np.sqrt(self.var), floor)

    def zscore(self, x: Vector, clip: Vector) -> Vector:
        """A missing value, and any before the first one of its column, is 0."""
        known = (self.n > 0) & ~np.isnan(x)
        return np.where(known, np.clip((x - self.mean) / self.sd, -clip, clip), 0.0)

    def absorb(self, row: Vector) -> None:
        """A missing value changes nothing of its column."""
        for i, x in enumerate(row):
            if math.isnan(x):
                continue
            if self.n[i] >= 10:
                sd = self.sd[i]
                x = min(max(x, self.mean[i] - 8 * sd), self.mean[i] + 8 * sd)
            self.low[i], self.high[i] = min(self.low[i], x), max(self.high[i], x)
            self.n[i] += 1
            weight = 1 / min(self.n[i], 10_000)
            before = x - self.mean[i]
            self.mean[i] += weight * before
            self.var[i] = (1 - weight) * self.var[i] + weight * before * (x - self.mean[i])


@dataclass
class Markers:
    """Fifteen quantile markers of each number column, from a ring of 64 raw rows."""

    d: int
    rows: int = 0  # taken into the ring so far
    ring: list[Vector] = field(default_factory=list)
    at: Vector = field(init=False)  # (15, d)
    values: Vector = field(init=False)  # present values taken so far, by column

    def __post_init__(self) -> None:
        self.at, self.values = np.zeros((15, self.d)), np.zeros(self.d)

    @property
    def ready(self) -> bool:
        return self.rows >= 16

    def take(self, row: Vector, t: int) -> bool:
        """Every event, every 4th after the first 1,000; this one is the t-th. True when the markers moved."""
        stride = 1 if t <= 1000 else 4
        if t % stride:
            return False
        if len(self.ring) == 64:
            self.ring = []
        self.ring.append(row)
        self.rows += 1
        self.values += ~np.isnan(row)
        if self.rows not in (16, 32) and len(self.ring) < 64:
            return False
        for i in range(self.d):
            self.move(i, stride)
        return True

    def move(self, i: int, stride: int) -> None:
        """Towards the quantiles of the ring, by the share that its values have in all that were taken."""
        column = sorted(row[i] for row in self.ring if not math.isnan(row[i]))
        m = len(column)
        if m == 0:
            return
        rate = max(m / self.values[i], m * stride / 10_000)
        for k in range(15):
            rank = min(max((k + 0.5) / 15 * m - 0.5, 0.0), m - 1.0)
            a, b = column[int(rank)], column[min(int(rank) + 1, m - 1)]
            quantile = a + (rank - int(rank)) * (b - a)
            self.at[k, i] += rate * (quantile - self.at[k, i])

    def sparse(self) -> npt.NDArray[np.bool_]:
        """Columns with at least 14 of 15 markers at their median, such as a rare flag."""
        return np.asarray(self.ready & ((self.at == self.at[7]).sum(axis=0) >= 14))

    def threshold(self, i: int, level: float) -> float:
        """The value at a level of (0, 1), below the top marker where the column has more than one value."""
        marks = self.at[:, i]
        place = level * 15 - 0.5
        k = int(place)
        value = marks[k] + (place - k) * (marks[k + 1] - marks[k])
        lower = [mark for mark in marks if mark < marks[14]]
        return float(lower[-1] if value >= marks[14] and lower else value)


@cache
def hash_of(seed: int, code: int, place: int) -> int:
    """One word for a category at a place: the same in every partition."""
    key = mix(mix((seed + _GOLDEN) % _WORD) ^ ((_WORD - 1) * _GOLDEN % _WORD))
    return mix(mix((key + (code + 1) * _GOLDEN) % _WORD) ^ (place * _GOLDEN % _WORD))


@cache
def coins_of(seed: int, code: int, first: int) -> npt.NDArray[np.bool_]:
    """(5, 64): what the bits of all ferns find in a category; their places begin behind those of the columns."""
    return np.array([[hash_of(seed, code, first + 64 * b + f) >= 2**63 for f in range(64)] for b in range(5)])


class Tables:
    """A table of cells for each column and 64 ferns: tables of 32 cells that five comparisons choose from.

    Cells and accumulators are float32, and so is their step.
    """

    def __init__(self, params: Any, draws: Draws) -> None:
        self.params, self.draws = params, draws
        self.numbers = number_columns(params)
        self.categories = [i for i in range(params.d) if i not in self.numbers]
        self.columns = self.numbers + self.categories
        self.markers = Markers(len(self.numbers))
        sizes = [17] * len(self.numbers) + [params.buckets[i] for i in self.categories] + [32] * 64
        self.cells = [np.zeros(size, np.float32) for size in sizes]
        self.acc = [np.zeros(size, np.float32) for size in sizes]
        # Bit b of fern f looks at column[b, f] (an index into self.columns) at level[b, f].
        drawn = np.array([[self._bit() for _ in range(64)] for _ in range(5)])
        self.column, self.level = drawn[:, :, 0].astype(int), drawn[:, :, 1]
        self.limits = np.zeros((5, 64), np.float32)

    def _column(self) -> int:
        return int(self.draws.uniform() * self.params.d)

    def _bit(self) -> tuple[int, float]:
        column = self._column()
        return column, float(np.float32(0.04 + 0.92 * self.draws.uniform()))

    def hash(self, code: int, place: int) -> int:
        return hash_of(self.params.seed, code, place)

    @staticmethod
    def code(value: float) -> int:
        """A category's number; a missing one is a value of its own."""
        return 2**24 if math.isnan(value) else int(value)

    def chosen(self, x: Vector) -> list[int]:
        """The cell of each table that x selects; none before there are markers."""
        if not self.markers.ready:
            return []
        own = [
            16 if math.isnan(x[i]) else int((self.markers.at[:, n] < x[i]).sum()) for n, i in enumerate(self.numbers)
        ]
        own += [
            self.hash(self.code(x[i]), len(self.numbers) + c) % self.params.buckets[i]
            for c, i in enumerate(self.categories)
        ]
        bits = self.bits(x)
        return own + [int(cell) for cell in bits.T @ [1, 2, 4, 8, 16]]

    def bits(self, x: Vector) -> npt.NDArray[np.bool_]:
        """(5, 64): what every bit of every fern finds. A missing number is taken for a rare one."""
        seen = x[self.columns].astype(np.float32)[self.column]
        found = np.where(np.isnan(seen), self.level >= 0.5, seen > self.limits)
        for n in range(len(self.numbers), len(self.columns)):
            coins = coins_of(self.params.seed, self.code(x[self.columns[n]]), self.params.d)
            found = np.where(self.column == n, coins, found)
        return found

    def score(self, x: Vector) -> float:
        return float(sum(float(table[i]) for table, i in zip(self.cells, self.chosen(x), strict=False)))

    def moved(self, x: Vector) -> Vector:
        """The same sum, by column: a fern's cell in fifths."""
        found = np.zeros(self.params.d)
        cells = [float(table[i]) for table, i in zip(self.cells, self.chosen(x), strict=False)]
        for column, cell in zip(self.columns, cells, strict=False):
            found[column] += cell
        for f, cell in enumerate(cells[self.params.d :]):
            for b in range(5):
                found[self.columns[self.column[b, f]]] += cell / 5
        return found

    def learn(self, x: Vector, g: float, eta: float) -> None:
        """Adagrad on the selected cells."""
        for table, acc, i in zip(self.cells, self.acc, self.chosen(x), strict=False):
            acc[i] = np.float32(1 - 1e-4) * acc[i] + np.float32(g * g)
            table[i] -= np.float32(eta * g) / np.sqrt(acc[i] + np.float32(1))

    def take(self, x: Vector, t: int) -> None:
        """The row goes to the markers; where they moved, the ferns' limits follow."""
        if not self.markers.take(x[self.numbers], t):
            return
        first_full = self.markers.rows == 64
        for b in range(5):
            for f in range(64):
                tries = 0
                while first_full and self.constant(self.column[b, f]) and tries < 8:
                    self.column[b, f] = self._column()
                    tries += 1
                if self.column[b, f] < len(self.numbers):
                    self.limits[b, f] = np.float32(self.markers.threshold(self.column[b, f], self.level[b, f]))

    def constant(self, column: int) -> bool:
        return column < len(self.numbers) and bool((self.markers.at[:, column] == self.markers.at[0, column]).all())


# ------------------------------------------------------------------ the classifier


class Naive:
    """Both presets and the external one, as sentences of arithmetic."""

    def __init__(self, params: Any, stream: int = 0, review: float = 0.0, learned_max: float = math.inf) -> None:
        self.params = params
        self.learned_max = learned_max  # most that a label counts in learning
        self.review = review  # share of the observations without an alarm that is looked at; 0: no such sample
        self.sample = {"alarm": [0, 0], "other": [0, 0], "reviewed": [0, 0]}  # labels: non-targets, targets
        # From wide to strict; without tiers there is one.
        self.gates = [Gate(params, rate) for _, rate in reversed(params.tiers)] or [Gate(params, params.tau)]
        self.gate = self.gates[0]
        self.numbers = number_columns(params)
        self.moments = Moments(len(self.numbers))
        self.draws = Draws(params.seed, stream)
        if params.preset != "external":
            self.alpha, self.wc, self.ws, self.b = cold_start(params, self.draws)
        if params.preset == "plus":
            self.tables = Tables(params, self.draws)
        D = params.D
        self.acc_c, self.acc_s, self.acc_a, self.acc_b = np.zeros(D), np.zeros(D), np.zeros(D), 0.0
        if params.preset == "plus":  # running means of output weights and bias; their part in the score
            self.slow_c, self.slow_s, self.slow_b = self.wc, self.ws, self.b
            self.share, self.acc_share = 1.0, 0.0
        self.gamma = 1.0  # Algorithm 1, line 2: gamma_1 = 1
        self.n_pos = self.n_neg = 0  # line 3
        self.window: deque[int] = deque(maxlen=params.window)
        self.decided: dict[int, int] = {}
        self.warm: dict[int, bool] = {}
        sizes = [math.ceil(min(max(round(50 / gate.tau), 500), 50_000) / 64) for gate in self.gates]
        self.accounts = [{"all": Account(size), -1: Account(size), 1: Account(8)} for size in sizes]

    @property
    def t(self) -> int:
        return self.n_pos + self.n_neg

    def run(self, events: list[Event]) -> list[Row]:
        return [self.step(event) for event in events]

    def step(self, event: Event) -> Row:
        gate = self.gate
        if event.op == RELEASE:
            assert event.place is not None
            self.free(self.decided[event.place])
            return Row(0, "score", 0.0, gate.q, self.gamma, gate.fpr, self.t, 0)
        f = self.score(event)
        depth, reasons = self.decide(f)
        reason = reasons[0]
        if event.op in (LEARN, CORRECT) and event.place is not None:
            depth = max(self.decided[event.place], 0)
        decision = 1 if depth > 0 else -1
        warm = self.params.preset != "paper" and gate.tracked < min(1 / self.params.tau, 100)
        if event.op in (LEARN, CORRECT) and event.place is not None:
            warm = self.warm[event.place]
        elif event.place is not None:
            self.warm[event.place] = warm
        self.keep_account(event, depth, warm)
        asked = depth > 0 and event.op in (SCORE, SCORE_LEARN) and self.params.preset != "external"
        moved = self.moved(event.x) if asked else None
        row = Row(decision, reason, f, gate.q, self.gamma, gate.fpr, self.t, depth, moved)
        if event.op in (SCORE, SCORE_LEARN):
            for tier, why in zip(self.gates, reasons, strict=False):
                tier.held += why == "warmup"
                tier.withheld += why == "budget"
            for tier in self.gates[:depth]:
                tier.alarms += 1
            if gate.by_alarm:
                self.observe(event, f, depth)
        if event.op == SCORE:
            if event.place is not None:
                self.decided[event.place] = depth if depth > 0 else event.y if event.y == -2 else -1
                for tier, alarm in self.by_tier(depth):
                    tier.issue(alarm)
            return row
        kind = self.kind(event, decision == 1)
        weight = self.weigh(kind)
        if event.op == CORRECT:
            for tier, alarm in self.by_tier(depth):
                tier.withdraw(-event.y, alarm, weight)
        elif event.op == LEARN and event.place is not None:
            self.free(depth)
        if kind is not None:
            self.sample[kind][event.y == 1] += 1
            self.sample[kind][event.y == -1] -= event.op == CORRECT
        if event.op == SCORE_LEARN and event.place is not None:
            self.decided[event.place] = depth  # its label was known at once
        for tier, alarm in self.by_tier(depth):
            tier.settle(event.y, alarm, weight)
        if self.params.learning:
            self.learn(event, f, weight)
        return row

    def keep_account(self, event: Event, depth: int, warm: bool) -> None:
        """Count what was decided and what it turned out to be, for each tier, but for the warm-up of the widest."""
        if warm:
            return
        for k, account in enumerate(self.accounts):
            if event.op in (SCORE, SCORE_LEARN):
                account["all"].note(depth > k)
            if event.op == CORRECT:
                account[-event.y].take_back(depth > k)
            if event.op != SCORE:
                account[event.y].note(depth > k)

    def decide(self, score: float) -> tuple[int, list[str]]:
        """How many tiers the score reaches, and the reason of each that was asked: a stricter one only after a yes."""
        reasons = []
        for depth, tier in enumerate(self.gates):
            decision, reason = tier.decide(score)
            reasons.append(reason)
            if decision == -1:
                return depth, reasons
        return len(self.gates), reasons

    def by_tier(self, depth: int) -> list[tuple[Gate, bool]]:
        """Each tier, and whether an event of this depth is an alarm of it."""
        return [(tier, k < depth) for k, tier in enumerate(self.gates)]

    def free(self, depth: int) -> None:
        for tier, alarm in self.by_tier(depth):
            tier.free(alarm)

    def track(self, score: float, weight: float = 1.0, review: float = 0.0) -> None:
        """Every threshold follows its quantile; none falls below that of a wider tier."""
        for k, tier in enumerate(self.gates):
            tier.track(score, weight, max(1.0, tier.tau / review) if review else 1.0)
            tier.q = max(tier.q, self.gates[max(k - 1, 0)].q)

    def kind(self, event: Event, alarm: bool) -> str | None:
        """As what it is in the sample: all alarms, all whose label was known at once, and the reviewed."""
        if event.op == SCORE_LEARN:
            return "alarm" if alarm else "other"
        if event.place is None:
            return None
        code = self.decided[event.place]
        return "alarm" if code > 0 else {0: "other", -2: "reviewed"}.get(code)

    def weigh(self, kind: str | None) -> float:
        """For how many a label counts."""
        if self.review == 0.0:
            return 1.0
        return {"alarm": 1.0, "other": 1.0, "reviewed": 1 / self.review}.get(kind or "", 0.0)

    def observe(self, event: Event, f: float, depth: int) -> None:
        """Control alarm_rate: what needs no label is taken from every decided observation."""
        for tier, alarm in self.by_tier(depth):
            tier.charge(alarm)
        if not self.params.learning:
            return
        self.track(f)
        if self.params.preset != "external":
            self.window.append(int(self.forward(event.x) > 0))
            if event.op == SCORE:  # otherwise after the step that its label asks for
                self.take_features(event.x)

    def take_features(self, x: Vector) -> None:
        """The scaler and, in the stream form, the markers see an event."""
        self.moments.absorb(x[self.numbers])
        if self.params.preset == "plus":
            self.tables.take(x, self.gate.tracked if self.gate.by_alarm else self.t)

    def score(self, event: Event) -> float:
        if self.params.preset == "external":
            return event.score
        f = self.forward(event.x)
        return f + self.share * self.lag(event.x) if self.params.preset == "plus" else f

    def lag(self, x: Vector) -> float:
        """The network's score by the means of its output weights, less that by the weights of now."""
        angle = self.alpha @ self.transform(x)
        slow = float(self.slow_c @ np.cos(angle) + self.slow_s @ np.sin(angle)) + self.slow_b
        return slow - (self.parts(x)[0] + self.b)

    def transform(self, x: Vector) -> Vector:
        if self.params.input == "zscore":
            return self.moments.zscore(x[self.numbers], self.clip)
        if self.params.input == "unit":
            norm = float(np.linalg.norm(x))
            return x / norm if norm > 0 else x
        return x

    @property
    def clip(self) -> Vector:
        """z-scores are clipped to +-5; in the stream form those of sparse columns to +-1."""
        if self.params.preset != "plus":
            return np.full(len(self.numbers), 5.0)
        return np.where(self.tables.markers.sparse(), 1.0, 5.0)

    def forward(self, x: Vector) -> float:
        """f = w'x~ + b (eq. 5), what is trained; in the stream form the tables add their cells."""
        network, tables = self.parts(x)
        return network + tables + self.b

    def parts(self, x: Vector) -> tuple[float, float]:
        """w'x~ with x~ = sqrt(1/D) [cos, sin] (eqs. 8, 9), without sqrt(1/D) in the stream form; the tables' sum."""
        angle = self.alpha @ self.transform(x)
        network = self.scale * float(self.wc @ np.cos(angle) + self.ws @ np.sin(angle))
        return network, self.tables.score(x) if self.params.preset == "plus" else 0.0

    def moved(self, x: Vector) -> Vector:
        """What each column adds: slope of the network times its value, its own cell, a fifth of a cell per fern bit."""
        z = self.transform(x)
        angle = self.alpha @ z
        wc, ws = self.wc, self.ws
        if self.params.preset == "plus":
            wc, ws = wc + self.share * (self.slow_c - wc), ws + self.share * (self.slow_s - ws)
        slope = self.scale * (self.alpha.T @ (ws * np.cos(angle) - wc * np.sin(angle)))
        found = np.zeros(self.params.d)
        found[self.numbers] = slope * z
        if self.params.preset == "plus":
            found += self.tables.moved(x)
        return found

    @property
    def scale(self) -> float:
        return math.sqrt(1 / self.params.D) if self.params.preset == "paper" else 1.0

    def learn(self, event: Event, f: float, weight: float) -> None:
        y = event.y
        self.n_pos += y == 1  # line 7
        self.n_neg += y == -1
        if self.params.preset != "external":
            trained = self.forward(event.x)
            self.descend(event.x, y, min(max(weight, 1.0), self.learned_max))
            self.move_gamma(y, trained, weight)
            if event.op == SCORE_LEARN or (event.op == LEARN and not self.gate.by_alarm):
                self.take_features(event.x)
            if self.params.one_class and y == -1:
                self.learn_drawn_target()
        if y == -1 and self.params.preset != "paper" and not self.gate.by_alarm and weight > 0:
            self.track(f, weight, self.review)

    def share_above_zero(self) -> float:
        """In the window; a label that counts for many fills it faster than labels come."""
        known = self.n_neg if self.params.preset == "paper" else self.gate.tracked + (not self.gate.by_alarm)
        return float(min(sum(self.window) / max(min(known, self.params.window), 1), 1.0))

    def learn_drawn_target(self) -> None:
        """One target from the uniform density over the feature range: trains the network and tables, nothing else."""
        x = np.zeros(self.params.d)
        for n, i in enumerate(self.numbers):
            low, high = self.moments.low[n], self.moments.high[n]
            share = self.draws.uniform()
            x[i] = low + share * (high - low) if low <= high else math.nan
        for i in range(self.params.d):
            if i not in self.numbers:
                x[i] = int(self.draws.uniform() * 2**24)
        self.descend(x, 1)

    def descend(self, x: Vector, y: int, weight: float = 1.0) -> None:
        if self.params.preset == "paper":
            self.sgd(self.transform(x), y, self.forward(x), 1.0 if y == 1 else min(weight, 20.0))
        else:
            self.adagrad(x, y, weight)

    def sgd(self, z: Vector, y: int, f: float, weight: float) -> None:
        """Lines 8-11 and 13."""
        t, lam = self.t, self.params.lam
        share = 2.0 if self.params.one_class else (t / self.n_pos if y == 1 else t / self.n_neg)
        mu = weight * (share if y == 1 else self.gamma * share)  # eq. 13
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

    def adagrad(self, x: Vector, y: int, weight: float) -> None:
        """Logistic loss; network and tables each learn half from their common score, half from their own."""
        mu = 1.0 if y == 1 else min(weight * self.gamma, 20.0)
        z = self.transform(x)
        network, tables = self.parts(x)
        f, lag = network + tables + self.b, self.lag(x)

        def pull(score: float) -> float:
            return -y * mu / (1 + math.exp(y * score))

        g, g_tables = pull(0.5 * f + 0.5 * (network + self.b)), pull(0.5 * f + 0.5 * (tables + self.b))
        angle = self.alpha @ z
        cos, sin = np.cos(angle), np.sin(angle)
        slope = g * (-self.wc * sin + self.ws * cos)
        keep, tiny, eta = 1 - 1e-4, 1e-8, self.params.eta
        self.acc_a = keep * self.acc_a + slope**2 * (z @ z)
        self.acc_c = keep * self.acc_c + (g * cos) ** 2
        self.acc_s = keep * self.acc_s + (g * sin) ** 2
        self.acc_b = keep * self.acc_b + pull(f) ** 2
        rate = eta * 20 / math.sqrt(max(len(z), 1))
        self.alpha = self.alpha - np.outer(rate * slope / np.sqrt(self.acc_a + tiny), z)
        self.wc = self.wc - eta * g * cos / np.sqrt(self.acc_c + tiny)
        self.ws = self.ws - eta * g * sin / np.sqrt(self.acc_s + tiny)
        self.b -= 0.4 * eta * pull(f) / math.sqrt(self.acc_b + tiny)
        self.tables.learn(x, g_tables, eta)
        g_share = pull(f + self.share * lag) * lag
        self.acc_share = 0.999 * self.acc_share + g_share**2
        self.share = min(max(self.share - eta * g_share / math.sqrt(self.acc_share + tiny), 0.0), 1.0)
        follow = max(1 / self.t, 1e-3)
        self.slow_c = self.slow_c + follow * (self.wc - self.slow_c)
        self.slow_s = self.slow_s + follow * (self.ws - self.slow_s)
        self.slow_b += follow * (self.b - self.slow_b)

    def move_gamma(self, y: int, f: float, weight: float) -> None:
        """Line 12 (eq. 17), or the stochastic form before it."""
        tau = self.params.tau
        beta = self.params.beta / (1 + self.params.lam * (self.t - 1))
        if self.params.gamma_update == "stochastic":
            error = self.t / self.n_neg / (1 + math.exp(-f)) if y == -1 else 0.0
            self.gamma += beta * (error - tau)
        elif y == -1 and (self.gate.by_alarm or weight > 0):
            if not self.gate.by_alarm:
                self.window.extend([int(f > 0)] * min(int(weight), self.params.window))
            self.gamma *= 1 + beta * (self.share_above_zero() - tau)
        low, high = (1e-6, 1e6) if self.params.preset == "paper" else (0.05, 50.0)
        self.gamma = min(max(self.gamma, low), high)
