"""Partitions without an owner in a stable group, and which member must make the group assign them.

A cooperative rebalance has two rounds: a partition is given up in the first and
given to its new owner in the second, which starts when the former owner joins
again. A static member that is replaced between the two (killed, or restarted in
process) takes over its former self's assignment without a new round: the
partition in transit then belongs to no one until something else moves. So each
worker looks at the group now and then, and the one with the least to lose
leaves and joins again.

New partitions are another matter: the group's leader assigns by its own view of
the topic, which it refreshes every `METADATA_REFRESH_S`. To leave before that
would change nothing.
"""

from collections.abc import Sequence

from npstream.kafka.config import METADATA_REFRESH_S
from npstream.kafka.group import LOOK_EVERY_S, Assignment

_LOST_S = LOOK_EVERY_S
"""A partition in transit must be seen twice, so it waits for six seconds at most; a rebalance takes less."""
_NEW_S = METADATA_REFRESH_S + 2 * LOOK_EVERY_S
_BACKOFF_MAX = 32


class OrphanWatch:
    """Decides from what it is shown whether this member must rejoin. Pure; `now_s` is monotonic.

    It outlives sessions: leaving again and again for the same partitions helps
    nobody, so each time without success doubles the patience.
    """

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._tried: frozenset[int] = frozenset()
        self._patience = 1

    def look(self, now_s: float, assignment: Assignment | None, partitions: int | None, member: str) -> Sequence[int]:
        """The partitions to rejoin for, if it is on this member to do so; None is a group in motion."""
        if not assignment or partitions is None:
            self._since = {}
            return ()
        owned = frozenset().union(*assignment.values())
        orphans = frozenset(range(partitions)) - owned
        self._since = {partition: self._since.get(partition, now_s) for partition in orphans}
        if not orphans & self._tried:
            self._tried, self._patience = frozenset(), 1
        first_new = max(owned, default=-1) + 1
        overdue = [p for p, since in self._since.items() if now_s - since >= self._wait_s(p >= first_new)]
        if not overdue or member != _least(assignment):
            return ()
        self._since, self._tried = {}, self._tried | frozenset(overdue)
        self._patience = min(2 * self._patience, _BACKOFF_MAX)
        return sorted(overdue)

    def _wait_s(self, is_new: bool) -> float:
        return self._patience * (_NEW_S if is_new else _LOST_S)


def _least(assignment: Assignment) -> str:
    return min(assignment, key=lambda member: (len(assignment[member]), member))
