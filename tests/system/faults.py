"""The faults of a run: which worker is killed or stopped where, drawn from a seed."""

from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Literal

from npstream.failpoints import NAMES

STOP_POINTS = ("before_send_offsets", "after_send_offsets", "before_commit", "after_commit")
"""Where a worker that is stopped becomes a zombie: around the two calls that make a transaction count."""

_TRANSACTION = ("begin", *STOP_POINTS)
"""Points that each transaction passes once, so that their hits count transactions."""
# Within what a worker is fed for each of its faults, or the feed is at its end before the fault.
_HITS = {
    "after_poll": (20, 120),
    "produce": (50, 500),
    "segment": (2, 40),
    "mid_snapshot": (2, 8),
    "after_flush": (2, 8),
    "in_flight": (1, 3),
    "restore": (1, 1),
    "replay": (1, 1),
}
_HITS |= dict.fromkeys(_TRANSACTION, (5, 30))


@dataclass(frozen=True, slots=True)
class Fault:
    """One signal at one named point. A stopped worker goes on after `hold_s`."""

    point: str
    hit: int
    action: Literal["kill", "stop"]
    hold_s: float = 0.0

    def __str__(self) -> str:
        """As the worker's environment spells it."""
        return f"{self.point}:{self.hit}:{self.action}"


Life = list[Fault]
"""What happens to a worker between two starts: perhaps a stop, then a kill."""


def plan(random: Random, workers: int, holds_s: tuple[float, ...]) -> list[list[Life]]:
    """The lives of each worker: every failpoint kills once at least, every stop point is held for each of `holds_s`.

    A stop is followed by a kill some transactions later, so that a worker is seen
    to go on after it. A kill in `replay` follows another kill, since only a worker
    that has something to replay comes by it.
    """
    stops = [Fault(point, _hit(random, point), "stop", hold) for hold in holds_s for point in STOP_POINTS]
    ends = cycle(random.sample(_TRANSACTION, len(_TRANSACTION)))
    paired = [[stop, Fault(next(ends), stop.hit + random.randint(10, 30), "kill")] for stop in stops]
    killed = {life[-1].point for life in paired} | {"replay"}
    lives = [*paired, *([Fault(point, _hit(random, point), "kill")] for point in NAMES if point not in killed)]
    random.shuffle(lives)
    share = [lives[worker::workers] for worker in range(workers)]
    share[random.randrange(workers)].append([Fault("replay", _hit(random, "replay"), "kill")])
    return share


def _hit(random: Random, point: str) -> int:
    return random.randint(*_HITS[point])
