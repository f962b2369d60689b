"""One online Neyman-Pearson classifier: what a notebook and a stream worker both hold."""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Self

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats, owned
from npstream.errors import SettingsError
from npstream.jit import DISABLED
from npstream.model import coldstart, kernel, tables
from npstream.model import threshold as gate
from npstream.model.account import Account, empty_account
from npstream.model.columns import columns_of
from npstream.model.contributions import Contributions
from npstream.model.generator import key_of, normal
from npstream.model.inputs import Observation, features_of, labels_of, row_of, rows_of, scores_of
from npstream.model.kernel import KernelParams
from npstream.model.network import BIAS, GAMMA, SHARE, SLOW_BIAS
from npstream.model.operations import Operations, Outcome
from npstream.model.outcome import Op, empty_outcome
from npstream.model.params import Params
from npstream.model.sampling import Sampling, no_sample
from npstream.model.state import (
    Array,
    empty_state,
    named_arrays,
    scratch_for,
    state_bytes,
    state_digest,
    state_from_bytes,
)
from npstream.model.tiers import rule_at, stricter, tier_of
from npstream.records import Counted, Tier

# Under Adagrad the directions learn at their own rate, eta * 20 / sqrt(d).
_ALPHA_GAIN = 20.0
# Categories have one hash in all streams, so that what one partition learned can seed another.
_EVERY_STREAM = 2**64 - 1


