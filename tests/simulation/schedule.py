"""What happens in one simulated life of a group: drawn from a seed, printed in words, cut down when it fails."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from tests.simulation.requests import POINTS


class Kind(StrEnum):
    """What a fault does to a request."""

    FAILS = "fails"
    LOSES_ANSWER = "takes effect, but its answer is lost"
    KILLS = "kills the process before it takes effect"
    KILLS_AFTER = "kills the process after it took effect"
    HANGS = "hangs"
    STOPS = "finds the process stopped"
    STOPS_AFTER = "takes effect, then the process is stopped"


@dataclass(frozen=True, slots=True)
class Turn:
    """A worker takes one turn; a dead one is started again."""

    worker: int

    def __str__(self) -> str:
        return f"worker {self.worker} turns"


@dataclass(frozen=True, slots=True)
class Fault:
    """The next request of a worker at this point, after `skip` others, goes wrong.

    While it hangs, or the process is stopped, `hold_s` pass, and the next `meanwhile` actions happen.
    """

    worker: int
    point: str
    kind: Kind
    skip: int = 0
    hold_s: float = 0.0
    meanwhile: int = 0

    def __str__(self) -> str:
        which = f"request {self.skip + 1}" if self.skip else "next request"
        held = f" for {self.hold_s:g} s and {self.meanwhile} actions" if self.hold_s else ""
        return f"worker {self.worker}: the {which} at {self.point} {self.kind}{held}"


@dataclass(frozen=True, slots=True)
class Hurry:
    """From now on a worker's commits end while it computes, or not any more."""

    worker: int

    def __str__(self) -> str:
        return f"worker {self.worker}: its commits end early from now on, or late again"


@dataclass(frozen=True, slots=True)
class Feed:
    """Each partition gets more events, and the labels that belong to that time; perhaps aborted ones first."""

    events: int
    aborted: int = 0

    def __str__(self) -> str:
        return f"{self.events} events for each partition" + (
            f" after {self.aborted} aborted ones" if self.aborted else ""
        )


@dataclass(frozen=True, slots=True)
class Leave:
    """A worker is asked to stop, and stops politely."""

    worker: int

    def __str__(self) -> str:
        return f"worker {self.worker} is asked to stop"


@dataclass(frozen=True, slots=True)
class Replace:
    """A new process is started under a worker's name; the old one may be in the middle of a turn, and ends with it."""

    worker: int

    def __str__(self) -> str:
        return f"worker {self.worker} is started a second time"


@dataclass(frozen=True, slots=True)
class Shuffle:
    """The group decides to distribute its partitions in another way."""

    def __str__(self) -> str:
        return "the group rebalances"


@dataclass(frozen=True, slots=True)
class Outage:
    """The brokers are away for a while, and come back with what they held."""

    seconds: float

    def __str__(self) -> str:
        return f"the brokers restart, away for {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Wait:
    """Nobody does anything for a while."""

    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:g} s pass"


@dataclass(frozen=True, slots=True)
class Retune:
    """Processes that start from now on have another target rate in their settings."""

    tau: float

    def __str__(self) -> str:
        return f"new processes have tau {self.tau:g}"


Action = Turn | Fault | Hurry | Feed | Leave | Replace | Shuffle | Outage | Wait | Retune


@dataclass(frozen=True, slots=True)
class Schedule:
    """A group, its settings, and everything that happens to it, in order. The same schedule is the same run."""

    seed: int
    partitions: int
    workers: int
    static: bool
    labels: bool
    corrections: bool
    batch_max: int
    checkpoint_every: int
    compact_every: int
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        kind, labels = "static" if self.static else "dynamic", " with a labels topic" if self.labels else ""
        labels += ", labels may be corrected" if self.corrections else ""
        head = (
            f"seed {self.seed}: {self.workers} {kind} workers on {self.partitions} partitions{labels}, batches of "
            f"{self.batch_max}, checkpoints every {self.checkpoint_every} events, compaction every "
            f"{self.compact_every} records"
        )
        return "\n".join([head, *(f"  {number:3} {action}" for number, action in enumerate(self.actions, 1))])


_WEIGHTS = {Turn: 60, Fault: 14, Feed: 10, Shuffle: 3, Leave: 2, Replace: 2, Hurry: 2, Wait: 2, Outage: 1, Retune: 1}
_HOLDS_S = (3.0, 12.0, 20.0)
"""Shorter than the session, between session and transaction, longer than the transaction."""
_TAUS = (0.05, 0.1, 0.3)


def draw(seed: int) -> Schedule:
    """The schedule of a seed."""
    random = Random(seed)
    workers = random.choice((1, 2, 2, 3))
    return Schedule(
        seed=seed,
        partitions=random.choice((1, 2, 3)),
        workers=workers,
        static=random.random() < 0.6,
        labels=random.random() < 0.4,
        corrections=random.random() < 0.5,
        batch_max=random.choice((3, 8, 20)),
        checkpoint_every=random.choice((5, 15, 40)),
        compact_every=random.choice((5, 20, 60)),
        actions=(Feed(10), *_actions(random, workers, random.choice((30, 60, 90)))),
    )


def _actions(random: Random, workers: int, count: int) -> Iterator[Action]:
    for kind in random.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=count):
        worker = random.randrange(workers)
        if kind is Fault:
            yield _fault(random, worker)
            if random.random() < 0.2:  # often met at once; a process that is stopped then has a twin
                yield from (Turn(worker), Replace(worker), Turn(worker))
        elif kind is Feed:
            yield Feed(random.choice((1, 4, 10)), random.choice((0, 0, 2)))
        elif kind is Shuffle:
            yield Shuffle()
        elif kind is Outage:
            yield Outage(random.choice((1.0, 8.0, 25.0)))
        elif kind is Wait:
            yield Wait(random.choice((1.0, 11.0, 16.0)))
        elif kind is Retune:
            yield Retune(random.choice(_TAUS))
        else:
            yield kind(worker)


def _fault(random: Random, worker: int) -> Fault:
    point, kind, skip = random.choice(POINTS), random.choice(list(Kind)), random.choice((0, 0, 1, 5))
    if kind in (Kind.HANGS, Kind.STOPS, Kind.STOPS_AFTER):
        return Fault(worker, point, kind, skip, random.choice(_HOLDS_S), random.choice((0, 4, 12, 25)))
    return Fault(worker, point, kind, skip)
