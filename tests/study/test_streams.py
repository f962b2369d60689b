"""The stream comparison and its gates."""

from pathlib import Path

import numpy as np
import pytest

from npstream.model import Model, Params
from npstream.report.rates import rates
from npstream.study import methods, streams
from npstream.study.datasets import DatasetSource, permuted
from npstream.study.gates import Gate, all_within, at_least, at_most
from npstream.study.stream_gates import REFERENCE_SETS, check
from npstream.study.tally import StreamResults

EARLIER = {(f"set{i}", 0.1): 0.19 if i < 13 else 0.1 for i in range(REFERENCE_SETS)}


def made_up(
    plus: float = 0.17, olnp: float = 0.5, fpr: float = 0.097, sets: int = REFERENCE_SETS
) -> list[dict[str, str]]:
    """Rows of a comparison in which every set has the same figures."""
    return [
        {
            "set": f"set{i}",
            "method": method,
            "tau": "0.1",
            "fpr": str(fpr),
            "negatives": "5000",
            "rows": "10000",
            "q4_np_score": str(plus if method == methods.PLUS else olnp),
        }
        for i in range(sets)
        for method in methods.METHODS
    ]


def verdicts(rows: list[dict[str, str]]) -> list[bool]:
    return [gate.passed for gate in check(StreamResults(rows), EARLIER)]


def test_reference_has_every_set_at_every_rate() -> None:
    """18 sets, five rates, five sets in time order."""
    known = streams.reference()

    assert len({name for name, _ in known}) == REFERENCE_SETS
    assert {tau for _, tau in known} == set(streams.TAUS)
    assert len({name for name, _ in known if name.endswith("*")}) == 5


def test_good_figures_pass_all_four_gates() -> None:
    """Rate, mean, and wins against the earlier form and OLNP: four gates per rate, all passed."""
    assert verdicts(made_up()) == [True] * 4


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"fpr": 0.103}, [False, True, True, True]),
        ({"fpr": 0.093}, [False, True, True, True]),
        ({"plus": 0.181}, [True, False, True, True]),
        ({"plus": 0.191}, [True, False, False, True]),
        ({"olnp": 0.16}, [True, True, True, False]),
    ],
)
def test_each_gate_can_fail_by_itself(changes: dict[str, float], expected: list[bool]) -> None:
    """A figure just beyond one bar fails that gate and no other that it does not touch."""
    assert verdicts(made_up(**changes)) == expected  # type: ignore[arg-type]


def test_means_are_only_judged_over_all_reference_sets() -> None:
    """With a set missing the rate gate alone is checked."""
    assert verdicts(made_up(sets=REFERENCE_SETS - 1, plus=0.9)) == [True]


def test_rates_of_streams_with_few_expected_alarms_are_left_out() -> None:
    """Below 50 expected false alarms the ratio is noise and not judged."""
    rows = [row | {"negatives": "499", "fpr": "0.5"} for row in made_up(sets=1)]
    assert check(StreamResults(rows), {}) == []


@pytest.mark.parametrize(("rows", "gates", "bar"), [("5300", 1, "0.161"), ("5299", 0, "-")])
def test_a_reference_set_cut_short_has_neither_bar_nor_gate(rows: str, gates: int, bar: str) -> None:
    """What is known of a whole set is not held against a part of it."""
    found = streams.report([row | {"set": "banana", "rows": rows} for row in made_up(sets=1)])

    assert len(found.gates) == gates
    assert found.sections[0].tables[0].rows[0][3] == bar


def test_gates_compare_the_right_way_and_never_pass_nan() -> None:
    """Bars are inclusive, and a figure that is no number, or none at all, fails."""
    nan = float("nan")
    assert [at_most("g", f, 1.0).passed for f in (1.0, 1.01, nan)] == [True, False, False]
    assert [at_least("g", f, 15).passed for f in (15, 14, nan)] == [True, False, False]
    assert [all_within("g", f, 0.8, 1.2).passed for f in ([0.8, 1.2], [0.79, 1], [1, nan], [])] == [
        True,
        False,
        False,
        False,
    ]
    assert Gate("name", "2", "<= 1", False).line() == "FAIL  name: 2 (bar <= 1)"


def test_task_row_is_what_the_model_did() -> None:
    """A row holds the rates of a plain run over the same order, of the whole stream and of its last quarter."""
    study = streams.study(DatasetSource(), names=["moons"], taus=(0.1,), seeds=1)
    task = next(task for task in study.tasks if "plus" in repr(task))
    (row,) = task.run()

    data = permuted(DatasetSource().load("moons"), 0)
    decision = Model.create(Params(d=2, tau=0.1, seed=0)).stream(data.x, data.y).decision
    assert row["np_score"] == rates(decision, data.y).np_score(0.1)
    assert row["q4_fpr"] == rates(decision[22_500:], data.y[22_500:]).fpr
    assert set(row) == set(streams.COLUMNS)


def test_keys_tell_settings_data_and_order_apart() -> None:
    """No two tasks of a study share a key, and other data under the same name has other keys."""
    study = streams.study(DatasetSource(), names=["moons", "gmm2"], seeds=2)
    keys = {task.key for task in study.tasks}
    assert len(keys) == len(study.tasks) == 2 * 2 * len(streams.TAUS) * len(methods.METHODS)


def test_changed_data_is_run_again(tmp_path: Path) -> None:
    """The key of a task follows the content of the file."""
    keys = []
    for shift in (0, 1):
        folder = tmp_path / str(shift)
        folder.mkdir()
        np.savez(folder / "mine.npz", X=np.arange(8).reshape(4, 2) + shift, y=[1, -1, -1, 1])
        keys.append({task.key for task in streams.study(DatasetSource(folder), seeds=1).tasks})
    assert keys[0].isdisjoint(keys[1])


def test_unknown_folder_sets_are_all_played(tmp_path: Path) -> None:
    """A folder without any reference set is compared as it is, permuted."""
    np.savez(tmp_path / "mine.npz", X=np.arange(8).reshape(4, 2), y=[1, -1, -1, 1])
    tasks = streams.study(DatasetSource(tmp_path), seeds=1).tasks
    assert {task.name for task in tasks} == {"mine"}  # type: ignore[attr-defined]