class Model:
    """Online Neyman-Pearson classifier with fixed-size state.

    Deterministic: the same parameters, stream number and operations give the
    same bytes, however they are batched and on whatever processor. Not safe for
    use by two threads at once; the compiled call releases the GIL.
    """

    def __init__(self, params: Params, state: kernel.ModelState, features: Sequence[str] | None = None) -> None:
        self.params = params
        self.features = features_of(features, params.d)
        self._state = state
        self._work = scratch_for(params)
        self._no_sample, self._no_account = no_sample(), empty_account()
        self._rule = (
            gate.ungated(params.tau)
            if params.preset == "paper"
            else gate.rule_of(params.tau, params.budget, params.charge, params.control)
        )
        self._strict = stricter(tuple(rate for _, rate in reversed(params.tiers[:-1])))
        self._kernel_params = _kernel_params(params, int(state.clock[kernel.STREAM]))

    @classmethod
    def create(cls, params: Params, stream: int = 0, *, features: Sequence[str] | None = None) -> Self:
        """A cold start keyed by (params.seed, stream).

        `features` are the names of the d features in the model's order: observations may then be dicts.
        """
        if not 0 <= stream < 2**63:
            raise SettingsError([f"stream: {stream!r} is not a whole number from 0 to {2**63 - 1}"])
        state = empty_state(params)
        state.clock[kernel.STREAM] = stream
        state.net.head[GAMMA] = 1.0
        if params.preset != "external":
            with np.errstate(over="ignore"):
                _draw(params, _key(params.seed, stream), state)
        return cls(params, state, features)

    def with_params(self, params: Params) -> Self:
        """The same state under other parameters; raises `SettingsError` for those that cannot change."""
        self.params.check_change(params)
        return type(self).from_bytes(params, self.to_bytes(), features=self.features)

    # Batches

    def run(
        self,
        operations: Operations,
        decided: npt.NDArray[np.int8],
        sampling: Sampling | None = None,
        account: Account | None = None,
        reasons: int = 0,
    ) -> Outcome:
        """Run operations in order in one compiled call, the GIL released.

        `decided` int8[capacity] holds the published decisions of waiting
        observations by their slot, an alarm as its depth; the caller keeps it. `sampling` says what
        labels count where a sample is reviewed, and counts those of the sample. `account`
        counts decisions and what became of them. Of each alarm that is decided now, the
        outcome names so many columns that moved its score most (`reasons`).

        SCORE changes only what was issued: `decided[slot]`, outstanding and
        withheld alarms; without a slot nobody will label it, so its alarm is not
        outstanding. LEARN feeds the score of the current model to gradient
        and threshold and the published decision to the budget (without a slot:
        the decision the current model would take). CORRECT is for a slot that has
        learned the other label (SCORE_LEARN with a slot, LEARN). With control alarm_rate every
        decided row moves threshold and budget, and its features are taken by the
        scaler, whether its label ever comes. A frozen model
        (`learning=False`) still charges the budget and counts. Shapes and values
        are trusted.
        """
        outcome = empty_outcome(operations.code.size, min(reasons, self.params.d))
        columns = Operations._make(owned(column) for column in operations)
        # Interpreted, the generator's wrapping multiplications would warn.
        with np.errstate(over="ignore") if DISABLED else nullcontext():
            kernel.run(
                columns,
                decided,
                sampling or self._no_sample,
                account or self._no_account,
                self._kernel_params,
                self._rule,
                self._strict,
                self._state,
                self._work,
                outcome,
            )
        return outcome

    def stream(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Outcome:
        """Test, then train, over rows in order: each is decided by what was learned before it."""
        rows, scores = self._rows(X)
        labels = labels_of(y, len(rows))
        return self._run_all(Op.SCORE_LEARN, rows, scores, labels)

    def learn_many(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn from rows in order."""
        self.stream(X, y)
        return self

    def score_many(self, X: npt.ArrayLike) -> Floats:
        """Scores of rows; changes nothing."""
        return self._peek(X).score

    def decide_many(self, X: npt.ArrayLike) -> npt.NDArray[np.int8]:
        """Decisions (1 or -1) on rows; changes nothing."""
        return self._peek(X).decision

    # One observation at a time

    def score_one(self, x: Observation) -> float:
        """The score of one observation; changes nothing. A dict is read in the order of `features`."""
        return float(self._peek(self._row(x)).score[0])

    def decide_one(self, x: Observation) -> int:
        """1 for target, -1 otherwise, by score, threshold, warm-up and budget; changes nothing."""
        return int(self._peek(self._row(x)).decision[0])

    def learn_one(self, x: Observation, y: int | bool) -> None:
        """Learn from one labelled observation; its decision is the one the model takes now."""
        self.stream(self._row(x), [y])

    # State

    def to_bytes(self) -> bytes:
        """Everything the model knows, in one canonical form (layout in `npstream.model.state`)."""
        return state_bytes(self._state)

    @classmethod
    def from_bytes(cls, params: Params, data: bytes, *, features: Sequence[str] | None = None) -> Self:
        """The inverse of `to_bytes`; raises `StateCorrupt` when the bytes cannot belong to `params`.

        The names of the features are not part of the state: give them again.
        """
        return cls(params, state_from_bytes(params, data), features)

    def digest(self) -> str:
        """32 hex digits: equal digests mean equal state."""
        return state_digest(self._state)

    def arrays(self) -> dict[str, Array]:
        """The state by name, in the order of `to_bytes`. Views: copy before the next event if you keep them."""
        return named_arrays(self._state)

    # What it knows

    @property
    def t(self) -> int:
        """Events learned so far."""
        return int(self._state.clock[kernel.LEARNED_NEG] + self._state.clock[kernel.LEARNED_POS])

    @property
    def negatives(self) -> int:
        """Labelled non-targets."""
        return int(self._state.tally[gate.NEGATIVES])

    @property
    def positives(self) -> int:
        """Labelled targets."""
        return int(self._state.tally[gate.POSITIVES])

    @property
    def false_alarms(self) -> int:
        """Alarms on labelled non-targets."""
        return int(self._state.tally[gate.FALSE_ALARMS])

    @property
    def detections(self) -> int:
        """Alarms on labelled targets."""
        return int(self._state.tally[gate.DETECTIONS])

    @property
    def outstanding(self) -> int:
        """Alarms whose label has not come."""
        return int(self._state.tally[gate.OUTSTANDING])

    @property
    def held(self) -> int:
        """Alarms withheld during warm-up."""
        return int(self._state.tally[gate.HELD])

    @property
    def withheld(self) -> int:
        """Alarms withheld by the budget."""
        return int(self._state.tally[gate.WITHHELD])

    @property
    def threshold(self) -> float:
        """A score above it is an alarm, warm-up and budget permitting."""
        return float(self._state.level[gate.Q])

    @property
    def gamma(self) -> float:
        """The Lagrange multiplier: relative cost of a false alarm."""
        return float(self._state.net.head[GAMMA])

    @property
    def fpr(self) -> float:
        """Recent false-positive rate of published decisions."""
        return float(self._state.level[gate.FPR])

    @property
    def tpr(self) -> float:
        """Recent detection rate of published decisions."""
        return float(self._state.level[gate.TPR])

    @property
    def tiers(self) -> list[Tier]:
        """What each tier holds and has done, the strictest first; empty without tiers."""
        names, gates = self.params.tier_names, self._state.gates
        if not names:
            return []
        alarms = gates.alarms.tolist()
        found = [tier_of(names[0], alarms[0], self._rule, self._state.level, self._state.tally)]
        for k, name in enumerate(names[1:]):
            own = rule_at(k, self._rule, self._strict)
            found.append(tier_of(name, alarms[k + 1], own, gates.level[k], gates.tally[k]))
        return found[::-1]

    @property
    def warming_up(self) -> bool:
        """True until enough labelled negatives (control alarm_rate: observations) were seen to allow an alarm."""
        return self.warmup.hits < self.warmup.trials

    @property
    def warmup(self) -> Counted:
        """How many of them were seen, of those that it takes."""
        return Counted(min(int(self._state.tally[gate.TRACKED]), self._rule.warmup), self._rule.warmup)

    @property
    def budget_left(self) -> float:
        """False alarms (control alarm_rate: alarms) the bucket can still take before it withholds.

        Infinite for preset paper.
        """
        return self._rule.capacity - gate.charged(self._rule, self._state.level, self._state.tally)

    def learned_kernel(self) -> Floats:
        """float64[n, n], the covariance of the trained directions over the n features that are numbers.

        Taken as a Gaussian spectrum S it is the kernel exp(-u'Su/2): a
        non-isotropic rbf kernel learned from the stream (the paper's first remark).
        """
        alpha = self._state.net.alpha
        centred = alpha - alpha.mean(axis=1, keepdims=True)
        return np.asarray(centred @ centred.T / alpha.shape[1], np.float64)

    def selected_cells(self, x: Observation) -> npt.NDArray[np.int32]:
        """Which cells of the tables an observation selects: one per column, numbers first, then one per fern.

        Empty where there are no tables, or no markers yet. Changes nothing.
        """
        self._peek(self._row(x))
        at = self._work.tables.at if tables.ready(self._state.clock[kernel.ROWS]) else np.empty(0, np.uint32)
        return at.astype(np.int32)

    def contributions(self, x: Observation) -> Contributions:
        """What each feature of an observation does to its score; empty for preset external. Changes nothing."""
        if self.params.preset == "external":
            return Contributions(*[np.empty(0)] * 3)
        self._peek(self._row(x))
        kernel.find_parts(self._kernel_params, self._state, self._work)
        z, gradient = np.zeros(self.params.d), np.zeros(self.params.d)
        numbers, parts = self._kernel_params.columns.number, self._work.parts
        z[numbers], gradient[numbers] = self._work.net.z, parts.gradient
        return Contributions(z, gradient, parts.moved.copy())

    def __repr__(self) -> str:
        p = self.params
        shape = "" if p.preset == "external" else f", d={p.d}, D={p.D}"
        known = f"{self.negatives} negatives, {self.positives} targets"
        rates = f"FPR {self.fpr:.3g}, TPR {self.tpr:.3g}, threshold {self.threshold:.4g}"
        phase = "warming up, " if self.warming_up else ""
        frozen = "" if p.learning else ", frozen"
        return f"<Model {p.preset}{shape}, tau={p.tau:g}: {phase}{known}, {rates}{frozen}>"

    # Input

    def _peek(self, X: npt.ArrayLike) -> Outcome:
        rows, scores = self._rows(X)
        return self._run_all(kernel.PEEK, rows, scores, np.zeros(len(rows), np.int8))

    def _run_all(self, op: int, rows: npt.NDArray[np.float32], scores: Floats, labels: npt.NDArray[np.int8]) -> Outcome:
        n = len(rows)
        operations = Operations(np.full(n, op, np.int8), rows, scores, labels, np.full(n, -1, np.int32))
        return self.run(operations, np.empty(0, np.int8))

    def _rows(self, X: npt.ArrayLike) -> tuple[npt.NDArray[np.float32], Floats]:
        """Features (none for external) and scores (zero unless external) of a batch."""
        if self.params.preset == "external":
            scores = scores_of(X)
            return np.empty((scores.size, 0), np.float32), scores
        rows = rows_of(X, self.params)
        return rows, np.zeros(len(rows), np.float64)

    def _row(self, x: Observation) -> npt.ArrayLike:
        row = row_of(x, self.features) if isinstance(x, Mapping) else x
        return np.asarray(row).reshape(1, -1)


def _draw(params: Params, key: np.uint64, state: kernel.ModelState) -> None:
    net = state.net
    kind = ("rbf", "laplacian", "matern").index(params.kernel)
    draws = coldstart.draw_directions(key, kind, params.g, params.preset == "plus", net.alpha)
    draws = coldstart.draw_weights(key, draws, net.wc, net.ws)
    net.head[BIAS] = coldstart.WEIGHT_SD * normal(key, draws)
    draws += 2
    if params.preset == "plus":
        draws = tables.draw_ferns(key, draws, params.d, state.tables.column, state.tables.level)
        net.slow_c[:], net.slow_s[:] = net.wc, net.ws
        net.head[SLOW_BIAS], net.head[SHARE] = net.head[BIAS], 1.0
    state.clock[kernel.DRAWS] = draws


def _key(seed: int, stream: int) -> np.uint64:
    return np.uint64(key_of(np.uint64(seed), np.uint64(stream)))


def _kernel_params(params: Params, stream: int) -> KernelParams:
    with np.errstate(over="ignore"):
        key, hash_key = _key(params.seed, stream), _key(params.seed, _EVERY_STREAM)
    return KernelParams(
        preset=("plus", "paper", "external").index(params.preset),
        input=("raw", "unit", "zscore").index(params.input),
        scale=1.0 / math.sqrt(params.D) if params.preset == "paper" else 1.0,
        eta=params.eta,
        eta_alpha=params.eta * _ALPHA_GAIN / math.sqrt(max(params.numbers, 1)),
        beta=params.beta,
        lam=params.lam,
        stochastic=params.gamma_update == "stochastic",
        one_class=params.one_class,
        learning=params.learning,
        key=key,
        hash_key=hash_key,
        columns=columns_of(params),
    )
