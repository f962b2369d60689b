"""Frozen value types that travel between the rooms.

`Record` and `Output` are made once per event on the hot path, hence named
tuples: they cost half of a frozen dataclass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple

from npstream.arrays import Counts
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


class Merge(NamedTuple):
    """Records of the labels topic, at least one: learned just before the first observation at or after offset `before`.

    Two logs have no common order. Whoever reads them makes one by such merges, and it is recorded.
    """

    before: int
    records: Sequence[Record]

    @property
    def next_label(self) -> int:
        """The offset after the last of them."""
        return self.records[-1].offset + 1


class LabelsWanted(NamedTuple):
    """What must be known of a partition to read the labels that come before a batch of its events.

    `next_label` is the offset in the labels topic, 0: its first record, whatever
    its offset; `moment_ms` the time of the batch's first event.
    """

    partition: int
    next_label: int
    moment_ms: int


class Channel(IntEnum):
    """Which of npstream's four topics is meant, or that of the labels, where there is one."""

    EVENTS = 0
    DECISIONS = 1
    DEAD_LETTERS = 2
    CHECKPOINTS = 3
    LABELS = 4


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
    """The names of the four topics, and of the one that labels come on, None when they come with the events."""

    events: str
    decisions: str
    dead_letters: str
    checkpoints: str
    labels: str | None = None

    def names(self) -> tuple[str, ...]:
        """The names in the order of `Channel`, so that `names()[channel]` is a topic."""
        own = self.events, self.decisions, self.dead_letters, self.checkpoints
        return own if self.labels is None else (*own, self.labels)

    def channels(self) -> tuple[Channel, ...]:
        """Those that have a topic, in the order of `names`."""
        return tuple(Channel)[: len(self.names())]

    def misplaced_labels(self, counts: Sequence[int]) -> str | None:
        """Why the labels topic cannot be merged with the events partition by partition; `counts` by `Channel`."""
        if self.labels is None or counts[Channel.LABELS] <= counts[Channel.EVENTS]:
            return None
        return (
            f"labels.topic {self.labels!r} has {plural(counts[Channel.LABELS], 'partition')}, {self.events!r} has "
            f"{counts[Channel.EVENTS]}: a label must be on the partition number of its event. Copy the labels to a "
            "topic with as many by `npstream route-labels`, and name that one"
        )

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
class LabelPosition:
    """How far the labels topic is learned, and how it was merged with the events since the newest snapshot.

    `saved` is the label offset of that snapshot. Each merge is the offset of the
    observation it came before, and the label offset it reached.
    """

    saved: int
    merges: tuple[tuple[int, int], ...] = ()

    @property
    def next_label(self) -> int:
        """Labels below this offset are learned."""
        return self.merges[-1][1] if self.merges else self.saved


@dataclass(frozen=True, slots=True)
class Position:
    """A partition's committed progress: everything below `next_offset` is decided.

    `labels` is None where labels have no topic of their own.
    """

    next_offset: int
    pointer: Pointer
    proof: Proof
    labels: LabelPosition | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """What one partition adds to one transaction.

    `chunks` are the (key, value) pairs of a new snapshot, or empty. When there
    are any, `position.pointer.offset` is not known yet: the broker replaces it
    with the log offset that the first chunk gets. `changes` are further records
    for the checkpoint topic, written after the chunks, `segments` such that are written
    before them, also archived snapshots; those without a value are removed.
    """

    partition: int
    outputs: Sequence[Output]
    position: Position
    chunks: Sequence[tuple[bytes, bytes]] = ()
    changes: Sequence[tuple[bytes, bytes]] = ()
    segments: Sequence[tuple[bytes, bytes | None]] = ()


class Counted(NamedTuple):
    """A rate as it was counted."""

    hits: int = 0
    trials: int = 0

    @property
    def share(self) -> float | None:
        """None where nothing was counted."""
        return self.hits / self.trials if self.trials else None


NONE_COUNTED = Counted()


class Spans(NamedTuple):
    """A rate over recent events, and over all since the warm-up."""

    window: Counted = Counted()
    lifetime: Counted = Counted()


