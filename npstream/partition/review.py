"""The review sample: a random share of the observations without an alarm that is to be looked at too.

Where only alarms are labelled nobody can know the false-positive rate. With a sample
of known probability p beside them, a label on it counts 1/p and the rates are those of
all observations. The sample is spread evenly: of each 1/p decisions one is in it, at a
place that a keyed hash draws. So it is as large as it should be in any stretch, and chance
moves rates and threshold far less than with a draw for each. It is the same in every
replay, and not to be guessed without the key (`model.seed`).

State is every share that was ever in force, because an observation that waits keeps
the one it was decided under, and the labels of the sample so far.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from npstream.arrays import Floats
from npstream.codec.decoder import Kind
from npstream.codec.digest import keyed_draws
from npstream.errors import SettingsError
from npstream.model import Params
from npstream.model.sampling import ALARMED, AT_ONCE, CODES, FIRST_REVIEWED, WARM, Flags, Sampling, no_sample
from npstream.partition.config import LabelConfig
from npstream.partition.joining import EventColumns
from npstream.records import SampleLabels

_SHARES_MAX = CODES - FIRST_REVIEWED - WARM
"""A code, and what is remembered of it in warm-up, fit a byte."""


def places(first: int, count: int, share: float, seed: int, partition: int) -> Flags:
    """Which of `count` decisions of a partition, from this one on, are in the sample: each with this probability.

    One in each block of 1/share decisions; where that is no whole number the blocks are shorter, and some have none.
    """
    size = int(min(1 / share, 2.0**62))
    block = np.arange(first // size, (first + count - 1) // size + 1, dtype=np.uint64)
    draws = (np.full_like(block, 2 * partition + draw) for draw in range(2))
    place, luck = (keyed_draws(np.column_stack([block, draw]), seed) for draw in draws)
    at = (block * np.uint64(size) + place % np.uint64(size)).astype(np.int64)[luck / 2**64 < share * size] - first
    found = np.zeros(count, np.bool_)
    found[at[(at >= 0) & (at < count)]] = True
    return found


class ReviewSample:
    """Who is reviewed in one partition, and what came of it."""

    def __init__(self) -> None:
        self.share = 0.0
        self.shares: list[float] = []
        self.requested = 0
        """Reviews asked for in decisions so far."""
        self.sampling = no_sample()
        self._code = 0
        self._seed = 0

    @property
    def used(self) -> bool:
        """Whether a share was ever in force."""
        return bool(self.shares)

    def adopt(self, labels: LabelConfig, params: Params) -> None:
        """Review by these settings from the next observation on. Raises `SettingsError` after too many shares."""
        share = labels.review
        if share and share not in self.shares:
            if len(self.shares) == _SHARES_MAX:
                raise SettingsError(
                    [f"labels.review: {share!r} is the {_SHARES_MAX + 1}th value on this partition; use an earlier one"]
                )
            self.shares.append(share)
        self.share = share
        self._code = -(FIRST_REVIEWED + self.shares.index(share)) if share else 0
        self._seed = params.seed
        pace, learned_max = max(1.0, params.tau / share) if share else 1.0, np.inf
        if labels.on_expiry == "negative":
            learned_max = 1.0  # the observations that a reviewed one stands for are learned from themselves
        self.sampling = Sampling(self._weights(), self.sampling.labelled, pace, learned_max)

    def _weights(self) -> Floats:
        if not self.share:
            return np.ones(CODES)
        weight = np.zeros(CODES)
        weight[ALARMED] = 1.0
        for row, share in enumerate(self.shares, FIRST_REVIEWED):
            weight[row] = 1.0 / share
        return weight

    def sampled(self, batch: EventColumns, decided: int, partition: int) -> EventColumns:
        """The batch with its code, should it not be alarmed, for each observation in the sample.

        `decided` is the number of decisions before it in this partition.
        """
        if not self.share:
            return batch
        waits = batch.kind == Kind.OBSERVATION
        decides = np.flatnonzero(waits | (batch.kind == Kind.LABELLED))
        chosen = decides[places(decided, decides.size, self.share, self._seed, partition)]
        y = np.where(waits, 0, batch.y)
        y[chosen[waits[chosen]]] = self._code
        return batch._replace(y=y.astype(np.int8))

    def labels(self) -> SampleLabels | None:
        """The labels of the sample so far; None where there never was one."""
        if not self.used:
            return None
        labelled = self.sampling.labelled.tolist()
        known = [(AT_ONCE, 1.0), *enumerate(self.shares, FIRST_REVIEWED)]
        others = [tuple((labelled[row][kind], share) for row, share in known) for kind in range(2)]
        return SampleLabels(*labelled[ALARMED], *others)

    def dump(self) -> dict[str, Any]:
        """The state, ready for JSON."""
        rows = FIRST_REVIEWED + len(self.shares)
        labelled = self.sampling.labelled[:rows].tolist()
        return {"shares": self.shares, "labelled": labelled, "requested": self.requested}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Self:
        """A sample that goes on from a dumped state once its share is adopted. Raises ValueError when it is none."""
        shares, labelled = [float(share) for share in dumped["shares"]], np.array(dumped["labelled"], np.int64)
        if len(shares) > _SHARES_MAX or labelled.shape != (FIRST_REVIEWED + len(shares), 2):
            raise ValueError("the review sample does not fit its shares")
        if not all(0 < share < 1 for share in shares) or labelled.min() < 0:
            raise ValueError("the review sample has a share or a count that cannot be")
        sample = cls()
        sample.shares, sample.requested = shares, int(dumped["requested"])
        sample.sampling.labelled[: len(labelled)] = labelled
        return sample
