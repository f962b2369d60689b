"""What the contract does not ask for: the simulated cluster is as strict as a real one with zombies and the dying."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest

from npstream.errors import Fatal, Retryable
from npstream.port import Broker, Log
from npstream.records import Channel, Position
from tests.contracts.builders import Owner, chunks, decision, events, share, values
from tests.contracts.dying_worker import SHARES
from tests.simulation.broker import SimulatedBroker
from tests.simulation.clock import Seconds
from tests.simulation.cluster import SESSION_TIMEOUT_S, TRANSACTION_TIMEOUT_S, Cluster
from tests.simulation.place import SimulatedPlace
from tests.simulation.requests import Result, Undisturbed
from tests.stage.places import topics_of


class Killed(BaseException):
    """The process is gone."""


class Fragile(Undisturbed):
    """A process that can be stopped, and that is killed at the request with this number, before or after its effect."""

    def __init__(self, cluster: Cluster, killed_at: int = 0, *, after: bool = False) -> None:
        super().__init__(cluster)
        self.killed_at, self.after = killed_at, after
        self.made = 0
        self.is_dead = False
        self.is_stopped = False

    def is_alive(self) -> bool:
        return not self.is_dead and not self.is_stopped

    def make(self, point: str, effect: Callable[[], Result]) -> Result:
        self.made += 1
        now = self.made == self.killed_at
        if now and not self.after:
            self._die()
        answer = super().make(point, effect)
        if now:
            self._die()
        return answer

    def _die(self) -> None:
        self.is_dead = True
        raise Killed


@dataclass
class Stage:
    """A cluster whose time stands still, and its workers."""

    place: SimulatedPlace = field(
        default_factory=lambda: SimulatedPlace(topics_of(""), "group", Cluster(Seconds())).create()
    )

    @property
    def cluster(self) -> Cluster:
        return self.place.cluster

    @property
    def log(self) -> Log:
        return self.place.log()

    def worker(self, name: str, process: Fragile) -> tuple[Broker, Owner]:
        """A worker that has been given its partitions."""
        broker = SimulatedBroker(self.cluster, self.place.topics, "group", name, process)
        owner = Owner(broker)
        broker.subscribe(owner)
        self.turn(owner)
        return broker, owner

    def turn(self, *owners: Owner) -> None:
        """Let each poll until nothing moves any more."""
        for _ in range(4):
            for owner in owners:
                owner.poll(timeout_s=0.0)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_worker_killed_at_any_request_of_a_commit_has_made_all_of_it_or_nothing() -> None:
    """Before the last request takes effect nothing is ever visible, from then on everything."""
    seen = []
    for number in count(1):
        for after in (False, True):
            stage = Stage()
            process = Fragile(stage.cluster)
            broker, _ = stage.worker("a", process)
            process.made, process.killed_at, process.after = 0, number, after
            try:
                broker.commit(SHARES)
            except Killed:
                seen.append(_visible(stage))
            else:
                assert len(set(seen)) == 2
                assert seen == sorted(seen)
                assert seen.count(True) == 1
                assert len(seen) > 20
                return


def _visible(stage: Stage) -> bool:
    """Whether the commit happened, as the next worker of that name finds it."""
    broker, _ = stage.worker("a", Fragile(stage.cluster))
    found: list[Position | None] = [broker.state.committed(partition) for partition in (0, 2)]
    places = [(c, p) for c in (Channel.DECISIONS, Channel.DEAD_LETTERS, Channel.CHECKPOINTS) for p in (0, 2)]
    shown = [len(values(stage.log, *place)) for place in places]
    assert (found == [None, None], shown) in ((True, [0] * 6), (False, [1, 2, 1, 0, 6, 1]))
    return found != [None, None]


def test_an_open_transaction_holds_readers_back_until_its_time_is_over(stage: Stage) -> None:
    """What comes after it on a partition waits with it; then it is aborted, and its producer is fenced."""
    process = Fragile(stage.cluster)
    broker, _ = stage.worker("a", process)
    finish = broker.start_commit([share(0, 1, [decision(b"open")], chunks(1))])
    stage.log.append(Channel.DECISIONS, 0, events(1))

    assert values(stage.log, Channel.DECISIONS, 0) == []
    stage.cluster.clock.sleep(TRANSACTION_TIMEOUT_S + 1)
    assert values(stage.log, Channel.DECISIONS, 0) == [b"event 0"]
    with pytest.raises(Retryable, match="open for too long"):
        finish()


def test_a_position_is_not_read_while_a_transaction_may_move_it(stage: Stage) -> None:
    """Whoever asks waits until it is decided and marked: here until its time is over."""
    process = Fragile(stage.cluster)
    broker, _ = stage.worker("a", process)
    process.made, process.killed_at, process.after = 0, 4, True  # begin, two records, offsets
    with pytest.raises(Killed):
        broker.commit([share(0, 1, [decision(b"open")], chunks(1))])
    began = stage.cluster.clock()

    assert stage.place.state().committed(0) is None
    assert stage.cluster.clock() - began > TRANSACTION_TIMEOUT_S


def test_partitions_move_only_when_their_holder_lets_go(stage: Stage) -> None:
    """A second worker gets nothing that the first has not given back."""
    _, first = stage.worker("a", Fragile(stage.cluster))
    assert first.owned == {0, 1, 2}
    _, second = stage.worker("b", Fragile(stage.cluster))
    assert second.owned == set()

    stage.turn(first, second)

    assert first.owned | second.owned == {0, 1, 2}
    assert not first.owned & second.owned
    assert ("revoked", (1,)) in first.reported


def test_a_stopped_worker_loses_its_partitions_and_cannot_commit(stage: Stage) -> None:
    """Its session ends, another takes over, and the zombie's offsets are refused, whatever it remembers."""
    sleeping = Fragile(stage.cluster)
    zombie, first = stage.worker("a", sleeping)
    sleeping.is_stopped = True
    _, second = stage.worker("b", Fragile(stage.cluster))
    assert second.owned == set()

    stage.cluster.clock.sleep(SESSION_TIMEOUT_S + 1)
    stage.turn(second)
    assert second.owned == {0, 1, 2}
    sleeping.is_stopped = False
    with pytest.raises(Retryable, match="moved on"):
        zombie.commit([share(0, 1, [decision(b"late")], chunks(1))])
    assert values(stage.log, Channel.DECISIONS, 0) == []

    stage.turn(first)
    assert first.reported[-1][0] == "lost"


