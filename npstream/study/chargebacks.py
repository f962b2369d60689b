"""A chargeback desk with known truth: who is labelled depends on who was alarmed, late and not always rightly.

A day has 1,667 payments. Alarms, and the review sample, are looked at after an hour, and
nine verdicts of ten are right; four of five missed targets come back as a chargeback after
30 days; nothing else is ever labelled. After a week an observation waits no longer: a
chargeback brings its features back.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Signs
from npstream.model import Model, Op, Operations, Params, seeded
from npstream.model.sampling import CODES, FIRST_REVIEWED, Sampling, no_sample, reviewed
from npstream.partition.review import places
from npstream.report.intervals import sampled, wilson

VERSION = 2
"""Of all that is said here about desk and customers: earlier results are those of another one."""
DAYS = 120
EVENTS = 200_000
TAU = 0.01
REVIEW = 0.002
RIGHT, RETURNED = 0.9, 0.8
_D, _SPREAD, _TURN = 8, 1.2, np.pi / 4
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Truth:
    """A stream of which everything is known, and what desk and customers will say of each event."""

    x: NDArray[np.float32]
    y: Signs
    verdict: Signs
    returned: Bools
    sampled: Bools


def stream(share: float, seed: int, events: int = EVENTS) -> tuple[Truth, Truth]:
    """The stream, and a tenth as much of labelled history before it; both classes turn slowly by 45 degrees."""
    rng = np.random.default_rng([seed, round(1000 * share)])
    n = events + events // 10
    centres = rng.normal(0, _SPREAD, (2, 4, _D))
    y = np.where(rng.random(n) < share, 1, -1).astype(np.int8)
    x = centres[(y + 1) // 2, rng.integers(0, 4, n)] + rng.normal(0, 1, (n, _D))
    angle = _TURN * np.arange(n)[:, None] / n
    even, odd = x[:, 0::2].copy(), x[:, 1::2].copy()
    x[:, 0::2], x[:, 1::2] = np.cos(angle) * even - np.sin(angle) * odd, np.sin(angle) * even + np.cos(angle) * odd
    verdict = np.where(rng.random(n) < RIGHT, y, -y).astype(np.int8)
    whole = Truth(x.astype(np.float32), y, verdict, rng.random(n) < RETURNED, places(0, n, REVIEW, seed, 0))
    return _part(whole, slice(events // 10, None)), _part(whole, slice(0, events // 10))


def _part(of: Truth, rows: slice) -> Truth:
    return Truth(of.x[rows], of.y[rows], of.verdict[rows], of.returned[rows], of.sampled[rows])


@dataclass(frozen=True, slots=True)
class Desk:
    """One way to run it. `cold` False: from a model trained on labelled history."""

    name: str
    params: Params
    review: float
    cold: bool = True
    expired_are_negative: bool = False


VERDICTS, EXPIRY, ALARM_RATE, SAMPLE, SEEDED = (
    *("fpr, verdicts alone", "fpr, expired are non-targets"),
    *("alarm_rate", "fpr and sample", "fpr and sample, seeded"),
)


def desks(seed: int) -> list[Desk]:
    """Two ways without a sample, and the three that this is about."""
    fpr, alarms = Params(d=_D, tau=TAU, seed=seed), Params(d=_D, tau=TAU, seed=seed, control="alarm_rate")
    return [
        Desk(VERDICTS, fpr, 0.0, cold=False),
        Desk(EXPIRY, fpr, 0.0, expired_are_negative=True),
        Desk(ALARM_RATE, alarms, REVIEW, expired_are_negative=True),
        Desk(SAMPLE, fpr, REVIEW, expired_are_negative=True),
        Desk(SEEDED, fpr, REVIEW, cold=False, expired_are_negative=True),
    ]


@dataclass(frozen=True, slots=True)
class DeskRun:
    """What was decided, and at the end of each week the labels of the sample, false alarms and labelled non-targets."""

    decision: Signs
    sample: NDArray[np.int64]
    plain: NDArray[np.int64]

    def interval(self, week: int, review: float) -> tuple[float, float]:
        """The printed 95% interval of the false-positive rate, from the labels that came in this week."""
        if not review:
            hits, trials = self._added(self.plain, week)
            return wilson(int(hits), int(trials))
        (hits, _), (others, _), (reviewed, _) = self._added(self.sample, week)
        return sampled(int(hits), [(int(others), 1.0), (int(reviewed), review)])[1]

    @staticmethod
    def _added(counts: NDArray[np.int64], week: int) -> Any:
        return counts[week] - counts[week - 1] if week else counts[0]


def run(desk: Desk, truth: Truth, history: Truth) -> DeskRun:
    """Decide the stream hour by hour; what is labelled follows from what was decided."""
    model = Model.create(desk.params)
    if not desk.cold:
        model = seeded(model.learn_many(history.x, history.y), desk.params, stream=0)
    sampling, labels = _sampling(desk), _Labels(desk, truth)
    n = len(truth.y)
    decided, decision = np.zeros(n, np.int8), np.zeros(n, np.int8)
    sample, plain = [], []
    hour = n // (24 * DAYS)
    for start in range(0, n, hour):  # no label falls due within the hour that it is for
        event = np.arange(start, min(start + hour, n))
        operations = labels.operations(event)
        outcome = model.run(operations, decided, sampling)
        decision[event] = outcome.decision[operations.code == Op.SCORE]
        labels.looked_at[event] = (decision[event] > 0) | reviewed(decided[event])
        if (event[-1] + 1) // week_of(n) > start // week_of(n):
            sample.append(sampling.labelled[: FIRST_REVIEWED + 1].copy())
            plain.append([model.false_alarms, model.negatives])
    return DeskRun(decision, np.array(sample), np.array(plain))


def week_of(events: int) -> int:
    """Events in a week."""
    return 7 * events // DAYS


class _Labels:
    """When which label falls due."""

    def __init__(self, desk: Desk, truth: Truth) -> None:
        n = len(truth.y)
        self._desk, self._truth = desk, truth
        self._hour, self._week, self._month = n // (24 * DAYS), week_of(n), 30 * n // DAYS
        self._returned = truth.returned & (truth.y > 0)
        self.looked_at = np.zeros(n, bool)

    def operations(self, event: NDArray[np.int64]) -> Operations:
        """The decisions of an hour, each after the labels that are due by then."""
        truth, seen, returned = self._truth, self.looked_at, self._returned
        verdicts = _due(seen, event, self._hour)
        returns = _due(returned & ~seen, event, self._month)
        gone = _due(~seen, event, self._week)
        who = np.concatenate([verdicts, returns, gone, event])
        due = np.concatenate([verdicts + self._hour, returns + self._month, gone + self._week, event])
        at_expiry = Op.LEARN if self._desk.expired_are_negative else Op.RELEASE
        sizes = [verdicts.size, returns.size, gone.size, event.size]
        code = np.repeat(np.array([Op.LEARN, Op.LEARN, at_expiry, Op.SCORE], np.int8), sizes)
        sampled_code = np.where(truth.sampled[event] & (self._desk.review > 0), -FIRST_REVIEWED, 0)
        y = np.concatenate([truth.verdict[verdicts], np.ones(returns.size), np.full(gone.size, -1), sampled_code])
        slot = np.concatenate([verdicts, np.full(returns.size, -1), gone, event])
        order = np.lexsort((code == Op.SCORE, due))
        labels, slots = y[order].astype(np.int8), slot[order].astype(np.int32)
        return Operations(code[order], truth.x[who[order]], np.zeros(who.size), labels, slots)


def _due(of: Bools, event: NDArray[np.int64], delay: int) -> NDArray[np.int64]:
    """Those events whose label falls due with one of these."""
    first = max(int(event[0]) - delay, 0)
    return first + np.flatnonzero(of[first : max(int(event[-1]) + 1 - delay, 0)])


def _sampling(desk: Desk) -> Sampling:
    if not desk.review:
        return no_sample()
    weight = np.zeros(CODES)
    weight[[0, FIRST_REVIEWED]] = 1.0, 1.0 / desk.review
    learned_max = 1.0 if desk.expired_are_negative else np.inf
    return Sampling(weight, np.zeros((CODES, 2), np.int64), max(1.0, TAU / desk.review), learned_max)
