"""Run the kernel and the oracle over the same events and say how far they are apart.

As a command (`python -m tests.model.against_oracle 500`) it prints one line per
case, so that a test can run it with the compiler switched off.
"""

import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.model import Model, Op, Params, Reason
from npstream.model.account import empty_account, set_windows
from npstream.records import Tier
from tests import naive
from tests.model.streams import Feed, at_once, corrected, delayed, reviewed, sampling_of

REASONS = 3
SHAPES = ((1, 1), (2, 100), (5, 13), (8, 40), (29, 16))
_OPS = {
    Op.SCORE: naive.SCORE,
    Op.SCORE_LEARN: naive.SCORE_LEARN,
    Op.LEARN: naive.LEARN,
    Op.RELEASE: naive.RELEASE,
    Op.CORRECT: naive.CORRECT,
}


Vector = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


class Case(NamedTuple):
    """One set of parameters, whether labels come late; shares of missing values, of reviews, of corrected labels.

    `learned_max`: most that a label counts in learning.
    """

    params: Params
    late: bool = False
    missing: float = 0.0
    review: float = 0.0
    corrected: float = 0.0
    learned_max: float = np.inf


class Gap(NamedTuple):
    """How many rows differ in decision, reason or count, and the largest difference of any number."""

    rows: int
    differing: int
    largest: float


