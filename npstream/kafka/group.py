"""The group and the topics as the brokers see them now: asked for now and then, never waited for.

By the client's older call for groups: the one that replaces it
(`describe_consumer_groups`) ends the whole process by a failed assertion when a
broker goes away while it looks for the coordinator, and workers ask all the
time, in outages too.
"""

import struct
import threading
import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from npstream.records import Topics

LOOK_EVERY_S = 3.0
"""Between two looks."""

_ASK_S = 10.0

Assignment = Mapping[str, frozenset[int]]
"""Owned partitions by member id."""


@dataclass(frozen=True, slots=True)
class View:
    """What one look saw; None for what could not be seen, and for the assignment of a group in motion.

    `partitions` are those of the events topic, `served` how many of them all
    output topics have room for.
    """

    assignment: Assignment | None = None
    topic_id: str | None = None
    partitions: int | None = None
    served: int | None = None


class GroupView:
    """Looks at the group and its topics on threads of its own, one look at a time."""

    def __init__(self, admin: AdminClient, group: str, topics: Topics) -> None:
        self._admin = admin
        self._group = group
        self._topics = topics
        self._next_s = 0.0
        self._asked: Future[View] | None = None

    def news(self, now_s: float) -> View | None:
        """What the last look saw, once; None while there is nothing new. Starts the next look when it is time."""
        if self._asked is None:
            if now_s >= self._next_s:
                self._asked = self._ask()
            return None
        if not self._asked.done():
            return None
        asked, self._asked, self._next_s = self._asked, None, now_s + LOOK_EVERY_S
        return asked.result(timeout=0)

    def _ask(self) -> "Future[View]":
        """The result to come. The calls block, so they run on a thread, which ends with the calls' own timeouts."""
        asked: Future[View] = Future()
        threading.Thread(target=lambda: asked.set_result(self._look()), name="npstream-group", daemon=True).start()
        return asked

    def _look(self) -> View:
        """Never raises: a look that fails for whatever reason is one that saw nothing, and the next one comes."""
        try:
            found = described(self._admin, self._topics, _ASK_S)
            counts = [found[name][1] for name in self._topics.names()]
            return View(self._assignment(), found[self._topics.events][0], counts[0], min(counts))
        except Exception:
            return View()  # out of reach or not allowed: other calls say so louder

    def _assignment(self) -> Assignment | None:
        group = find_group(self._admin, self._group, _ASK_S)
        if group is None or group.state != "Stable":
            return None
        topic = self._topics.events
        return {member.id: assigned_partitions(member.assignment or b"", topic) for member in group.members}


def described(admin: AdminClient, topics: Topics, timeout_s: float) -> dict[str, tuple[str, int]]:
    """The id and the partition count of each of the four topics, by name. Raises `KafkaException`."""
    asked = admin.describe_topics(TopicCollection(list(topics.names())), request_timeout=timeout_s)
    found = {name: future.result(timeout=2 * timeout_s) for name, future in asked.items()}
    return {name: (_id(topic.topic_id), len(topic.partitions)) for name, topic in found.items()}


def _id(found: Any) -> str:
    """The id as text; empty for the zero that brokers without topic ids send."""
    is_zero = found.get_most_significant_bits() == 0 and found.get_least_significant_bits() == 0
    return "" if is_zero else str(found)


def find_group(admin: AdminClient, group: str, timeout_s: float) -> Any | None:
    """The group as the client describes it, None when there is none. Raises `KafkaException`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = next((each for each in admin.list_groups(group=group, timeout=timeout_s) if each.id == group), None)
    if found is not None and found.error is not None:
        raise KafkaException(found.error)
    return found


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
