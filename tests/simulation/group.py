"""The group coordinator: members, generations, cooperative rebalances, static members, committed offsets."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from tests.simulation.transactions import Transaction

Stored = tuple[int, str]
"""A committed offset with its metadata."""


class UnknownMember(Exception):
    """The group has gone on without this member."""


class FencedInstance(Exception):
    """Another process has joined under the name of this static member."""


class StaleGeneration(Exception):
    """The group has rebalanced since this member looked."""


@dataclass(eq=False)
class Membership:
    """What a member knows of itself; of one that was dropped what it knew last.

    `instance` names a static member, `alive` says whether its process sends heartbeats now.
    """

    instance: str | None
    alive: Callable[[], bool]
    seen: float
    generation: int = 0
    assignment: frozenset[int] = frozenset()


class Group:
    """One group on one topic.

    A rebalance waits for every member, and who takes part in it knows its result
    at once. A partition is given to another member only when its holder has let
    go of it, or is gone.
    """

    def __init__(self, partitions: int, session_timeout_s: float) -> None:
        self._partitions = partitions
        self._session_timeout_s = session_timeout_s
        self.generation = 0
        self.members: list[Membership] = []
        self.positions: dict[int, Stored] = {}
        self._undecided: dict[int, dict[int, Stored]] = {}
        """Offsets in transactions without a marker, by transaction."""
        self._holders: dict[int, Membership] = {}
        """Who may still be at work on each partition."""
        self._shift = 0
        self._is_stale = False

    def join(self, instance: str | None, alive: Callable[[], bool], now: float) -> Membership:
        """A new member; a static one takes the place of the former one of its name, without a rebalance."""
        member = Membership(instance, alive, now)
        former = next((each for each in self.members if instance is not None and each.instance == instance), None)
        if former is None:
            self._is_stale = True
        else:
            self.members.remove(former)
            member.generation, member.assignment = former.generation, former.assignment
            held = [partition for partition, holder in self._holders.items() if holder is former]
            self._holders |= dict.fromkeys(held, member)
            self._let_go(member, set(held) - member.assignment)
        self.members.append(member)
        return member

    def leave(self, member: Membership) -> None:
        """Give up a membership with all its partitions."""
        if member in self.members:
            self.members.remove(member)
            self._let_go(member, range(self._partitions))
            self._is_stale = True

    def release_all_but(self, member: Membership, kept: Collection[int]) -> None:
        """The member is at work on these only: others may have the rest."""
        self.require(member)
        self._let_go(member, set(range(self._partitions)).difference(kept))

    def _let_go(self, member: Membership, partitions: Iterable[int]) -> None:
        for partition in partitions:
            if self._holders.get(partition) is member:
                del self._holders[partition]
                self._is_stale = True

    def shuffle(self) -> None:
        """Rebalance towards another assignment."""
        self._shift += 1
        self._is_stale = True

    def turn(self, now: float) -> None:
        """Take note of heartbeats, drop who has sent none for too long, and rebalance when all members respond."""
        for member in list(self.members):
            if member.alive():
                member.seen = now
            elif now - member.seen > self._session_timeout_s:
                self.leave(member)
        if self._is_stale and all(member.alive() for member in self.members):
            self._rebalance()

    def forgive(self, now: float) -> None:
        """A coordinator that has come back gives every member its full time."""
        for member in self.members:
            member.seen = now

    def _rebalance(self) -> None:
        self._is_stale = False
        self.generation += 1
        given: dict[int, Membership] = {}
        for partition in range(self._partitions if self.members else 0):
            wanted = self.members[(partition + self._shift) % len(self.members)]
            if self._holders.get(partition, wanted) is wanted:
                given[partition] = wanted
        self._holders |= given
        for member in self.members:
            member.generation = self.generation
            member.assignment = frozenset(partition for partition, owner in given.items() if owner is member)

    def require(self, member: Membership) -> None:
        """Raise `FencedInstance` or `UnknownMember` for one that is no member any more."""
        if member not in self.members:
            if any(each.instance == member.instance for each in self.members if member.instance is not None):
                raise FencedInstance
            raise UnknownMember

    def add_offsets(self, transaction: Transaction, offsets: dict[int, Stored], member: Membership, at: int) -> None:
        """Offsets that count when the transaction is committed, from a member of the present generation only."""
        self.require(member)
        if at != self.generation:
            raise StaleGeneration
        self._undecided.setdefault(transaction.number, {}).update(offsets)
        transaction.participants["offsets"] = lambda committed: self._decide(transaction.number, committed=committed)

    def _decide(self, transaction: int, *, committed: bool) -> None:
        offsets = self._undecided.pop(transaction)
        if committed:
            self.positions |= offsets

    def is_undecided(self, partition: int) -> bool:
        """Whether a transaction without a marker may move the partition's committed offset."""
        return any(partition in offsets for offsets in self._undecided.values())