def cases() -> dict[str, Case]:
    """Five shapes of both presets, then every option once."""
    found = {
        f"{preset}-{d}x{D}": Case(Params(preset=preset, d=d, D=D, tau=0.05, seed=d))
        for preset in ("plus", "paper")
        for d, D in SHAPES
    }
    found |= {
        "plus-late": Case(Params(d=3, D=20, tau=0.1), late=True),
        "plus-late-issue": Case(Params(d=3, D=20, tau=0.1, charge="issue", budget=2), late=True),
        "plus-late-tight-budget": Case(Params(d=3, D=20, tau=0.1, budget=2), late=True),
        "plus-tight-budget": Case(Params(d=2, D=20, tau=0.02, budget=1)),
        "plus-one-class": Case(Params(d=2, D=20, tau=0.1, one_class=True)),
        "plus-frozen": Case(Params(d=2, D=20, tau=0.1, learning=False)),
        "plus-missing": Case(Params(d=4, D=20, tau=0.1), missing=0.3),
        "plus-mixed": Case(Params(d=6, D=20, tau=0.1, buckets=(0, 8, 0, 64, 2, 0)), late=True, missing=0.1),
        "plus-categories": Case(Params(d=2, D=10, tau=0.1, buckets=(16, 64))),
        "plus-mixed-one-class": Case(Params(d=3, D=20, tau=0.1, buckets=(0, 8, 0), one_class=True), missing=0.1),
        "plus-matern": Case(Params(d=3, D=20, tau=0.1, kernel="matern")),
        "paper-late": Case(Params(preset="paper", d=3, D=20, tau=0.1), late=True),
        "paper-one-class": Case(Params(preset="paper", d=2, D=20, tau=0.1, one_class=True, input="zscore")),
        "paper-stochastic": Case(Params(preset="paper", d=2, D=20, tau=0.1, gamma_update="stochastic", lam=1e-3)),
        "paper-unit": Case(Params(preset="paper", d=3, D=20, tau=0.1, input="unit", kernel="laplacian")),
        "paper-zscore": Case(Params(preset="paper", d=3, D=20, tau=0.1, input="zscore", beta=0.01)),
        "plus-alarm-rate": Case(Params(d=3, D=20, tau=0.1, control="alarm_rate")),
        "plus-alarm-rate-late": Case(Params(d=3, D=20, tau=0.1, control="alarm_rate"), late=True),
        "plus-alarm-rate-tight-budget": Case(Params(d=3, D=20, tau=0.02, budget=1, control="alarm_rate"), late=True),
        "plus-alarm-rate-mixed": Case(
            Params(d=6, D=20, tau=0.1, buckets=(0, 8, 0, 64, 2, 0), control="alarm_rate"), late=True, missing=0.1
        ),
        "plus-alarm-rate-one-class": Case(Params(d=2, D=20, tau=0.1, one_class=True, control="alarm_rate"), late=True),
        "plus-alarm-rate-frozen": Case(Params(d=2, D=20, tau=0.1, learning=False, control="alarm_rate")),
        "external-alarm-rate": Case(Params(preset="external", tau=0.05, budget=2, control="alarm_rate"), late=True),
        "plus-review": Case(Params(d=3, D=20, tau=0.1), late=True, review=0.1),
        "plus-review-rare": Case(Params(d=3, D=20, tau=0.1), late=True, review=0.01),
        "plus-review-alarm-rate": Case(Params(d=3, D=20, tau=0.1, control="alarm_rate"), late=True, review=0.1),
        "plus-review-once": Case(Params(d=3, D=20, tau=0.1), late=True, review=0.05, learned_max=1.0),
        "external-review": Case(Params(preset="external", tau=0.05, budget=2), late=True, review=0.1),
        "paper-review": Case(Params(preset="paper", d=3, D=20, tau=0.1), late=True, review=0.1),
        "plus-corrected": Case(Params(d=3, D=20, tau=0.1, budget=3), late=True, corrected=0.2),
        "plus-corrected-at-once": Case(Params(d=3, D=20, tau=0.1, budget=3), corrected=0.2),
        "plus-corrected-review": Case(Params(d=3, D=20, tau=0.1), late=True, review=0.1, corrected=0.2),
        "plus-corrected-alarm-rate": Case(
            Params(d=3, D=20, tau=0.1, control="alarm_rate"), late=True, corrected=0.2, missing=0.1
        ),
        "plus-corrected-one-class": Case(Params(d=2, D=20, tau=0.1, one_class=True), late=True, corrected=0.2),
        "plus-corrected-frozen": Case(Params(d=2, D=20, tau=0.1, learning=False), late=True, corrected=0.2),
        "paper-corrected": Case(Params(preset="paper", d=3, D=20, tau=0.1), late=True, corrected=0.2),
        "external-corrected": Case(
            Params(preset="external", tau=0.05, charge="issue", budget=2), late=True, corrected=0.2
        ),
        "plus-tiers": Case(Params(d=3, D=20, tiers=(("block", 0.02), ("hold", 0.05), ("review", 0.1)))),
        "plus-tiers-late": Case(Params(d=3, D=20, tiers=(("block", 0.02), ("review", 0.1)), budget=2), late=True),
        "plus-tiers-issue": Case(
            Params(d=3, D=20, tiers=(("block", 0.02), ("review", 0.1)), budget=2, charge="issue"), late=True
        ),
        "plus-tiers-alarm-rate": Case(
            Params(d=3, D=20, tiers=(("block", 0.02), ("review", 0.1)), budget=2, control="alarm_rate"), late=True
        ),
        "plus-tiers-review": Case(Params(d=3, D=20, tiers=(("block", 0.02), ("review", 0.1))), late=True, review=0.05),
        "external-tiers": Case(
            Params(preset="external", tiers=(("block", 0.02), ("review", 0.1)), budget=2), late=True
        ),
        "plus-tiers-corrected": Case(
            Params(d=3, D=20, tiers=(("block", 0.02), ("review", 0.1)), budget=2), late=True, corrected=0.2
        ),
        "external": Case(Params(preset="external", tau=0.05)),
        "external-late": Case(Params(preset="external", tau=0.05, charge="issue", budget=2), late=True),
    }
    return found


