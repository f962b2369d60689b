"""Builders of small event streams for the model's tests."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from npstream.model import Model, Op, Operations, Outcome, Params
from npstream.model.account import Account
from npstream.model.sampling import CODES, FIRST_REVIEWED, Sampling

Labels = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Feed:
    """Operations for `Model.run`, and how many slots they use."""

    operations: Operations
    slots: int

    def __getitem__(self, rows: slice) -> Operations:
        """Those operations."""
        return Operations._make(column[rows] for column in self.operations)

    def run(
        self,
        model: Model,
        *,
        sizes: list[int] | None = None,
        sampling: Sampling | None = None,
        account: Account | None = None,
        reasons: int = 0,
    ) -> Outcome:
        """Everything through `model.run`, in pieces of the given sizes (the rest in one)."""
        decided = np.zeros(self.slots, np.int8)
        parts, at = [], 0
        for size in [*(sizes or []), len(self.operations.code)]:
            parts.append(model.run(self[at : at + size], decided, sampling, account, reasons))
            at += size
        return Outcome._make(map(np.concatenate, zip(*parts, strict=True)))


def shells(n: int, d: int, seed: int, share: float = 0.3) -> tuple[npt.NDArray[np.float32], Labels]:
    """A nonlinear problem: targets lie mostly on a shell around the others."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1).astype(np.int8)
    x = rng.standard_normal((n, d))
    x *= np.where(y > 0, 1.8, 1.0)[:, None]
    x += 0.4 * (y > 0)[:, None]
    return x.astype(np.float32), y


def at_once(params: Params, n: int, seed: int, *, missing: float = 0.0) -> Feed:
    """Every event with its label; a share of the values is missing."""
    x, y = _observations(params, n, seed, missing)
    score = _scores(x, y, seed)
    code, slot = np.full(n, Op.SCORE_LEARN, np.int8), np.full(n, -1, np.int32)
    return Feed(Operations(code, x[:, : params.d], score, y, slot), 0)


def delayed(params: Params, n: int, seed: int, delay: int = 40, *, missing: float = 0.0) -> Feed:
    """Labels arrive `delay` events later; one event in eight carries its own, one in nine never gets one."""
    x, y = _observations(params, n, seed, missing)
    score = _scores(x, y, seed)
    code, row, slot = [], [], []
    for e in range(n + delay):
        if e >= delay and (e - delay) % 8 != 0:
            code.append(Op.RELEASE if (e - delay) % 9 == 0 else Op.LEARN)
            row.append(e - delay)
            slot.append((e - delay) % delay)
        if e < n:
            at_once = e % 8 == 0
            code.append(Op.SCORE_LEARN if at_once else Op.SCORE)
            row.append(e)
            slot.append(-1 if at_once else e % delay)
    rows = np.array(row)
    codes, slots = np.array(code, np.int8), np.array(slot, np.int32)
    return Feed(Operations(codes, x[rows][:, : params.d], score[rows], y[rows], slots), delay)


def corrected(feed: Feed, share: float) -> Feed:
    """The same, a share of the labels wrong at first: they come the other way round, and right a moment later.

    One in three of these is corrected back to what it was, by mistake.
    """
    rng = np.random.default_rng(6)
    operations = feed.operations
    labels = np.isin(operations.code, (Op.LEARN, Op.SCORE_LEARN))
    wrong = labels & (rng.random(len(labels)) < share)
    times = np.where(wrong, np.where(rng.random(len(labels)) < 1 / 3, 3, 2), 1)
    rows = np.repeat(np.arange(len(labels)), times)
    again = np.concatenate([[False], rows[1:] == rows[:-1]])
    turn = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    found = Operations._make(column[rows] for column in operations)
    code = np.where(again, Op.CORRECT, found.code).astype(np.int8)
    y = np.where(wrong[rows] & (turn % 2 == 0), -found.y, found.y).astype(np.int8)
    # Those that bring their label need a place of their own to be corrected.
    own = found.slot < 0
    slot = np.where(own & wrong[rows], feed.slots + rows % 50, found.slot).astype(np.int32)
    return Feed(found._replace(code=code, y=y, slot=slot), feed.slots + 50)


def reviewed(feed: Feed, share: float) -> Feed:
    """The same, with a share of what waits in the review sample."""
    operations = feed.operations
    chosen = np.random.default_rng(5).random(len(operations.code)) < share
    waiting = operations.code == Op.SCORE
    y = np.where(waiting, np.where(chosen, -FIRST_REVIEWED, 0), operations.y).astype(np.int8)
    return Feed(operations._replace(y=y), feed.slots)


def sampling_of(share: float, tau: float, learned_max: float = np.inf) -> Sampling:
    """What labels count while such a share is reviewed."""
    weight = np.zeros(CODES)
    weight[[0, FIRST_REVIEWED]] = 1.0, 1.0 / share
    return Sampling(weight, np.zeros((CODES, 2), np.int64), max(1.0, tau / share), learned_max)


def _observations(params: Params, n: int, seed: int, missing: float) -> tuple[npt.NDArray[np.float32], Labels]:
    x, y = shells(n, max(params.d, 1), seed)
    if params.input == "zscore":
        # Features in their own units.
        x = (x * np.linspace(1, 30, x.shape[1]) + 5).astype(np.float32)
    else:
        # The paper's SGD takes rows of about unit length; on longer ones it is chaotic.
        x = (x / np.sqrt(x.shape[1])).astype(np.float32)
    if params.one_class:
        y[:] = -1
    for i in np.flatnonzero(params.buckets):
        # A dozen values, far apart as hashes are.
        x[:, i] = np.clip(np.round(x[:, i] / 5 + 6), 0, 11) * 1_000_003 % 2**24
    x[np.random.default_rng(seed + 2).random(x.shape) < missing] = np.nan
    return x, y


def _scores(x: npt.NDArray[np.float32], y: Labels, seed: int) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(seed + 1)
    return rng.standard_normal(len(y)) + 1.5 * (y > 0)
