"""How a process reaches its cluster: every request goes through here, and here it fails, hangs or is cut short."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from npstream.errors import Retryable
from tests.simulation.cluster import Cluster

Result = TypeVar("Result")

POINTS = (
    *("open", "join", "group", "release", "fetch", "labels"),
    *("begin", "produce", "offsets", "end", "abort", "position", "checkpoint", "log"),
)
"""The kinds of requests."""

_PATIENCE_S = 5.0
"""How long a request waits for brokers that are down."""
_SLICE_S = 0.1


class Requests(Protocol):
    """The way of one process to its cluster."""

    @property
    def is_dead(self) -> bool:
        """Whether the process was killed: it cannot even say goodbye."""

    @property
    def hurries(self) -> bool:
        """Whether a commit that has begun runs to its end while the worker computes; else it waits to be asked for."""

    def is_alive(self) -> bool:
        """Whether the process sends heartbeats now."""

    def make(self, point: str, effect: Callable[[], Result]) -> Result:
        """Have the cluster do this."""


class Undisturbed:
    """Every request takes effect and is answered, unless the brokers are down."""

    is_dead = False
    hurries = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def is_alive(self) -> bool:
        return True

    def make(self, point: str, effect: Callable[[], Result]) -> Result:
        deadline = self._cluster.clock() + _PATIENCE_S
        while self._cluster.is_down:
            if self._cluster.clock() > deadline:
                raise Retryable(f"{point}: the brokers do not respond")
            self._cluster.clock.sleep(_SLICE_S)
        self._cluster.turn()
        return effect()
