"""Some hundred schedules; `make simulate` runs thousands."""

import re
from dataclasses import replace
from itertools import count

import pytest

from npstream.port import Log
from tests.simulation.group import Group, Stored
from tests.simulation.requests import POINTS
from tests.simulation.schedule import Action, Fault, Feed, Kind, Schedule, Turn, draw
from tests.simulation.shrink import shrink
from tests.simulation.simulation import Seen, Simulation, attempt, is_sound, quiet
from tests.simulation.transactions import Transaction
from tests.system import oracle


def run(seeds: range) -> Seen:
    """All schedules of these seeds; the first that fails is shown, cut down."""
    seen = Seen()
    for seed in seeds:
        what, problem = attempt(draw(seed))
        seen.add(what)
        if problem is not None:
            smallest = shrink(draw(seed), lambda smaller: not is_sound(smaller))
            pytest.fail(f"{problem}\n{smallest}\n{smallest!r}", pytrace=False)
    return seen


def test_decisions_are_those_of_an_undisturbed_run_whatever_a_seed_does_to_the_group() -> None:
    """A few schedules, for who is at work on something."""
    assert run(range(1, 31)).equal > 1000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_hundreds_of_schedules_meet_every_kind_of_fault_nearly_everywhere() -> None:
    """Decisions equal the oracle's after each; and the schedules do test something."""
    seen = run(range(31, 231))

    assert {kind for kind, _ in seen.met} == set(Kind)
    assert {point for _, point in seen.met} == set(POINTS)
    assert len(seen.met) > 0.8 * len(Kind) * len(POINTS)
    assert min(seen.events[name] for name in ("lost", "revoked", "replay", "killed", "fatal", "session ended")) >= 10


def test_the_same_schedule_is_the_same_run() -> None:
    """To the last byte of every topic: nothing in it depends on a clock, a thread or an order of hashes."""
    schedule = draw(7)

    assert contents(schedule) == contents(schedule)


def contents(schedule: Schedule) -> list[object]:
    """Everything that the topics hold at the end."""
    with quiet():
        simulation = Simulation(schedule)
        simulation.run()
    log: Log = simulation.stage.log
    channels = simulation.stage.topics.channels()
    return [list(oracle.read(log, c, p)) for c in channels for p in range(schedule.partitions)]


ZOMBIE = Schedule(
    seed=1,
    partitions=1,
    workers=2,
    static=True,
    labels=False,
    corrections=False,
    batch_max=8,
    checkpoint_every=15,
    compact_every=60,
    actions=(
        Feed(10),
        Turn(0),
        Fault(0, "offsets", Kind.STOPS, hold_s=12.0, meanwhile=4),
        Turn(0),
        *[Turn(1)] * 4,
        Turn(0),
    ),
)


def test_a_zombie_that_is_written_down_by_hand_leaves_no_trace() -> None:
    """The other worker takes over while the first is stopped, whose offsets are then refused."""
    seen, problem = attempt(ZOMBIE)

    assert problem is None
    assert seen.met[Kind.STOPS, "offsets"] == 1
    assert seen.events["session ended"] > 0


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that takes offsets from whoever sends them."""

    def add_offsets(self: Group, transaction: Transaction, offsets: dict[int, Stored], *_: object) -> None:
        honest(self, transaction, offsets, self.members[0], self.generation)

    honest = Group.add_offsets
    monkeypatch.setattr(Group, "add_offsets", add_offsets)


@pytest.mark.usefixtures("lenient")
def test_a_group_without_fencing_is_noticed() -> None:
    """The same zombie then decides its events a second time."""
    _, problem = attempt(ZOMBIE)

    assert problem is not None
    assert re.search(r"[1-9]\d* doubled", problem)


@pytest.mark.usefixtures("lenient")
def test_a_failing_schedule_is_cut_down_to_what_it_takes() -> None:
    """What is left still fails, nothing of it can be left out, and it is printed in words."""
    failing = next(schedule for schedule in map(draw, count(1)) if not is_sound(schedule))
    smallest = shrink(failing, lambda smaller: not is_sound(smaller))

    assert not is_sound(smallest)
    assert len(smallest.actions) < len(failing.actions) / 4
    assert all(is_sound(replace(smallest, actions=rest)) for rest in one_less(smallest))
    assert str(smallest).count("\n") == len(smallest.actions)


def one_less(schedule: Schedule) -> list[tuple[Action, ...]]:
    """The actions without one of them, in every way."""
    return [(*schedule.actions[:at], *schedule.actions[at + 1 :]) for at in range(len(schedule.actions))]
