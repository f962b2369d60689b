"""The online classifiers that are compared, each by name, with the settings it is run with."""

from typing import Any, Protocol

import numpy.typing as npt

from npstream.model import ALGORITHM, Model, Outcome, Params
from npstream.study.olnp import Olnp, TrackedOlnp

PLUS, PAPER, OLNP, TRACKED = "plus", "paper", "OLNP", "OLNP+tracker"
METHODS = (PLUS, PAPER, OLNP, TRACKED)
OLNP_VERSION = 1
"""Raised when the linear baseline would give other numbers."""


class Learner(Protocol):
    """Anything that can be tested and trained over a stream."""

    def stream(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Outcome: ...


def make(method: str, d: int, tau: float, seed: int) -> Learner:
    """A fresh classifier, tuned to no data set: `plus` and `paper` with their defaults, all standardising online."""
    if method == OLNP:
        return Olnp(d, tau)
    if method == TRACKED:
        return TrackedOlnp(d, tau)
    return Model.create(params(method, d, tau, seed))


def params(method: str, d: int, tau: float, seed: int) -> Params:
    """The parameters of a network method. The paper's form gets an online z-score: an offline one knows the future."""
    if method == PLUS:
        return Params(preset="plus", d=d, tau=tau, seed=seed)
    assert method == PAPER, method
    return Params(preset="paper", d=d, tau=tau, seed=seed, input="zscore")


def settings(method: str, d: int, tau: float, seed: int) -> dict[str, Any]:
    """Everything that determines what `make` builds, for the key of a result."""
    if method in (OLNP, TRACKED):
        # Its scaler, and the gate of the tracked form, are those of the model and change with its version.
        return {"method": method, "tau": tau, "version": [ALGORITHM, OLNP_VERSION]}
    return {"method": method, "model": params(method, d, tau, seed).fingerprint()}
