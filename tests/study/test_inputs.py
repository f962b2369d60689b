"""Folded categories, deleted numbers, and what is measured of them."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from npstream.model import Model, Params
from npstream.report.rates import rates
from npstream.study import input_tables, inputs
from npstream.study.datasets import DatasetSource
from npstream.study.folding import BUCKETS, fold, one_hot_groups
from npstream.study.gaps import delete, fill, fill_and_flag

NAN = float("nan")


def columns(*rows: str) -> NDArray[np.float32]:
    """Rows of digits, one column each."""
    return np.array([[float(digit) for digit in row] for row in rows], np.float32)


def one_hot(codes: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    return np.eye(size, dtype=np.float32)[codes]


def write_set(folder: Path, n: int = 400) -> DatasetSource:
    """One number and a category of five values as one-hot columns; both say something about the target."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random(n) < 0.4, 1, -1)
    codes = np.where(rng.random(n) < 0.3, rng.integers(0, 5, n), np.where(y == 1, 3, 1))
    np.savez(folder / "tiny.npz", X=np.column_stack([rng.normal(y, 1), one_hot(codes, 5)]), y=y)
    return DatasetSource(folder)


# Folding


def test_adjacent_groups_are_distinguished_by_a_row_that_has_both() -> None:
    """A group ends where a row would have a second 1; a group in which a row has none is one all the same."""
    x = columns("10100", "01100", "10010", "01000")
    assert one_hot_groups(x) == [range(2), range(2, 5)]


def test_numbers_and_single_flags_stay_what_they_are() -> None:
    """Values other than 0 and 1 end a group, and one column alone is no category, constant or not."""
    x = columns("71015", "11105", "01105")
    assert one_hot_groups(x) == [range(2, 4)]


def test_folded_rows_have_numbers_first_and_codes_with_gaps() -> None:
    """The code is the place of the 1, a row without one is missing, and cells are a power of two."""
    folded = fold(columns("10520", "01701", "00800"))

    np.testing.assert_array_equal(folded.x, np.array([[5, 2, 0, 0], [7, 0, 1, 1], [8, 0, 0, NAN]], np.float32))
    assert (folded.buckets, folded.values, folded.numbers) == ((0, 0, 0, BUCKETS), (2,), 3)


@pytest.mark.parametrize(("size", "cells"), [(2, 64), (64, 64), (65, 128), (129, 256)])
def test_cells_grow_with_the_values(size: int, cells: int) -> None:
    """64 cells, or the next power of two that has one for each value."""
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(size), 2))
    folded = fold(one_hot(codes, size))

    assert folded.buckets == (cells,)
    np.testing.assert_array_equal(folded.x[:, 0], codes)


# Gaps


def test_values_of_targets_are_deleted_as_often_as_said() -> None:
    """Each class loses its share, categories lose nothing, and what stays is unchanged."""
    n = 20_000
    x = np.random.default_rng(2).normal(size=(n, 3)).astype(np.float32)
    y = np.where(np.arange(n) % 4 == 0, 1, -1).astype(np.int8)
    gone = np.isnan(with_gaps := delete(x, y, 2, 0.3, 2, seed=5))

    assert gone[y == 1, :2].mean() == pytest.approx(0.6, abs=0.015)
    assert gone[y == -1, :2].mean() == pytest.approx(0.3, abs=0.015)
    assert not gone[:, 2].any()
    np.testing.assert_array_equal(with_gaps[~gone], x[~gone])


def test_deletion_is_repeatable_and_nested() -> None:
    """The same seed deletes the same values, another seed others, a larger share more of the same."""
    x, y = np.zeros((500, 4), np.float32), np.full(500, -1, np.int8)
    few, again, many, other = (
        np.isnan(delete(x, y, 4, share, 1, seed)) for share, seed in ((0.1, 1), (0.1, 1), (0.3, 1), (0.1, 2))
    )
    np.testing.assert_array_equal(few, again)
    assert (many[few]).all()
    assert many.sum() > few.sum()
    assert (few != other).any()


def test_a_gap_is_filled_with_the_mean_of_the_rows_above() -> None:
    """Nothing of the row itself or of later rows is used; before the first value it is 0; codes keep their gaps."""
    x = np.array([[NAN, NAN], [2, 1], [4, NAN], [NAN, 3], [9, 1], [NAN, 1]], np.float32)
    expected = np.array([[0, NAN], [2, 1], [4, NAN], [3, 3], [9, 1], [5, 1]], np.float32)

    np.testing.assert_array_equal(fill(x, 1), expected)
    flagged = fill_and_flag(x, 1)
    np.testing.assert_array_equal(flagged[:, 1:], expected)
    np.testing.assert_array_equal(flagged[:, 0], [1, 0, 0, 1, 0, 1])


# The study


def test_every_form_of_a_set_is_run(tmp_path: Path) -> None:
    """One-hot, folded, and three forms of each of four deletions; no two tasks share a key."""
    tasks = inputs.study(write_set(tmp_path), seeds=2).tasks

    assert len({task.key for task in tasks}) == len(tasks) == (2 + 3 * 4) * len(inputs.TAUS) * 2


