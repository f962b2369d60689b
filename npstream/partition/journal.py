"""The journal: a running digest of everything the model was given to learn, and of what it made of it.

The state is a function of where it began and of what it has learned, so that two
replays with the same journal have the same state. Keeping it costs what a batch
brings; hashing the state with every transaction would cost the whole of it.
"""

import numpy as np

from npstream.codec import digest
from npstream.model import Op, Operations, Outcome


class Journal:
    """Digest of all operations that learned: features, label and decision, and the score before it learned."""

    def __init__(self, running: digest.Running | None = None) -> None:
        self._running = digest.begin() if running is None else running

    def extend(self, operations: Operations, outcome: Outcome) -> None:
        """Add those operations that learned, each as one row, so that it does not matter how they were batched."""
        code = operations.code
        learned = np.flatnonzero((code == Op.LEARN) | (code == Op.SCORE_LEARN) | (code == Op.CORRECT))
        d = operations.x.shape[1]
        half = (d + 1) // 2  # two features in a word
        rows = np.zeros((len(learned), half + 2), "<u8")
        rows.view("<f4")[:, :d] = operations.x[learned]
        rows.view("<f8")[:, half] = outcome.score[learned]
        corrected = 16 * (code[learned] == Op.CORRECT)
        rows[:, half + 1] = corrected + (operations.y[learned] + 1) * 4 + outcome.decision[learned] + 1
        digest.extend(self._running, rows.astype(np.uint64, copy=False).ravel())

    def hexdigest(self) -> str:
        """The digest of everything so far."""
        return digest.hexdigest(self._running)

    def dump(self) -> bytes:
        """For a snapshot; `load` is the inverse."""
        return digest.dump(self._running)

    @classmethod
    def load(cls, data: bytes) -> "Journal":
        """A journal that goes on where the dumped one was. Raises ValueError for what `dump` did not write."""
        return cls(digest.load(data))
