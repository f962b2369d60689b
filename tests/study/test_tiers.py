"""The study of tiers: what its rows are, and what its gates make of them."""

import pytest

from npstream.study import tiers
from npstream.study.datasets import DatasetSource
from npstream.study.stream_gates import RATE_BARS


def test_every_tier_has_a_row_beside_a_model_of_its_own() -> None:
    """The widest tier is the model of its rate alone; a stricter one has fewer false alarms."""
    (task,) = tiers.study(DatasetSource(), names=["gmm2"], quick=True).tasks
    block, review = task.run()

    assert [(row["tier"], row["tau"]) for row in (block, review)] == list(tiers.TIERS)
    assert (review["fpr"], review["score"]) == (review["alone_fpr"], review["alone_score"])
    assert float(block["fpr"]) < float(review["fpr"])


def rows(**ratios: float) -> list[dict[str, str]]:
    """A run of each tier in the middle of its bars, except for these FPR/tau by tier."""
    found = []
    for name, tau in tiers.TIERS:
        fpr = tau * ratios.get(name, sum(RATE_BARS[tau]) / 2)
        row = {"set": "moons", "tier": name, "tau": tau, "seed": 0, "rows": 50_000, "negatives": 40_000}
        found.append({**row, "fpr": fpr, "score": 0.5, "alone_fpr": fpr, "alone_score": 0.5})
    return [{name: str(value) for name, value in row.items()} for row in found]


@pytest.mark.parametrize(("ratios", "failing"), [({}, 0), ({"block": 1.2}, 1), ({"review": 0.7}, 1)])
def test_a_rate_outside_its_bar_fails_its_gate(ratios: dict[str, float], failing: int) -> None:
    """And no other."""
    gates = tiers.report(rows(**ratios)).gates

    assert len(gates) == 3
    assert sum(not gate.passed for gate in gates) == failing


def test_few_expected_alarms_decide_nothing() -> None:
    """Where chance alone moves a rate beyond its bar there is no gate for it."""
    few = [{**row, "negatives": "1000"} for row in rows(block=3.0, review=3.0)]

    assert [gate.name for gate in tiers.report(few).gates if "FPR/tau" in gate.name] == []
