"""Partitions that nobody reads though the group is calm, and who must stir it.

A cooperative rebalance has two rounds: a partition is let go in the first and
given to its new owner in the second, which starts when the former owner joins
again. A static member that is replaced between the two (killed, or reset in
process) takes over its former self's assignment without a new round: the
partition in transit then belongs to no one until something else moves. So each
worker looks at the group now and then, and the one with the least to lose
leaves and joins again.
"""

import struct
import threading
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

LOOK_EVERY_S = 3.0
"""Between two looks. An orphan must be seen twice, so it waits for six seconds at most; a rebalance takes less."""

_ASK_S = 10.0

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
    """Asks for the group's assignment without ever waiting for the answer.

    By the client's older call: the one that replaces it (`describe_consumer_groups`)
    ends the whole process by a failed assertion when a broker goes away while it
    looks for the coordinator, and this is asked all the time, in outages too.
    """

    def __init__(self, admin: AdminClient, group: str, topic: str) -> None:
        self._admin = admin
        self._group = group
        self._topic = topic
        self._next_s = 0.0
        self._asked: Future[Assignment | None] | None = None

    def answer(self, now_s: float) -> tuple[bool, Assignment | None]:
        """(whether there is news, the assignment or None when the group is in motion or out of reach)."""
        if self._asked is None:
            if now_s >= self._next_s:
                self._asked = self._ask()
            return False, None
        if not self._asked.done():
            return False, None
        asked, self._asked, self._next_s = self._asked, None, now_s + LOOK_EVERY_S
        return True, asked.result(timeout=0)

    def _ask(self) -> "Future[Assignment | None]":
        """The answer to come. The call blocks, hence on a thread, which ends with the call's own timeout."""
        asked: Future[Assignment | None] = Future()
        threading.Thread(target=lambda: asked.set_result(self._look()), name="npstream-group", daemon=True).start()
        return asked

    def _look(self) -> Assignment | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                found = self._admin.list_groups(group=self._group, timeout=_ASK_S)
            return next((self._assignment(group) for group in found if group.id == self._group), None)
        except (KafkaException, RuntimeError, ValueError):
            return None  # out of reach or not allowed: other calls say so louder

    def _assignment(self, found: Any) -> Assignment | None:
        if found.error is not None or found.state != "Stable":
            return None
        return {member.id: assigned_partitions(member.assignment or b"", self._topic) for member in found.members}


def assigned_partitions(assignment: bytes, topic: str) -> frozenset[int]:
    """The partitions of `topic` in a member's assignment, as the consumer protocol writes it. Raises ValueError.

    Version (2 bytes), number of topics (4); for each its name (2 bytes of length),
    number of partitions (4) and the partitions (4 each). What follows is the leader's own.
    """
    if not assignment:
        return frozenset()
    try:
        (topics,) = struct.unpack_from(">i", assignment, 2)
        at = 6
        for _ in range(topics):
            (length,) = struct.unpack_from(">h", assignment, at)
            name = assignment[at + 2 : at + 2 + length]
            (count,) = struct.unpack_from(">i", assignment, at + 2 + length)
            at += 6 + length
            partitions = struct.unpack_from(f">{count}i", assignment, at)
            at += 4 * count
            if name == topic.encode():
                return frozenset(partitions)
    except struct.error as error:
        raise ValueError(f"a member's assignment cannot be read: {error}") from error
    return frozenset()
