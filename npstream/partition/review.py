"""The review sample: a random share of the observations without an alarm that is to be looked at too.

Where only alarms are labelled nobody can know the false-positive rate. With a sample
of known probability p beside them, a label on it counts 1/p and the rates are those of
all observations. Who is in the sample follows from a keyed hash of the id: the same in
every replay, and not to be guessed without the key (`model.seed`).

State is every share that was ever in force, because an observation that waits keeps
the one it was decided under, and the labels of the sample so far.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from npstream.arrays import Floats, Signs
from npstream.codec.decoder import Kind
from npstream.codec.digest import Words, keyed_draws
from npstream.errors import SettingsError
from npstream.model.sampling import ALARMED, AT_ONCE, CODES, FIRST_REVIEWED, WARM, Sampling, no_sample
from npstream.partition.joining import EventColumns
from npstream.records import SampleLabels

_SHARES_MAX = CODES - FIRST_REVIEWED - WARM
"""A code, and what is remembered of it in warm-up, fit a byte."""


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

    def adopt(self, share: float, seed: int, tau: float) -> None:
        """Review this share from the next observation on. Raises `SettingsError` after too many different ones."""
        if share and share not in self.shares:
            if len(self.shares) == _SHARES_MAX:
                raise SettingsError(
                    [f"labels.review: {share!r} is the {_SHARES_MAX + 1}th value on this partition; use an earlier one"]
                )
            self.shares.append(share)
        self.share = share
        self._code = -(FIRST_REVIEWED + self.shares.index(share)) if share else 0
        self._seed = seed
        self.sampling = Sampling(self._weights(), self.sampling.labelled, max(1.0, tau / share) if share else 1.0)

    def _weights(self) -> Floats:
        if not self.share:
            return np.ones(CODES)
        weight = np.zeros(CODES)
        weight[ALARMED] = 1.0
        for row, share in enumerate(self.shares, FIRST_REVIEWED):
            weight[row] = 1.0 / share
        return weight

    def codes_of(self, keys: Words) -> Signs:
        """For the key of each observation its code, should it not be alarmed, where it is in the sample; else 0."""
        if not self._code:
            return np.zeros(len(keys), np.int8)
        chosen = keyed_draws(keys, self._seed) < np.uint64(self.share * 2**64)
        return np.where(chosen, self._code, 0).astype(np.int8)

    def sampled(self, batch: EventColumns) -> EventColumns:
        """The batch with the code of each observation in the sample."""
        if not self.share:
            return batch
        waits = batch.kind == Kind.OBSERVATION
        y = batch.y.copy()
        y[waits] = self.codes_of(batch.key[waits])
        return batch._replace(y=y)

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
