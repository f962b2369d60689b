"""Frozen value types that travel between the rooms.

`Record` and `Output` are made once per event on the hot path, hence named
tuples: they cost half of a frozen dataclass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

from npstream.errors import plural

Headers = Sequence[tuple[str, bytes | None]]

UNREADABLE_HEADERS: Headers = [("\N{REPLACEMENT CHARACTER}", None)]
"""In place of a record's headers when a name among them is not UTF-8: Kafka allows any bytes, its clients do not.

A list, as the clients hand headers over, so that one comparison finds it wherever a record comes from.
"""


class Record(NamedTuple):
    """One event as the log holds it. Nothing has been decoded."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Batch(NamedTuple):
    """Records of one partition in offset order."""

    partition: int
    records: list[Record]


class Channel(IntEnum):
    """Which of npstream's four topics is meant."""

    EVENTS = 0
    DECISIONS = 1
    DEAD_LETTERS = 2
    CHECKPOINTS = 3


class Phase(StrEnum):
    """Where a partition is in its life with one worker.

    RESTORING ──► REPLAYING ──► FIRST_COMMIT_DUE ──► LIVE
        └─────────────┴────────────────┴──────────────┴──► PAUSED, until an operator acts

    Phases in the middle are skipped where there is nothing to do in them.
    """

    RESTORING = "restoring"
    REPLAYING = "replaying"
    FIRST_COMMIT_DUE = "first_commit_due"
    LIVE = "live"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of the four topics."""

    events: str
    decisions: str
    dead_letters: str
    checkpoints: str

    def names(self) -> tuple[str, str, str, str]:
        """The names in the order of `Channel`, so that `names()[channel]` is a topic."""
        return self.events, self.decisions, self.dead_letters, self.checkpoints

    def too_narrow(self, counts: Sequence[int]) -> list[tuple[str, str]]:
        """Topics with fewer partitions than the events topic, each with that in words; `counts` by `Channel`."""
        wide = counts[Channel.EVENTS]
        narrow = [(name, count) for name, count in zip(self.names(), counts, strict=True) if count < wide]
        return [(name, f"has {plural(count, 'partition')}, {self.events!r} has {wide}") for name, count in narrow]


class Output(NamedTuple):
    """One record to publish on the partition number of its event."""

    channel: Channel
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


class KeyValue(NamedTuple):
    """One record of the compacted checkpoint topic."""

    offset: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where a partition's newest snapshot is in the checkpoint topic.

    `offset` is the log offset of its first chunk, `chunks` how many there are,
    `ring_place` its place in the ring, `next_offset` the input offset it resumes at,
    `digest` that of its bytes in hex digits.
    """

    offset: int
    chunks: int
    ring_place: int
    next_offset: int
    digest: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What a replay to the committed offset must reproduce, both as hex digests."""

    outputs: int
    chain: str
    state: str


@dataclass(frozen=True, slots=True)
class Position:
    """A partition's committed progress: everything below `next_offset` is decided."""

    next_offset: int
    pointer: Pointer
    proof: Proof


@dataclass(frozen=True, slots=True)
class Share:
    """What one partition adds to one transaction.

    `chunks` are the (key, value) pairs of a new snapshot, or empty. When there
    are any, `position.pointer.offset` is not known yet: the broker replaces it
    with the log offset that the first chunk gets. `changes` are further records
    for the checkpoint topic, written after the chunks, `segments` such that are written
    before them; those without a value are removed.
    """

    partition: int
    outputs: Sequence[Output]
    position: Position
    chunks: Sequence[tuple[bytes, bytes]] = ()
    changes: Sequence[tuple[bytes, bytes]] = ()
    segments: Sequence[tuple[bytes, bytes | None]] = ()
