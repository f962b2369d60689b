"""Stress streams and late labels: what is measured, and that each gate can fail."""

import numpy as np
import pytest

from npstream.model import Model, Params
from npstream.report.rates import rates
from npstream.study import delays, methods, stress
from npstream.study.datasets import DatasetSource, permuted


def stress_row(stream: str, **figures: float) -> dict[str, str]:
    good = {"fpr": 0.01, "fpr_after": 0.01, "overdraft": 12.0} | figures
    row = {"stream": stream, "method": methods.PLUS} | {name: str(value) for name, value in good.items()}
    return dict.fromkeys(stress.COLUMNS, "0.5") | row


def delay_row(name: str, delay: int, **figures: float) -> dict[str, str]:
    good = {"fpr": 0.01, "worst_window": 0.015} | figures
    row = {"set": name, "tau": "0.01", "delay": str(delay)} | {each: str(value) for each, value in good.items()}
    return dict.fromkeys(delays.COLUMNS, "0.5") | row


def test_fpr_after_counts_the_next_negatives_only() -> None:
    """Targets and events before the change do not count; fewer negatives than asked are all taken."""
    decision = np.array([1, 1, 1, -1, 1, -1, 1], np.int8)
    y = np.array([-1, -1, 1, -1, -1, -1, -1], np.int8)

    assert stress.fpr_after(decision, y, 2, 2) == 0.5
    assert stress.fpr_after(decision, y, 2, 100) == 0.5
    assert stress.fpr_after(decision, y, 3, 3) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("row", "failing"),
    [
        (stress_row("flip"), None),
        (stress_row("flip", fpr_after=0.022), "flip"),
        (stress_row("scalejump", fpr_after=0.022), "scalejump"),
        (stress_row("imb01", fpr=0.0111), "imb01"),
        (stress_row("imb01", fpr=0.0089), "imb01"),
        (stress_row("rot", overdraft=41.5), "budget"),
        (stress_row("rot", fpr=0.5), None),
    ],
)
def test_stress_gates_fail_on_their_own_figure(row: dict[str, str], failing: str | None) -> None:
    """Each gate looks at its stream and figure; streams without a gate are reported only."""
    failed = [gate.name for gate in stress.report([row]).gates if not gate.passed]
    assert [name.split(",")[0] for name in failed] == ([failing] if failing else [])


def test_one_bad_seed_fails_a_stress_gate() -> None:
    """The worst run counts, not the mean."""
    rows = [stress_row("flip", fpr_after=after) for after in (0.0, 0.0, 0.03)]
    assert not stress.report(rows).gates[0].passed


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (delay_row("magic", 100), [True, True]),
        (delay_row("magic", 100, fpr=0.0079), [False, True]),
        (delay_row("magic", 5000, fpr=0.0079), [True, True]),
        (delay_row("a9a", 5000, fpr=0.0116), [False, True]),
        (delay_row("letter_z", 1000, worst_window=0.0181), [True, False]),
        (delay_row("elec2*", 1000, fpr=0.5), []),
        (delay_row("magic", 0, fpr=0.5), []),
    ],
)
def test_delay_gates_follow_their_bars(row: dict[str, str], expected: list[bool]) -> None:
    """Rate and worst window by delay; time-ordered sets and immediate labels are reported only."""
    assert [gate.passed for gate in delays.report([row]).gates] == expected


def test_delay_task_measures_after_the_warm_up() -> None:
    """Without delay the row equals a plain run from event 1,000 on."""
    study = delays.study(DatasetSource(), names=["gmm2"], seeds=1)
    task = next(task for task in study.tasks if (task.delay, task.tau) == (0, 0.1))  # type: ignore[attr-defined]
    (row,) = task.run()

    data = permuted(DatasetSource().load("gmm2"), 0)
    decision = Model.create(Params(d=2, tau=0.1, seed=0)).stream(data.x, data.y).decision
    assert row["fpr"] == rates(decision[1000:], data.y[1000:]).fpr
    assert row["np_score_all"] == rates(decision, data.y).np_score(0.1)


def test_the_rate_survives_flipped_labels() -> None:
    """On a short flip stream the default classifier stays at or below twice tau right after the flip."""
    task = next(iter(stress.study(names=["flip"], quick=True).tasks))
    (row,) = task.run()

    assert row["method"] == methods.PLUS
    assert float(row["fpr_after"]) <= 0.02
    assert float(row["overdraft"]) <= 41


def test_delay_gates_say_how_many_single_runs_are_outside() -> None:
    """The mean decides, and a run beyond the bar is counted in the figure instead of disappearing in it."""
    rows = [delay_row("magic", 1000, fpr=fpr) for fpr in (0.0075, 0.009, 0.009)]
    gate = delays.report(rows).gates[0]

    assert gate.passed
    assert "1 of 3 outside" in gate.figure
    assert "mean over seeds" in gate.name