def test_a_static_worker_comes_back_to_its_partitions_without_a_rebalance(stage: Stage) -> None:
    """Nobody else is moved, and the process that went before is fenced for good."""
    old, first = stage.worker("a", Fragile(stage.cluster))
    _, second = stage.worker("b", Fragile(stage.cluster))
    stage.turn(first, second)
    reported = list(second.reported)

    _, again = stage.worker("a", Fragile(stage.cluster))
    stage.turn(second)

    assert again.owned == first.owned
    assert second.reported == reported
    with pytest.raises(Fatal, match="has taken over"):
        old.commit([share(0, 1, [decision(b"twin")], chunks(1))])
    with pytest.raises(Fatal, match="has taken over"):
        first.poll()


def test_a_commit_overtaken_by_a_rebalance_is_made_again(stage: Stage) -> None:
    """The offsets of an older generation are refused; what is still owned is published once all the same."""
    process = Fragile(stage.cluster)
    broker, _ = stage.worker("a", process)
    finish = broker.start_commit([share(0, 1, [decision(b"once")], chunks(1))])
    stage.worker("b", Fragile(stage.cluster))

    assert finish()[0].offset > 0
    assert values(stage.log, Channel.DECISIONS, 0) == [b"once"]


def test_brokers_that_are_away_for_a_while_forget_nothing(stage: Stage) -> None:
    """Requests wait, then give up; afterwards members have their full session time again."""
    broker, owner = stage.worker("a", Fragile(stage.cluster))
    broker.commit([share(0, 3, chunks=chunks(1))])
    stage.cluster.restart(away_s=SESSION_TIMEOUT_S * 2)
    with pytest.raises(Retryable, match="do not respond"):
        broker.poll(1, 0.0)

    stage.cluster.clock.sleep(SESSION_TIMEOUT_S * 2)
    owner.poll(timeout_s=0.0)
    assert owner.owned == {0, 1, 2}
    at = broker.state.committed(0)
    assert at is not None
    assert at.next_offset == 3
