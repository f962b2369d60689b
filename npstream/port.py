"""The ports: all that the worker and the tools know of a broker.

`Broker` is what a member of the group uses, `StateReader` what reads the group's
committed state without joining it, `Log` plain topics. There are two adapters,
`npstream.kafka` and `npstream.embedded`; one contract suite (`tests/contracts`)
runs over both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, Protocol

from npstream.errors import StateCorrupt
from npstream.records import Batch, Channel, Headers, KeyValue, LabelsWanted, Phase, Pointer, Position, Record, Share

Start = Literal["earliest", "latest"] | int
"""Where a partition without state begins: an end of the log, or a timestamp in ms."""
DEFAULT_START: Literal["earliest"] = "earliest"


FinishCommit = Callable[[], dict[int, Pointer]]
"""Waits until a commit that has begun is over; returns the pointer of each partition as committed."""


class Listener(Protocol):
    """Learns about ownership, only from inside `Broker.poll` and `Broker.close`.

    The methods may block within their own budgets. An exception they raise is
    kept by the adapter and raised again by `poll` after the client has
    returned, never through the client's callback.
    """

    def on_assigned(self, partitions: Sequence[int]) -> Mapping[int, int | None]:
        """Restore these partitions; return the input offset each must be read from, None where it is paused."""

    def on_revoked(self, partitions: Sequence[int]) -> None:
        """Still the owner, for the last time: may commit a checkpoint, then must forget them."""

    def on_lost(self, partitions: Sequence[int]) -> None:
        """No longer the owner: forget them, commit nothing."""

    def on_waiting(self, partition: int, reason: str) -> None:
        """This partition is owned and cannot be read yet: pause it. `on_assigned` follows when it can."""

    def on_failed(self, partition: int, error: StateCorrupt) -> None:
        """This owned partition cannot be read any further: pause it. The others go on."""

    def phase_of(self, partition: int) -> Phase:
        """The phase of an owned partition; the adapter reads nothing of one that is paused."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The range of one partition: first kept offset, last stable offset, high watermark."""

    begin: int
    stable: int
    high: int


Place = tuple[Channel, int]
"""A partition of one of the topics."""

LABELS_MAX = 5_000
"""Most labels that are merged with one batch of a partition: bounds memory, and is far more than come in a turn."""
NEAR_END = 100
"""A partition with so few events left to read has caught up, whatever the marks of transactions at the end."""


def due_labels(labels: Sequence[Record], moment_ms: int, events_left: int) -> Sequence[Record]:
    """Those of the labels at hand that come before a batch: all when there is hardly an event left to read.

    While there is, only labels that are not younger than the batch: the others
    are mostly about events that have not been read yet. No order is wrong, since
    the one that was taken is recorded; this one forgets the fewest labels.
    """
    if events_left <= NEAR_END:
        return labels
    return list(takewhile(lambda label: label.timestamp_ms <= moment_ms, labels))


