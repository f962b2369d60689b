"""The decision boundary of a two-feature model, drawn on request.

A model belongs to the worker's thread. Whoever wants to see one leaves a request;
the worker replies between two turns with the model's bytes, from which a copy
is made here. Without a request the worker pays one look at an empty set per turn.
"""

import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from npstream.model import Model, Params
from npstream.monitor.http import JSON, Query, Response, text
from npstream.monitor.status import PartitionStatus
from npstream.records import Phase

GRID = 41
"""Points along each side: coarse, 1,681 scores, a few milliseconds."""
_SPREAD = 3.0
"""Deviations shown on each side of the mean."""
_ASKERS_MAX = 4
"""Whoever waits keeps a thread of the HTTP side busy; more than this are refused at once."""


class ModelDesk:
    """Where requests and replies meet."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._waiting = threading.BoundedSemaphore(_ASKERS_MAX)
        self._changed = threading.Condition()
        self._reply: tuple[Params, bytes] | None = None
        self.wanted: frozenset[int] = frozenset()

    def ask(self, partition: int, timeout_s: float) -> Model | None:
        """A copy of the partition's model; None when the worker is too busy. One at a time, a few may wait."""
        if not self._waiting.acquire(blocking=False):
            return None
        try:
            return self._ask(partition, timeout_s)
        finally:
            self._waiting.release()

    def _ask(self, partition: int, timeout_s: float) -> Model | None:
        if not self._asking.acquire(timeout=timeout_s):
            return None
        try:
            with self._changed:
                self._reply = None
                self.wanted = frozenset({partition})
                self._changed.wait_for(lambda: self._reply is not None, timeout_s)
                self.wanted = frozenset()
                found, self._reply = self._reply, None
        finally:
            self._asking.release()
        return None if found is None else Model.from_bytes(*found)

    def deliver(self, partition: int, params: Params, state: bytes) -> None:
        """Called by the worker; a reply that nobody waits for any more is dropped."""
        with self._changed:
            if partition in self.wanted:
                self.wanted = frozenset()
                self._reply = (params, state)
                self._changed.notify_all()


def boundary(model: Model) -> dict[str, Any]:
    """Margins (score minus threshold; above zero is an alarm) over a grid, rows from low to high second feature.

    The model must have two features. The ranges are those of the data seen so far
    where the model keeps them, else -3..3.
    """
    assert model.params.d == 2, model
    ranges = _ranges(model.arrays())
    first, second = (np.linspace(low, high, GRID) for low, high in ranges)
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    margins = model.score_many(grid) - model.threshold
    return {
        "grid": GRID,
        "ranges": [list(pair) for pair in ranges],
        "margins": [float(f"{margin:.4g}") for margin in margins],
        "t": model.t,
    }


def boundary_response(
    known: Mapping[int, PartitionStatus], query: Query, find: Callable[[PartitionStatus], Model | None]
) -> Response:
    """`/boundary`: of one of these partitions; `find` gives a copy of its model, or None when that takes too long."""
    here = {str(number): status for number, status in known.items()}
    status = here.get(query.get("partition", ""))
    if status is None or status.reading is None:
        return text(HTTPStatus.NOT_FOUND, f"?partition= must name a partition of these: {', '.join(here) or 'none'}")
    if status.reading.d != 2:
        return text(HTTPStatus.NOT_FOUND, f"a boundary is drawn for 2 features; this model has {status.reading.d}")
    if status.phase is Phase.PAUSED:
        return text(HTTPStatus.NOT_FOUND, f"partition {status.partition} is paused: its model is not at hand")
    model = find(status)
    if model is None:
        return text(HTTPStatus.SERVICE_UNAVAILABLE, "the worker is busy; ask again")
    return Response(HTTPStatus.OK, JSON, orjson.dumps(boundary(model)))


def _ranges(arrays: Mapping[str, npt.NDArray[Any]]) -> list[tuple[float, float]]:
    mean, inv_sd = arrays.get("mean"), arrays.get("inv_sd")
    if mean is None or inv_sd is None or mean.size != 2 or not (inv_sd > 0).all():
        return [(-_SPREAD, _SPREAD)] * 2
    return [(float(m - _SPREAD / i), float(m + _SPREAD / i)) for m, i in zip(mean, inv_sd, strict=True)]
