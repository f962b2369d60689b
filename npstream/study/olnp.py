"""The linear baseline: OLNP, online linear Neyman-Pearson classification (Gasso et al., 2011).

The same Lagrangian, sigmoid loss, class weights and multiplier as Algorithm 1,
with f(z) = w'z + b instead of the network: what the network brings is the
difference to it. `TrackedOlnp` applies our threshold and budget to its scores:
what those bring is the difference between the two.
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats, Ints, Signs
from npstream.errors import SettingsError
from npstream.jit import jit
from npstream.model import Model, Outcome, Params, Reason
from npstream.model.maths import exp
from npstream.model.outcome import empty_outcome
from npstream.model.scaler import CLIP, absorb, standardise

_NEG, _POS, _AT, _HITS, _FALSE_ALARMS = range(5)
_BIAS, _GAMMA = range(2)
# As for preset paper: unbounded in theory, finite forever in practice.
_MU_MAX = 1e6
_GAMMA_MIN, _GAMMA_MAX = 1e-6, 1e6


class _State(NamedTuple):
    """Weights, (bias, gamma), (negatives, positives, window position, hits, false alarms), window, moments, scratch."""

    w: Floats
    head: Floats
    counts: Ints
    window: npt.NDArray[np.uint8]
    seen: Floats
    mean: Floats
    var: Floats
    inv_sd: Floats
    clip: Floats
    raw: Floats
    z: Floats


class Olnp:
    """Online linear Neyman-Pearson classifier, with the interface of `Model`.

    The paper's rates (eta 0.01, beta up to a tenth of it) are far too slow for
    one pass; `beta` defaults to the best constant of a sweep over 18 streams, so
    that a comparison with it means something. Features are standardised online
    unless `scale` is False. Starts from zero weights: there is nothing to draw.
    """

    def __init__(
        self, d: int, tau: float, *, eta: float = 0.01, beta: float = 0.02, window: int = 200, scale: bool = True
    ) -> None:
        # One validation for all classifiers: the messages name field, value and range.
        Params(preset="paper", d=d, tau=tau, eta=eta, beta=beta, window=window)
        self.d, self.tau, self.eta, self.beta, self.scale = d, tau, eta, beta, scale
        w, seen, mean, var, inv_sd, raw, z = (np.zeros(d, np.float64) for _ in range(7))
        head, counts, recent = np.array([0.0, 1.0]), np.zeros(5, np.int64), np.zeros(window, np.uint8)
        self._state = _State(w, head, counts, recent, seen, mean, var, inv_sd, np.full(d, CLIP), raw, z)

    def stream(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Outcome:
        """Test, then train, over rows in order: decision is f > 0, before the row is learned."""
        return self._run(X, np.asarray(y, np.int8), learn=True)

    def learn_many(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn from rows in order."""
        self.stream(X, y)
        return self

    def score_many(self, X: npt.ArrayLike) -> Floats:
        """Scores of rows; changes nothing."""
        return self._run(X, np.full(len(np.asarray(X)), -1, np.int8), learn=False).score

    def decide_many(self, X: npt.ArrayLike) -> Signs:
        """Decisions (1 or -1) on rows; changes nothing."""
        return np.where(self.score_many(X) > 0, 1, -1).astype(np.int8)

    @property
    def weights(self) -> tuple[Floats, float]:
        """w and b as they are now (w is a copy)."""
        return self._state.w.copy(), float(self._state.head[_BIAS])

    @property
    def gamma(self) -> float:
        """The Lagrange multiplier: relative cost of a false alarm."""
        return float(self._state.head[_GAMMA])

    def _run(self, X: npt.ArrayLike, y: Signs, *, learn: bool) -> Outcome:
        rows = np.ascontiguousarray(X, np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.d:
            raise SettingsError([f"X: shape {rows.shape} is not (rows, {self.d})"])
        if y.shape != (rows.shape[0],) or not np.isin(y, (-1, 1)).all():
            raise SettingsError([f"y: must be {rows.shape[0]} labels, each 1 or -1"])
        n = rows.shape[0]
        score, gamma, fpr, t = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
        _run(rows, y, self.tau, self.eta, self.beta, self.scale, learn, self._state, score, gamma, fpr, t)
        return empty_outcome(n)._replace(
            decision=np.where(score > 0, 1, -1).astype(np.int8),
            reason=np.full(n, Reason.SCORE, np.int8),
            score=score,
            threshold=np.zeros(n),
            gamma=gamma,
            fpr=fpr,
            t=t,
            depth=(score > 0).astype(np.int8),
            warm=np.zeros(n, np.int8),
        )


class TrackedOlnp:
    """OLNP scores decided by our threshold, warm-up hold and budget.

    A composition, not a third algorithm: OLNP never looks at its own decisions,
    so its scores can go through a model with preset `external`.
    """

    def __init__(self, d: int, tau: float, *, eta: float = 0.01, beta: float = 0.02, budget: float = 20.0) -> None:
        self.scorer = Olnp(d, tau, eta=eta, beta=beta)
        self.gate = Model.create(Params(preset="external", d=0, tau=tau, budget=budget))

    def stream(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Outcome:
        """Test, then train, over rows in order."""
        return self.gate.stream(self.scorer.stream(X, y).score, y)


@jit
def _run(
    x: npt.NDArray[np.float32],
    y: Signs,
    tau: float,
    eta: float,
    beta: float,
    scale: bool,
    learn: bool,
    state: _State,
    score: Floats,
    gamma: Floats,
    fpr: Floats,
    t: Ints,
) -> None:
    """Score every row and, when `learn`, descend after each."""
    count, head = state.counts, state.head
    raw, z = state.raw, state.z
    for e in range(x.shape[0]):
        for i in range(raw.size):
            raw[i] = z[i] = x[e, i]
        if scale:
            standardise(raw, state.mean, state.inv_sd, state.clip, z)
        f = head[_BIAS]
        for i in range(z.size):
            f += state.w[i] * z[i]
        score[e], gamma[e] = f, head[_GAMMA]
        fpr[e] = count[_FALSE_ALARMS] / max(count[_NEG], 1)
        t[e] = count[_NEG] + count[_POS]
        if learn:
            count[_POS if y[e] > 0 else _NEG] += 1
            _descend(f, y[e], eta, z, state)
            if y[e] < 0:
                _move_gamma(f, tau, beta, state)
            absorb(raw, state.seen, state.mean, state.var, state.inv_sd)


@jit
def _descend(f: float, y: int, eta: float, z: Floats, state: _State) -> None:
    """Plain SGD on the weighted sigmoid loss (eqs. 14 and 15, with mu of eq. 13)."""
    count, head = state.counts, state.head
    cost = 1.0 if y > 0 else head[_GAMMA]
    mu = min(cost * (count[_NEG] + count[_POS]) / count[_POS if y > 0 else _NEG], _MU_MAX)
    decay = exp(-abs(f))
    g = -y * mu * decay / ((1.0 + decay) * (1.0 + decay))
    for i in range(z.size):
        state.w[i] -= eta * g * z[i]
    head[_BIAS] -= eta * g


@jit
def _move_gamma(f: float, tau: float, beta: float, state: _State) -> None:
    """gamma (1 + beta (P_fa - tau)), P_fa the share of f > 0 among the last W negatives (eq. 17)."""
    count, window, head = state.counts, state.window, state.head
    hit = np.uint8(1) if f > 0.0 else np.uint8(0)
    count[_FALSE_ALARMS] += np.int64(hit)
    count[_HITS] += np.int64(hit) - np.int64(window[count[_AT]])
    window[count[_AT]] = hit
    count[_AT] = (count[_AT] + 1) % window.size
    share = count[_HITS] / min(count[_NEG], window.size)
    head[_GAMMA] = min(max(head[_GAMMA] * (1.0 + beta * (share - tau)), _GAMMA_MIN), _GAMMA_MAX)
