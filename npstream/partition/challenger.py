"""The challenger: a second model that decides and learns beside the champion, and publishes nothing.

It takes the champion's operations, with its own features where it reads others, and
keeps its own decision on every observation that waits. Where it cannot read an event
that the champion can, it passes it over. Of every labelled event that both have decided
after their warm-up it is counted who gave an alarm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from npstream.codec.decoder import Decoded, EventDecoder, Kind
from npstream.model import Model, Op, Operations, Outcome
from npstream.model.account import alarm_rates, dump_account, empty_account, load_account, set_windows
from npstream.model.unread import UNREAD
from npstream.partition.config import PartitionConfig
from npstream.partition.journal import Journal
from npstream.partition.pending import Pending
from npstream.records import ChallengerRates, Pairs, Record

_LEARNING = np.array([Op.LEARN, Op.SCORE_LEARN, Op.CORRECT], np.int8)
_WITH_FEATURES = (Kind.OBSERVATION, Kind.LABELLED, Kind.ECHO)
_BLOBS = ("challenger.model", "challenger.account", "challenger.journal")


class Challenger:
    """One partition's challenger: model, rates, and pairs of decisions.

    `began` is the offset of the first event that it met; `since` the number of events before that.
    """

    def __init__(self, config: PartitionConfig, model: Model, began: int, since: int) -> None:
        assert config.challenger is not None
        self.config = config.challenger
        self.model = model
        self.began = began
        self.since = since
        self.journal = Journal()
        self._pairs = np.zeros((2, 2, 2), np.int64)
        self._account = empty_account(len(self.config.params.rates))
        self._adopt(config)

    def _adopt(self, config: PartitionConfig) -> None:
        assert config.challenger is not None
        self.config = config.challenger
        self._columns = config.params.d
        self._decoder = EventDecoder(self.config.events) if config.reads_twice else None
        set_windows(self._account, *self.config.params.rates)

    @classmethod
    def cold(cls, config: PartitionConfig, partition: int, began: int, since: int = 0) -> Self:
        """A random start, the same as that of a champion with these parameters."""
        assert config.challenger is not None
        return cls(config, Model.create(config.challenger.params, stream=partition), began, since)

    def change(self, config: PartitionConfig, *, as_before: bool) -> None:
        """Take other settings, which it can (`outlives`); pairs begin again unless both stay `as_before`."""
        assert config.challenger is not None
        if not as_before or config.challenger.params != self.config.params:
            self._pairs[:] = 0
        self.model = self.model.with_params(config.challenger.params)
        self._adopt(config)

    def beside(self, records: Sequence[Record], decoded: Decoded) -> Decoded:
        """What the champion has decoded, with what the challenger reads of the same events where that differs."""
        if self._decoder is None:
            return decoded
        own = self._decoder.decode(records)
        unread = [kind not in _WITH_FEATURES for kind in own.kinds]
        x, score = own.x.copy(), own.score
        if x.shape[1]:
            x[unread, 0] = UNREAD
        if self.config.events.external:
            score = np.where(unread, UNREAD, score)
        else:
            score = decoded.score
        return replace(decoded, x=np.hstack([decoded.x, x]), score=score)

    def run(self, operations: Operations, published: Outcome, pending: Pending) -> None:
        """Decide and learn what the champion has, whose outcome is `published`."""
        own = self.operations_of(operations)
        outcome = self.model.run(own, pending.shadow, None, self._account)
        self.journal.extend(own, outcome)
        self._pair(own, published, outcome)

    def operations_of(self, operations: Operations) -> Operations:
        """The same operations on its own features."""
        return operations if self._decoder is None else operations._replace(x=operations.x[:, self._columns :])

    def _pair(self, operations: Operations, published: Outcome, own: Outcome) -> None:
        both = np.isin(operations.code, _LEARNING) & (own.decision != 0) & (published.decision != 0)
        rows = np.flatnonzero(both & (own.warm == 0) & (published.warm == 0))
        if not len(rows):
            return
        columns = operations.y, published.decision, own.decision
        target, alarm, shadow = ((column[rows] > 0).astype(np.intp) for column in columns)
        np.add.at(self._pairs, (target, alarm, shadow), 1)
        again = operations.code[rows] == Op.CORRECT
        np.subtract.at(self._pairs, (1 - target[again], alarm[again], shadow[again]), 1)

    def rates(self) -> ChallengerRates:
        """What its decisions came to, and how they compare with those of the champion."""
        found = alarm_rates(self._account)
        pairs = (Pairs(*table.ravel().tolist()) for table in self._pairs)
        params = self.config.params
        own = params.tau, params.control, self.began
        return ChallengerRates(*own, found.alarm_rate, found.fpr, found.tpr, *pairs)

    def meta(self) -> dict[str, Any]:
        """What is small of its state, ready for JSON."""
        return {"began": self.began, "since": self.since, "pairs": self._pairs.ravel().tolist()}

    def blobs(self) -> dict[str, bytes]:
        """The rest of its state."""
        return dict(zip(_BLOBS, (self.model.to_bytes(), dump_account(self._account), self.journal.dump()), strict=True))

    @classmethod
    def load(
        cls, config: PartitionConfig, meta: Mapping[str, Any] | None, blobs: Mapping[str, bytes]
    ) -> "Challenger | None":
        """What `meta` and `blobs` wrote, None for none. Raises ValueError, KeyError or `StateCorrupt` otherwise."""
        if meta is None and config.challenger is None:
            return None
        if meta is None or config.challenger is None:
            raise ValueError("a challenger's state without its settings, or its settings without a state")
        model, account, journal = (blobs[name] for name in _BLOBS)
        params = config.challenger.params
        made = cls(config, Model.from_bytes(params, model), meta["began"], meta["since"])
        made._pairs[:] = np.array(meta["pairs"], np.int64).reshape(made._pairs.shape)
        made._account = load_account(account, len(params.rates))
        made._adopt(config)
        made.journal = Journal.load(journal)
        return made
