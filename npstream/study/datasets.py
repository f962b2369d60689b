"""Where the study's data come from: a folder of files, the built-in generators, scikit-learn's sets."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npstream.data.files import READERS, read
from npstream.errors import UsageError
from npstream.study.drift import DRIFTING
from npstream.study.generators import STATIONARY, Recipe

RECIPES: dict[str, Recipe] = {**STATIONARY, **DRIFTING}


@dataclass(frozen=True, slots=True)
class Dataset:
    """One binary problem: `x` float32 (rows, dims), `y` int8 in {-1, +1}; `digest` distinguishes two versions."""

    name: str
    x: NDArray[np.float32]
    y: NDArray[np.int8]
    digest: str

    @property
    def rows(self) -> int:
        return int(self.x.shape[0])

    @property
    def dims(self) -> int:
        return int(self.x.shape[1])


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """A picklable description of where to look: the folder if there is one, then what is built in."""

    folder: Path | None = None

    def in_folder(self) -> list[str]:
        """Names of the folder's sets, sorted. Raises UsageError when the folder is missing or holds none."""
        return sorted(_files(self.folder)) if self.folder is not None else []

    def load(self, name: str, *, rows: int | None = None, seed: int = 0) -> Dataset:
        """The named set. `rows` and `seed` matter to generators only. Raises UsageError naming what is there."""
        return _load(self.folder, name, rows, seed)


def permuted(data: Dataset, seed: int, rows: int | None = None) -> Dataset:
    """The rows in a random order, cut to the first `rows`. The same seed gives the same order."""
    order = np.random.default_rng([seed, 0x9E37]).permutation(data.rows)[:rows]
    return Dataset(data.name, data.x[order], data.y[order], data.digest)


def head(data: Dataset, rows: int | None) -> Dataset:
    """The first `rows` rows in file order."""
    return Dataset(data.name, data.x[:rows], data.y[:rows], data.digest)


@lru_cache(maxsize=4)
def _load(folder: Path | None, name: str, rows: int | None, seed: int) -> Dataset:
    if folder is not None and name in (files := _files(folder)):
        return _dataset(name, *read(files[name]))
    if name in RECIPES:
        recipe = RECIPES[name]
        return _dataset(name, *recipe.generate(np.random.default_rng([seed, *name.encode()]), rows or recipe.rows))
    if name in SKLEARN:
        return _dataset(name, *_from_sklearn(name))
    known = [*(_files(folder) if folder is not None else ()), *RECIPES, *SKLEARN]
    raise UsageError(f"no data set named {name!r}; known here: {', '.join(sorted(known))}")


def _files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; give --data a folder of {', '.join(READERS)} files")
    found = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix in READERS and path.is_file()}
    if not found:
        raise UsageError(f"{folder} holds no data set; expected files ending in {', '.join(READERS)}")
    return found


def _dataset(name: str, x: NDArray[np.float32], y: NDArray[np.int8]) -> Dataset:
    hasher = hashlib.blake2b(np.array(x.shape, "<i8").tobytes(), digest_size=4)
    hasher.update(np.ascontiguousarray(x, "<f4").tobytes())
    hasher.update(y.tobytes())
    x.setflags(write=False)
    y.setflags(write=False)
    return Dataset(name, x, y, hasher.hexdigest())


# Which class is the target: the smaller one, or one class against the rest.
SKLEARN: dict[str, tuple[str, int]] = {
    "iris": ("load_iris", 1),
    "wine": ("load_wine", 2),
    "breast_cancer": ("load_breast_cancer", 0),
    "digits": ("load_digits", 8),
}


def _from_sklearn(name: str) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    loader, target = SKLEARN[name]
    try:
        from sklearn import datasets
    except ImportError:
        raise UsageError(f"{name} comes with scikit-learn; install it: pip install 'npstream[sklearn]'") from None
    load: Callable[..., Any] = getattr(datasets, loader)
    x, y = load(return_X_y=True)
    return np.ascontiguousarray(x, np.float32), np.where(y == target, 1, -1).astype(np.int8)
