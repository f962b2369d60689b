"""Partitions that nobody reads though the group is calm, and who must stir it.

A cooperative rebalance has two rounds: a partition is let go in the first and
given to its new owner in the second, which starts when the former owner joins
again. A static member that is replaced between the two (killed, or reset in
process) takes over its former self's assignment without a new round: the
partition in transit then belongs to no one until something else moves. So each
worker looks at the group now and then, and the one with the least to lose
leaves and joins again.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

LOOK_EVERY_S = 3.0
"""Between two looks. An orphan must be seen twice, so it waits for six seconds at most; a rebalance takes less."""

Assignment = Mapping[str, frozenset[int]]
"""Owned partitions by member id."""


class OrphanWatch:
    """Decides from what it is shown whether this member must stir the group. Pure."""

    def __init__(self, partitions: int) -> None:
        self._all = frozenset(range(partitions))
        self._seen: frozenset[int] = frozenset()

    def look(self, assignment: Assignment | None, member: str) -> Sequence[int]:
        """The partitions to stir the group for, if it is on this member to do so; None is a group in motion."""
        orphans = frozenset() if not assignment else self._all.difference(*assignment.values())
        again, self._seen = orphans & self._seen, orphans
        if not again or not assignment or member != _least(assignment):
            return ()
        return sorted(again)


def _least(assignment: Assignment) -> str:
    return min(assignment, key=lambda member: (len(assignment[member]), member))


class GroupView:
    """Asks the coordinator for the group's assignment without ever waiting for the answer."""

    def __init__(self, admin: AdminClient, group: str, topic: str) -> None:
        self._admin = admin
        self._group = group
        self._topic = topic
        self._next_s = 0.0
        self._asked: Future[Any] | None = None

    def answer(self, now_s: float) -> tuple[bool, Assignment | None]:
        """(whether there is news, the assignment or None when the group is in motion or out of reach)."""
        if self._asked is None:
            if now_s >= self._next_s:
                self._asked = self._admin.describe_consumer_groups([self._group], request_timeout=10.0)[self._group]
            return False, None
        if not self._asked.done():
            return False, None
        asked, self._asked, self._next_s = self._asked, None, now_s + LOOK_EVERY_S
        return True, self._assignment(asked)

    def _assignment(self, answered: Future[Any]) -> Assignment | None:
        try:
            found = answered.result(timeout=0)
        except KafkaException:
            return None  # out of reach or not allowed: other calls say so louder
        if found.state.name != "STABLE":
            return None
        return {member.member_id: self._owned(member) for member in found.members}

    def _owned(self, member: Any) -> frozenset[int]:
        owned = member.assignment.topic_partitions if member.assignment else ()
        return frozenset(tp.partition for tp in owned if tp.topic == self._topic)
