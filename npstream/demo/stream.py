"""A generated stream with two features: targets inside a ring of non-targets; half way everything moves.

Labels come on their own, some hundred events after the event they belong to, as
they do in life. The same seed gives the same stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npstream import client
from npstream.client import Message

TARGETS = 0.05


@dataclass(frozen=True, slots=True)
class DemoStream:
    """`x` float32 (events, 2), `y` int8 in {-1, 1}; `drift` is the first event of the new regime."""

    x: NDArray[np.float32]
    y: NDArray[np.int8]
    drift: int
    delay: int

    def messages(self) -> Iterator[Message]:
        """Events in order, each label `delay` events after its event. Timestamps are a millisecond apart."""
        n = len(self.y)
        for i in range(n + self.delay):
            if i < n:
                yield client.event(i, [float(v) for v in self.x[i]], timestamp_ms=i + 1)
            if i >= self.delay:
                earlier = i - self.delay
                yield client.label(earlier, target=bool(self.y[earlier] > 0), timestamp_ms=i + 1)

    def to_csv(self) -> str:
        """The events as a data set, each row with its label: columns id, x1, x2 and y."""
        rows = (f"{i},{x1!s},{x2!s},{y}\n" for i, ((x1, x2), y) in enumerate(zip(self.x, self.y, strict=True)))
        return "id,x1,x2,y\n" + "".join(rows)

    @property
    def total(self) -> int:
        """Messages in all."""
        return 2 * len(self.y)


def make_stream(events: int, delay: int, seed: int) -> DemoStream:
    """A stream whose second half has the ring elsewhere, wider, and its targets with it."""
    rng = np.random.default_rng(seed)
    drift = events // 2
    y = np.where(rng.random(events) < TARGETS, 1, -1).astype(np.int8)
    angle = rng.random(events) * 2 * np.pi
    radius = np.where(y > 0, np.abs(rng.normal(0.0, 0.35, events)), rng.normal(1.2, 0.3, events))
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    x[drift:] = x[drift:] * np.array([1.5, 1.2]) + np.array([0.9, 0.6])
    return DemoStream(x.astype(np.float32), y, drift, delay)
