"""Data sets: files, generators, orders."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from npstream.errors import UsageError
from npstream.study.datasets import RECIPES, DatasetSource, head, permuted
from npstream.study.drift import DRIFTING
from npstream.study.generators import STATIONARY

X = np.array([[1.5, 0.0], [0.0, -2.0], [3.25, 4.0]], np.float32)
Y = np.array([1, -1, -1], np.int8)


def write_npz(folder: Path) -> None:
    np.savez(folder / "tiny.npz", X=X, y=Y)


def write_csv(folder: Path) -> None:
    (folder / "tiny.csv").write_text("y,a,b\n1,1.5,0\n0,0,-2\n0,3.25,4\n")


def write_plain_csv(folder: Path) -> None:
    (folder / "tiny.csv").write_text("1.5,0,1\n0,-2,-1\n3.25,4,-1\n")


def write_libsvm(folder: Path) -> None:
    (folder / "tiny.libsvm").write_text("2 1:1.5\n7 2:-2  # a comment\n\n7 1:3.25 2:4\n")


@pytest.mark.parametrize("write", [write_npz, write_csv, write_plain_csv, write_libsvm])
def test_every_format_reads_the_same(write: object, tmp_path: Path) -> None:
    """Archive, CSV with and without header, and LIBSVM (rarer label is the target) give the same rows."""
    write(tmp_path)  # type: ignore[operator]
    data = DatasetSource(tmp_path).load("tiny")

    np.testing.assert_array_equal(data.x, X)
    np.testing.assert_array_equal(data.y, Y)
    assert (data.x.dtype.str, data.y.dtype.str, data.rows, data.dims) == ("<f4", "|i1", 3, 2)
    assert DatasetSource(tmp_path).in_folder() == ["tiny"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "x,y\n", "holds no rows"),
        ("a.csv", "1,2\n3\n", "same number of cells"),
        ("a.csv", "1,1\nnan,0\n", "NaN or infinite"),
        ("a.csv", "1,1\n2,1\n", "exactly two label values"),
        ("a.csv", "1,1\n2,2\n3,3\n", "exactly two label values"),
        ("a.libsvm", "1 0:3\n", "indices from 1"),
        ("a.libsvm", "1 1:3\n1 x\n", "line 2: expected"),
        ("a.npz", "not an archive", "expected arrays X and y"),
    ],
)
def test_unusable_files_are_refused_by_name(name: str, content: str, problem: str, tmp_path: Path) -> None:
    """The message names the file and what is wrong with it."""
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=rf"{name}.*{problem}"):
        DatasetSource(tmp_path).load("a")


def test_missing_and_empty_folders_are_refused(tmp_path: Path) -> None:
    """A folder that is not there, or holds no data, says what was expected."""
    with pytest.raises(UsageError, match=r"is not a folder; give --data"):
        DatasetSource(tmp_path / "absent").in_folder()
    with pytest.raises(UsageError, match=r"holds no data set; expected files ending in \.npz"):
        DatasetSource(tmp_path).in_folder()


def test_unknown_name_lists_what_is_there(tmp_path: Path) -> None:
    """A misspelt set is refused with the known ones, of folder and generators."""
    write_npz(tmp_path)
    with pytest.raises(UsageError, match=r"no data set named 'mons'.*moons.*tiny"):
        DatasetSource(tmp_path).load("mons")


def test_folder_comes_before_what_is_built_in(tmp_path: Path) -> None:
    """A file named like a generator is the one that is read."""
    np.savez(tmp_path / "moons.npz", X=X, y=Y)
    assert DatasetSource(tmp_path).load("moons").rows == 3


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_generators_are_reproducible_and_sound(name: str) -> None:
    """The same seed gives the same set, another seed another one; values finite, both classes there."""
    data, again = (DatasetSource().load(name, rows=4000, seed=3) for _ in range(2))
    other = DatasetSource().load(name, rows=4000, seed=4)

    assert data.digest == again.digest != other.digest
    assert (data.rows, data.x.dtype.str, data.y.dtype.str) == (4000, "<f4", "|i1")
    assert np.isfinite(data.x).all()
    assert set(np.unique(data.y)) == {-1, 1}
    assert RECIPES[name].ordered == (name in DRIFTING) == (name not in STATIONARY)


def test_drifting_streams_change_where_they_say() -> None:
    """Labels flip, units triple and priors fall at the place and size of the recipe."""
    half = 5000
    flip, scale, prior = (DatasetSource().load(name, rows=10_000, seed=1) for name in ("flip", "scalejump", "prior"))
    before, after = (flip.x[part][flip.y[part] == 1].mean(axis=0) for part in (slice(half), slice(half, None)))
    negatives = flip.x[half:][flip.y[half:] == -1].mean(axis=0)

    np.testing.assert_allclose(before, negatives, atol=0.15)
    assert np.abs(before - after).max() > 0.3
    np.testing.assert_allclose(scale.x[half:].std(axis=0) / scale.x[:half].std(axis=0), 3, rtol=0.05)
    assert (prior.y[:1000] == 1).mean() > 0.25
    assert (prior.y[-1000:] == 1).mean() < 0.05


def test_imbalanced_streams_have_their_share_of_targets() -> None:
    """1% and 0.1% targets, within sampling error."""
    assert (DatasetSource().load("imb1").y == 1).mean() == pytest.approx(0.01, rel=0.2)
    assert (DatasetSource().load("imb01").y == 1).mean() == pytest.approx(0.001, rel=0.3)


def test_permutation_keeps_rows_together_and_is_repeatable() -> None:
    """A permuted set holds the same (row, label) pairs, in an order fixed by the seed; cuts take the front."""
    data = DatasetSource().load("gmm2", rows=500)
    mixed = permuted(data, 7)

    def pairs(x: NDArray[np.float32], y: NDArray[np.int8]) -> set[tuple[float, ...]]:
        return {(*row.tolist(), int(label)) for row, label in zip(x, y, strict=True)}

    assert pairs(mixed.x, mixed.y) == pairs(data.x, data.y)
    assert not np.array_equal(mixed.x, data.x)
    np.testing.assert_array_equal(permuted(data, 7, 100).x, mixed.x[:100])
    assert not np.array_equal(permuted(data, 8).x, mixed.x)
    np.testing.assert_array_equal(head(data, 100).y, data.y[:100])


@pytest.mark.slow
def test_sklearn_sets_are_binary_problems() -> None:
    """Where scikit-learn is installed its small sets can be named."""
    pytest.importorskip("sklearn")
    data = DatasetSource().load("iris")
    assert (data.rows, data.dims, int((data.y == 1).sum())) == (150, 4, 50)