def compare(case: Case, events: int) -> Gap:
    """Kernel and oracle from the same initial weights over the same events."""
    feed = (delayed if case.late else at_once)(case.params, events, seed=7, missing=case.missing)
    sampling = None
    if case.corrected:
        feed = corrected(feed, case.corrected)
    if case.review:
        feed, sampling = reviewed(feed, case.review), sampling_of(case.review, case.params.tau, case.learned_max)
    model = Model.create(case.params, stream=3)
    oracle = naive.Naive(case.params, stream=3, review=case.review, learned_max=case.learned_max)
    if case.params.preset != "external":
        start = model.arrays()
        if case.params.numbers:
            oracle.alpha = start["alpha"].T.copy()
        oracle.wc, oracle.ws = start["wc"].copy(), start["ws"].copy()
        oracle.b = float(start["head"][1])
    account = empty_account(len(case.params.rates))
    set_windows(account, *case.params.rates)
    got = feed.run(model, sampling=sampling, account=account, reasons=REASONS)
    expected = oracle.run(_events(feed))
    differing, largest = 0, 0.0
    for e, row in enumerate(expected):
        exact = (int(got.decision[e]), Reason(int(got.reason[e])).name.lower(), int(got.t[e]), int(got.depth[e]))
        differing += exact != (row.decision, row.reason, row.t, row.depth)
        numbers = (got.score[e], got.threshold[e], got.gamma[e], got.fpr[e])
        asked = (row.score, row.threshold, row.gamma, row.fpr)
        largest = max(largest, *(abs(float(a) - b) for a, b in zip(numbers, asked, strict=True)))
        largest = max(largest, _apart(got.column[e], got.contribution[e], row.moved))
    differing += _counted(model) != _oracle_counters(oracle)
    kinds = [kept for accounts in oracle.accounts for kept in accounts.values()]
    for own, kept in enumerate(kinds):
        blocks = [[0, 0]] * 64 + kept.blocks
        differing += account.total[own].tolist() != kept.total
        in_order = np.roll(account.block[own], -1 - account.at[own], axis=0).tolist()
        differing += in_order != blocks[-64:]
    for tier, gate in zip(model.tiers[::-1], oracle.gates, strict=False):
        largest = max(largest, abs(tier.threshold - gate.q), abs(tier.fpr - gate.fpr), abs(tier.tpr - gate.tpr))
        left = case.params.budget - gate.bucket - gate.expected()
        largest = max(largest, abs(tier.budget_left - left))
        counted = (gate.negatives, gate.positives, gate.false_alarms, gate.detections)
        differing += tier.alarms != gate.alarms
        differing += _counted(tier) != (*counted, gate.outstanding, gate.held, gate.withheld)
    if sampling is not None:
        differing += sampling.labelled[:3].tolist() != list(oracle.sample.values())
    return Gap(len(expected), differing, largest)


def _apart(column: Ints, contribution: Vector, moved: Vector | None) -> float:
    """How far the reasons of a row are from what the columns moved.

    Two that moved it about as far may be in either order: then both orders are near.
    """
    if moved is None:
        return float((column != -1).sum())
    named = int((column >= 0).sum())
    largest_first = np.sort(np.abs(moved))[::-1][: column.size]
    order = np.abs(np.abs(contribution) - largest_first)
    own = np.abs(contribution[:named] - moved[column[:named]])
    return float(max(order.max(initial=0.0), own.max(initial=0.0), named - len({*column[:named].tolist()})))


def _events(feed: Feed) -> list[naive.Event]:
    return [
        naive.Event(
            _OPS[Op(int(code))],
            x.astype(np.float64),
            int(y),
            int(slot) if slot >= 0 else None,
            float(score),
        )
        for code, x, score, y, slot in zip(*feed.operations, strict=True)
    ]


def _counted(of: Model | Tier) -> tuple[int, ...]:
    counted = (of.negatives, of.positives, of.false_alarms, of.detections)
    return (*counted, of.outstanding, of.held, of.withheld)


def _oracle_counters(oracle: naive.Naive) -> tuple[int, ...]:
    gate = oracle.gate
    counted = (gate.negatives, gate.positives, gate.false_alarms, gate.detections)
    return (*counted, gate.outstanding, gate.held, gate.withheld)


if __name__ == "__main__":
    for name, case in cases().items():
        print(name, *compare(case, int(sys.argv[1])))
