"""The plan of a batch: which kernel operations its events ask for, in order.

One event asks for none (a bad one), one, or several operations (observations
that expire when it arrives, then its own). The plan only collects; the kernel
then runs it in one compiled call.
"""

import numpy as np
import numpy.typing as npt

from npstream.model import Op, Operations, Outcome
from npstream.partition.pending import ParkedObservation


class Plan:
    """Collects operations; `events[i]` is decided by operation `deciding[i]`."""

    def __init__(self) -> None:
        self._code: list[int] = []
        self._y: list[int] = []
        self._slot: list[int] = []
        self._event: list[int] = []
        self._parked: list[tuple[int, ParkedObservation]] = []
        self.events: list[int] = []
        self.deciding: list[int] = []

    def decide(self, event: int, slot: int, review: int = 0) -> None:
        """Score an event that waits for its label in `slot` (-1: nobody will label it); `review`: its code."""
        self._publish(event)
        self._add(Op.SCORE, review, slot, event)

    def decide_and_learn(self, event: int, y: int) -> None:
        """Score an event, then learn from the label it brings."""
        self._publish(event)
        self._add(Op.SCORE_LEARN, y, -1, event)

    def learn_echo(self, event: int, y: int, slot: int) -> None:
        """Learn from features that came back with their label."""
        self._add(Op.LEARN, y, slot, event)

    def learn_parked(self, entry: ParkedObservation, y: int) -> None:
        """Learn from an observation that waited."""
        self._parked.append((len(self._code), entry))
        self._add(Op.LEARN, y, entry.slot, -1)

    def release(self, entry: ParkedObservation) -> None:
        """Let an observation go that no label came for."""
        self._parked.append((len(self._code), entry))
        self._add(Op.RELEASE, 0, entry.slot, -1)

    def _publish(self, event: int) -> None:
        self.events.append(event)
        self.deciding.append(len(self._code))

    def _add(self, code: int, y: int, slot: int, event: int) -> None:
        self._code.append(code)
        self._y.append(y)
        self._slot.append(slot)
        self._event.append(event)

    def operations(self, x: npt.NDArray[np.float32], score: npt.NDArray[np.float64]) -> Operations:
        """The collected operations, their rows gathered from the batch's events and from parked copies."""
        event = np.array(self._event, np.int64)
        own = event >= 0
        rows, scores = np.zeros((len(event), x.shape[1]), np.float32), np.zeros(len(event))
        rows[own], scores[own] = x[event[own]], score[event[own]]
        for index, entry in self._parked:
            rows[index] = entry.x
            scores[index] = entry.score
        return Operations(
            np.array(self._code, np.int8), rows, scores, np.array(self._y, np.int8), np.array(self._slot, np.int32)
        )


def all_labelled(x: npt.NDArray[np.float32], score: npt.NDArray[np.float64], y: npt.NDArray[np.int8]) -> Operations:
    """The plan of the commonest batch, every event with its label, without a Python step per event."""
    n = len(y)
    return Operations(np.full(n, Op.SCORE_LEARN, np.int8), x, score, y, np.full(n, -1, np.int32))


def rows_of(outcome: Outcome, operations: list[int]) -> Outcome:
    """Those rows of an outcome, in this order."""
    return Outcome._make(column[operations] for column in outcome)
