"""A batch in the making: columns that grow event by event, then become arrays at once."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from npstream.codec.event import MAGNITUDE_MAX, Decoded, EventConfig, EventId, Kind
from npstream.errors import BadEvent

Numbers = NDArray[np.float32] | NDArray[np.float64]


def plain_batch(ids: list[EventId | None], values: Numbers, y: NDArray[np.int8], d: int) -> Decoded | None:
    """A batch in which every event has its d features; None when one of their numbers needs a closer look.

    `values` are the features of all events in a row; `y` is 0 where the label is unknown.
    """
    if not np.abs(values).max() <= MAGNITUDE_MAX:
        return None
    kinds = np.where(y == 0, int(Kind.OBSERVATION), int(Kind.LABELLED)).tolist()
    return Decoded(kinds, ids, values.astype(np.float32).reshape(-1, d), np.zeros(len(ids)), y, {}, {})


@dataclass(slots=True)
class Draft:
    """Columns in the making: `rows` are the indices of the events whose numbers have been set aside."""

    kinds: list[int] = field(default_factory=list)
    ids: list[EventId | None] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    errors: dict[int, BadEvent] = field(default_factory=dict)
    bad_ids: dict[int, EventId] = field(default_factory=dict)

    def add(self, kind: int, event_id: EventId | None, label: int) -> None:
        """Append one good event."""
        self.kinds.append(kind)
        self.ids.append(event_id)
        self.labels.append(label)

    def add_bad(self, error: BadEvent, awaited: EventId | None) -> None:
        """Append one bad event."""
        index = len(self.kinds)
        self.add(Kind.BAD, None, 0)
        self._note(index, error, awaited)

    def condemn(self, index: int, error: BadEvent) -> None:
        """Turn an event that was added as good into a bad one."""
        awaited = None if self.kinds[index] == Kind.ECHO else self.ids[index]
        self.kinds[index], self.ids[index], self.labels[index] = Kind.BAD, None, 0
        self._note(index, error, awaited)

    def _note(self, index: int, error: BadEvent, awaited: EventId | None) -> None:
        self.errors[index] = error
        if awaited is not None:
            self.bad_ids[index] = awaited

    def finish(self, values: Numbers, config: EventConfig) -> Decoded:
        """Check the numbers of `rows`, [len(rows), width], and lay everything out."""
        values = self._condemn_absurd(values)
        count = len(self.kinds)
        x = np.zeros((count, config.d), np.float32)
        score = np.zeros(count, np.float64)
        if config.external:
            score[self.rows] = values[:, 0]
        elif len(self.rows) == count:
            x[...] = values
        else:
            x[self.rows] = values
        return Decoded(self.kinds, self.ids, x, score, np.array(self.labels, np.int8), self.errors, self.bad_ids)

    def _condemn_absurd(self, values: Numbers) -> Numbers:
        # Written so that NaN fails; one comparison for the whole batch in the usual case.
        if np.abs(values).max(initial=0.0) <= MAGNITUDE_MAX:
            return values
        good = (np.abs(values) <= MAGNITUDE_MAX).all(axis=1)
        for at in np.flatnonzero(~good).tolist():
            self.condemn(self.rows[at], _absurd(values[at]))
        self.rows = [self.rows[at] for at in np.flatnonzero(good)]
        return values[good]


def _absurd(values: Numbers) -> BadEvent:
    at = int(np.flatnonzero(~(np.abs(values) <= MAGNITUDE_MAX))[0])
    if np.isfinite(values[at]):
        return BadEvent("magnitude", f"number {at} is beyond 1e15; scale the feature before sending it")
    return BadEvent("not_finite", f"number {at} is NaN or infinite")