class Broker(Protocol):
    """Exactly-once access to the topics for one worker.

    Raises `Retryable` for anything unclear (the worker then calls `abandon` and
    builds a new one), `Refused` when the records themselves may be the cause, and
    `Fatal` for what a new one would not cure.
    """

    @property
    def state(self) -> "StateReader":
        """Reads the group's committed state; ends with the broker."""

    def subscribe(self, listener: Listener) -> None:
        """Join the group. Assignments arrive through the listener inside `poll`."""

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Wait for records of owned partitions, at most `timeout_s`; may call the listener."""

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        """Publish all shares or nothing; return the pointer of each partition as committed.

        Order within a partition: outputs, segments, snapshot chunks, changes, position.
        """

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        """Begin a commit; what it returns, called once, waits for its end and returns or raises what `commit` does.

        The caller may compute in the meantime, but must ask nothing of the broker except `read_labels` and `abandon`.
        """

    def read_labels(self, wanted: Sequence[LabelsWanted]) -> dict[int, Sequence[Record]]:
        """Labels that come before a batch of each partition just polled, as `due_labels` says; at most `LABELS_MAX`.

        Nothing where there is no labels topic. Does not move on by itself: what is
        wanted next says what was taken. Waits a moment for labels of a partition
        that lags. Calls the listener's `on_failed` for one whose labels are gone.
        """

    def close(self, timeout_s: float) -> None:
        """Leave politely (the listener's `on_revoked` runs). Static members keep their place."""

    def abandon(self) -> None:
        """Drop everything at once; no listener call, no commit. Never raises."""


class Log(Protocol):
    """Plain reading and writing of topics, outside any group: for tools, tests and restore.

    Readers see committed records only.
    """

    def partitions(self, channel: Channel) -> int:
        """Partition count; raises `Fatal` naming the topic when it does not exist."""

    def topic_id(self, channel: Channel = Channel.EVENTS) -> str:
        """Distinguishes a topic from one created later under its name; empty where the log has no such ids."""

    def ends(self, channel: Channel, partition: int) -> Ends:
        """The partition's range now."""

    def all_ends(self, places: Sequence[Place]) -> dict[Place, Ends]:
        """The ranges of many partitions, asked for together."""

    def offset_at(self, partition: int, start: Start, channel: Channel = Channel.EVENTS) -> int:
        """A topic's first offset at or after `start`."""

    def read(self, channel: Channel, partition: int, begin: int, end: int) -> Iterator[Record]:
        """Committed records with `begin <= offset < end`, bounded by the stable end at call time."""

    def read_all(self, ranges: Mapping[Place, tuple[int, int]]) -> Iterator[tuple[Place, Record | StateCorrupt]]:
        """What `read` gives of many places, in one round: each in order, the places in any.

        `StateCorrupt` ends the place it comes for, and no other.
        """

    def append(
        self, channel: Channel, partition: int, records: Sequence[tuple[bytes | None, bytes | None, Headers, int]]
    ) -> None:
        """Write (key, value, headers, timestamp_ms) records durably, outside any transaction of a worker."""

    def close(self) -> None:
        """Close the connections. Never raises."""


class Labelling(Protocol):
    """Writes labels to the events topic for a command, of which one at a time does so."""

    def open(self) -> None:
        """Make sure that nobody else writes labels from now on, and that what others have written can be read.

        Raises `Fatal` where another command is at work and cannot be ended.
        """

    def publish(self, partition: int, records: Sequence[tuple[bytes | None, bytes | None, Headers, int]]) -> None:
        """Write (key, value, headers, timestamp_ms) records: all of them, or none. Raises `Retryable`, `Fatal`."""

    def close(self) -> None:
        """Let the next one in. Never raises."""


class StateReader(Protocol):
    """A group's committed state, read without joining the group: by a worker's restore and by every tool."""

    def committed(self, partition: int) -> Position | None:
        """The stable committed position; waits for undecided transactions within a limit.

        Raises `StateCorrupt` when the stored metadata cannot be read.
        """

    def all_committed(self, partitions: Sequence[int]) -> dict[int, Position | StateCorrupt | None]:
        """The same of many partitions in one request; an error of one partition in the place of its position."""

    def read_checkpoints(self, pointers: Mapping[int, Pointer]) -> Iterator[tuple[int, list[KeyValue] | StateCorrupt]]:
        """The `chunks` records of one snapshot per partition, all in one fetch, whatever the topic's age.

        Comes partition by partition, in any order, as soon as each is complete.
        Waits until they are stable. `StateCorrupt` in their place when they are gone.
        """

    def members(self) -> list[str]:
        """The workers of the group now, in words for an operator; empty when there are none.

        A static member that was stopped counts until its session ends.
        """

    def close(self) -> None:
        """Close the connections. Never raises."""


Heartbeat = Callable[[], None]
"""Called whenever a long wait turns, so that liveness sees the loop alive."""
