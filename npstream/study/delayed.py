"""Labels that come late: each event is decided at once and learned `delay` events later.

Learner, threshold and budget are all fed at label time, as a worker with
parked observations feeds them.
"""

import numpy as np
import numpy.typing as npt

from npstream.model import Model, Op, Operations, Outcome

_BLOCK = 8192  # events a call: bounds the memory of the interleaved copy


def stream_delayed(model: Model, X: npt.NDArray[np.float32], y: npt.NDArray[np.int8], delay: int) -> Outcome:
    """Decide every row in order; the label of row i is learned right after row i + delay was decided.

    One entry a row, as it was decided. The last `delay` labels never come. With
    delay 0 decisions and state equal those of `Model.stream`, outstanding
    alarms included.
    """
    if delay < 0:
        raise ValueError(f"delay must be at least 0, got {delay}")
    rows, labels = np.ascontiguousarray(X, np.float32), np.ascontiguousarray(y, np.int8)
    decided = np.zeros(delay + 1, np.int8)
    parts = [
        _block(model, rows, labels, delay, decided, start, min(start + _BLOCK, len(rows)))
        for start in range(0, len(rows), _BLOCK)
    ]
    return Outcome._make(map(np.concatenate, zip(*parts, strict=True)))


def _block(
    model: Model,
    rows: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int8],
    delay: int,
    decided: npt.NDArray[np.int8],
    start: int,
    stop: int,
) -> Outcome:
    """Events start .. stop - 1, each followed by the label that falls due with it."""
    event = np.arange(start, stop)
    due = event[event >= delay] - delay
    which = np.concatenate([event, due])
    code = np.concatenate([np.full(event.size, Op.SCORE, np.int8), np.full(due.size, Op.LEARN, np.int8)])
    # At the same event the decision precedes the label.
    order = np.lexsort((code, np.concatenate([event, due + delay])))
    which, code = which[order], code[order]
    slot = (which % decided.size).astype(np.int32)
    outcome = model.run(Operations(code, rows[which], np.zeros(which.size), labels[which], slot), decided)
    scored = code == Op.SCORE
    return Outcome._make(column[scored] for column in outcome)