def test_nothing_is_deleted_where_no_number_varies(tmp_path: Path) -> None:
    """A constant column beside categories is no number to lose."""
    x = np.column_stack([np.full(60, 7.0), one_hot(np.arange(60) % 3, 3)])
    np.savez(tmp_path / "flags.npz", X=x, y=np.where(np.arange(60) % 2 == 0, 1, -1))
    tasks = inputs.study(DatasetSource(tmp_path), seeds=1).tasks

    assert {task.form for task in tasks} == {"one-hot", "categories"}  # type: ignore[attr-defined]


def test_task_row_is_what_the_model_did(tmp_path: Path) -> None:
    """The missing form is a plain run over the folded rows with gaps, in the order of the seed."""
    source = write_set(tmp_path)
    task = inputs.InputTask(source, "tiny", "", 300, True, "missing", 0.3, 2, 0.1, 4)
    (row,) = task.run()

    data = source.load("tiny")
    folded = fold(data.x)
    x, y = delete(folded.x[:300], data.y[:300], 1, 0.3, 2, seed=4), data.y[:300]
    params = Params(d=2, buckets=(0, 64), tau=0.1, seed=4)
    decision = Model.create(params).stream(x, y).decision
    assert row["np_score"] == rates(decision, y).np_score(0.1)
    assert (row["numbers"], row["values"], row["columns"]) == (1, "5", 2)
    assert set(row) == set(inputs.COLUMNS)


@pytest.mark.parametrize(("form", "wide"), [("one-hot", 6), ("categories", 2), ("mean", 2), ("mean and flag", 3)])
def test_forms_have_their_columns(form: str, wide: int, tmp_path: Path) -> None:
    """One column for each 0/1 column, or for each category, and one more for each flag."""
    share = 0.3 if form.startswith("mean") else 0.0
    (row,) = inputs.InputTask(write_set(tmp_path, 120), "tiny", "", None, False, form, share, 1, 0.1, 0).run()
    assert row["columns"] == wide


def test_second_run_takes_all_from_the_file(tmp_path: Path) -> None:
    """Timings included: rows are kept as they are, and the report with them."""
    study = inputs.study(write_set(tmp_path), seeds=1)
    counts: list[tuple[int, int]] = []

    def run() -> tuple[object, bytes]:
        found = study.run(tmp_path / "out", 1, fresh=False, progress=lambda done, total: counts.append((done, total)))
        return found, (tmp_path / "out" / "inputs.csv").read_bytes()

    assert run() == run()
    assert counts[0] == (0, len(study.tasks))
    assert counts[-1] == (len(study.tasks), len(study.tasks))
    assert len(counts) == len(study.tasks) + 2


# Report and gates


def made_up(**figures: float) -> list[dict[str, str]]:
    """Rows in which every set has the same figures; a form's NP-score may be given by its name."""
    forms = [("one-hot", 0.0, 1), ("categories", 0.0, 1)]
    forms += [(form, 0.3, 2) for form in ("missing", "mean", "mean and flag")]
    return [
        dict.fromkeys(inputs.COLUMNS, "0.5")
        | {"set": name, "form": form, "deleted": str(share), "target_factor": str(factor), "tau": "0.1"}
        | {"negatives": "5000", "fpr": str(figures.get("fpr", 0.097)), "values": "3 12", "numbers": "4"}
        | {"np_score": str(figures.get(form, 0.5))}
        for name in input_tables.SETS
        for form, share, factor in forms
    ]


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({}, [True, True, True]),
        ({"categories": 0.511}, [False, True, True]),
        ({"missing": 0.501}, [True, False, True]),
        ({"fpr": 0.103}, [True, True, False]),
        ({"fpr": 0.093}, [True, True, False]),
    ],
)
def test_each_gate_can_fail_by_itself(figures: dict[str, float], expected: list[bool]) -> None:
    """Categories, gaps and the rate are judged apart."""
    assert [gate.passed for gate in input_tables.report(made_up(**figures)).gates] == expected


def test_gates_need_all_sets() -> None:
    """With a set missing nothing is judged."""
    assert input_tables.report([row for row in made_up() if row["set"] != "german"]).gates == []


def test_tables_show_what_was_folded_and_each_figure_beside_its_rival() -> None:
    """The folding, then both comparisons with a mean below."""
    categories, missing = input_tables.report(made_up(missing=0.4)).sections

    assert categories.tables[0].rows[0] == ["a9a", "4", "15", "2", "3, 12"]
    assert categories.tables[1].rows[-1] == ["mean", "0.500", "0.500", "0.500", "0.500", "0.97", "0.97", "0.50", "0.50"]
    assert missing.tables[0].rows[0][:2] == ["a9a", "30% / 60%"]
    assert missing.tables[0].rows[-1][6:9] == ["0.500", "0.400", "0.500"]