class TierRates(NamedTuple):
    """What `AlarmRates` says of all decisions, of the alarms of one tier."""

    name: str
    alarm_rate: Spans = Spans()
    fpr: Spans = Spans()
    tpr: Spans = Spans()


class AlarmRates(NamedTuple):
    """Alarms among all decisions, among labelled non-targets and targets, without those decided in warm-up.

    `alarms_per_day` of event time over the last day; None before an hour has passed, or where event times are none.
    `tiers` are the strictest first, none without them.
    """

    alarm_rate: Spans = Spans()
    fpr: Spans = Spans()
    tpr: Spans = Spans()
    alarms_per_day: float | None = None
    tiers: tuple[TierRates, ...] = ()


COUNTED_OVER_TIME = (
    "decisions",
    "warmup",
    "alarms",
    "withheld",
    "non_targets",
    "false_alarms",
    "targets",
    "detections",
)
"""What is counted by the minute and by the hour; those in warm-up are neither alarms nor among labelled ones."""


class CountsOverTime(NamedTuple):
    """Counts of event time up to `newest_ms` since the epoch, 0: none yet; a column each of `COUNTED_OVER_TIME`.

    `minutes` int32[1440, 8] of the last day, `hours` int32[744, 8] of the last month, as rings: minute m since the
    epoch is row m % 1440.
    """

    newest_ms: int
    minutes: Counts
    hours: Counts


class Pairs(NamedTuple):
    """Labelled events of one kind, by which of champion and challenger gave an alarm; neither was in warm-up."""

    neither: int = 0
    challenger_alone: int = 0
    champion_alone: int = 0
    both: int = 0


class ChallengerRates(NamedTuple):
    """What the decisions of a challenger came to, which nobody saw, and how they compare with the published ones.

    It met its first event at offset `began`, and holds `tau` by its own `control`.
    """

    tau: float
    control: str
    began: int
    alarm_rate: Spans = Spans()
    fpr: Spans = Spans()
    tpr: Spans = Spans()
    non_targets: Pairs = Pairs()
    targets: Pairs = Pairs()


class SampleLabels(NamedTuple):
    """Labels of all alarms and of a sample of the other observations.

    The others of each class are counts and the probability with which one of them was looked at.
    """

    false_alarms: int
    detections: int
    other_non_targets: tuple[tuple[int, float], ...]
    other_targets: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Tier:
    """What one tier holds and has done. An alarm that reached a stricter tier is one of its alarms too."""

    name: str
    rate: float
    threshold: float
    budget_left: float
    fpr: float
    tpr: float
    alarms: int
    negatives: int
    positives: int
    false_alarms: int
    detections: int
    outstanding: int
    held: int
    withheld: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One partition as it was between two events; taken on the worker's thread, never changed.

    `counts` are the partition's counters since its first event, by the names of
    its tally; `bad_events` those of this process, by reason and by the decision
    published all the same ("1", "-1", "none"). `negatives` and the like are
    labelled events; `pending` observations wait for a label, `correctable` have one
    that may be corrected. `warmup` is what the threshold has seen of what it must see before the first alarm,
    `next_label` where the labels topic is read next, None without one. `replay_to` is the offset at which a replay
    ends, `saved_offset` that of the newest snapshot. `sample` are labels of the review
    sample, None without one; `rates` come from the state, whoever made it. `tiers` are the strictest first, as those
    of the rates are; none without them. `challenger` are the rates of the second model, None without one.
    """

    partition: int
    phase: Phase
    next_offset: int
    replay_to: int
    saved_offset: int
    counts: Mapping[str, int]
    bad_events: Mapping[tuple[str, str], int]
    preset: str
    control: str
    learning: bool
    d: int
    features: tuple[str, ...] | None
    tau: float
    t: int
    negatives: int
    positives: int
    false_alarms: int
    detections: int
    threshold: float
    gamma: float
    budget_left: float
    outstanding: int
    pending: int
    correctable: int
    warming_up: bool
    warmup: Counted = NONE_COUNTED
    next_label: int | None = None
    sample: SampleLabels | None = None
    rates: AlarmRates = field(default_factory=AlarmRates)
    tiers: Sequence[Tier] = ()
    challenger: ChallengerRates | None = None
    timeline: CountsOverTime | None = field(default=None, compare=False, repr=False)
