"""A partition as it was at some offset: a kept snapshot or its beginning, then its events and changes of settings.

The processor is the worker's own, so what it publishes on the way is what the
worker published.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from npstream.codec.changes import Change
from npstream.codec.decoder import EventDecoder
from npstream.codec.history import History, Kept
from npstream.codec.snapshot import check_topic
from npstream.errors import SettingsError, StateCorrupt, UsageError
from npstream.history.merges import RecordedMerges
from npstream.model import ALGORITHM, Model
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.port import Log
from npstream.records import Channel, Output, Record
from npstream.state import kept_history, processor_of

_PAGE = 1000

Seed = Callable[[], Model]


@dataclass(frozen=True, slots=True)
class Past:
    """One partition and all that its topics still hold of it. `seed` is the model it was started from, if any."""

    log: Log
    group: str
    topic: str
    partition: int
    history: History
    seed: Seed | None = None
    label_topic: str | None = None
    """The labels topic of the log, if it has one."""

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.topic}/{self.partition}"

    def check_topic(self) -> None:
        """Raise `StateCorrupt` when the events topic is not the one that its newest checkpoint was learned from."""
        if self.history.newest is not None:
            check_topic(self.history.newest.snapshot, self.log.topic_id())

    @property
    def label_topic_id(self) -> str:
        """Of the labels topic that there is now; empty where there is none, or the log has no ids."""
        return "" if self.label_topic is None else self.log.topic_id(Channel.LABELS)

    @property
    def first_label_topic_id(self) -> str:
        """Of the labels topic that the oldest kept checkpoint with one has learned from; empty without one."""
        ids = (kept.snapshot.meta["label_topic_id"] for kept in self.history.snapshots)
        return next((found for found in ids if found), "")

    @property
    def is_recreated(self) -> bool:
        """Whether the events topic was deleted and created again since then."""
        try:
            self.check_topic()
        except StateCorrupt:
            return True
        return False


def read_past(
    log: Log, group: str, topic: str, partition: int, seed: Seed | None = None, label_topic: str | None = None
) -> Past:
    """The past of a partition, its checkpoint partition read once. Raises `StateCorrupt` when that is unreadable."""
    return Past(log, group, topic, partition, kept_history(log, group, topic, partition), seed, label_topic)


class Walk:
    """A processor that goes through known events, its settings changing where they changed.

    `halted` is set when the processor refuses to go on; it then stays where it is.
    """

    def __init__(self, past: Past, processor: PartitionProcessor, changes: Sequence[Change]) -> None:
        self.processor = processor
        self._past = past
        self._merges: RecordedMerges | None = None
        if past.label_topic is not None:
            begin, next_label = processor.next_offset, processor.next_label
            learned_from = processor.label_topic_id or past.first_label_topic_id
            self._merges = RecordedMerges(
                past.log, past.label_topic, past.partition, begin, next_label, past.history.resets, learned_from
            )
        self._changes = _to_come(processor, changes)
        self.halted: StateCorrupt | None = None

    def take(self, records: Sequence[Record]) -> list[Output]:
        """Process records that follow one another; return what was, or would have been, published."""
        outputs: list[Output] = []
        merges = self._merges.up_to(records[-1].offset) if self._merges is not None and records else ()
        at = 0
        while at < len(records):
            self.arrive(records[at].offset)
            self._check_label_topic()
            cut = self._next_cut(records, at)
            step = self.processor.process(records[at:cut], merges)
            outputs += step.outputs
            at = cut
            if step.halted is not None:
                at = next(i for i, record in enumerate(records) if record.offset == step.next_offset)
                if not self._changes or self._changes[0].offset != step.next_offset:
                    self.halted = step.halted
                    break
        return outputs

    def arrive(self, offset: int) -> None:
        """Take the settings that count for the event at `offset`."""
        while self._changes and self._changes[0].offset <= offset:
            change = self._changes.pop(0)
            try:
                self._take_settings(change)
            except SettingsError as error:
                raise _damaged(change, self.processor.name, str(error)) from error

    def _take_settings(self, change: Change) -> None:
        config, name = settings_of(change.new, change, self.processor.name), self.processor.name
        if change.promoted:
            before = settings_of(change.old, change, name)
            # What changed there before has no record any more when something changed there again.
            if before != self.processor.config:
                self.processor.reconfigure(before)
            self.processor.promote(config)
        elif config != self.processor.config:
            self.processor.reconfigure(config)

    def _check_label_topic(self) -> None:
        """Labels are read from the topic that the settings name now: it must be the one of then."""
        topic = self.processor.config.label_topic
        if topic is not None and topic.name != self._past.label_topic:
            raise UsageError(
                f"{self.processor.name}: at offset {self.processor.next_offset} labels came from topic {topic.name!r}: "
                f"give it as labels.topic to recompute what was decided then"
            )

    def _next_cut(self, records: Sequence[Record], at: int) -> int:
        if not self._changes:
            return len(records)
        offset = self._changes[0].offset
        return next((i for i in range(at, len(records)) if records[i].offset >= offset), len(records))


def _to_come(processor: PartitionProcessor, changes: Sequence[Change]) -> list[Change]:
    """The changes that the processor, as its snapshot has it, has not been through."""
    later = [change for change in changes if change.offset >= processor.next_offset]
    here = [change for change in later if change.offset == processor.next_offset]
    reached = [settings_of(change.new, change, processor.name) == processor.config for change in here]
    return later[max((at for at, known in enumerate(reached, 1) if known), default=0) :]


def start_before(past: Past, offset: int) -> Walk:
    """A walk that can reach `offset`: from the newest usable snapshot, else from the partition's beginning.

    Raises `UsageError` saying which offsets can be reached.
    """
    begin = past.log.ends(Channel.EVENTS, past.partition).begin
    kept = usable_snapshots(past)
    reaching = [item for item in kept if item.next_offset <= offset]
    if reaching:
        return Walk(past, processor_of(reaching[-1].snapshot, past.log.topic_id()), past.history.changes)
    birth = past.history.birth
    if birth is not None and begin <= birth.offset <= offset:
        return Walk(past, cold(past, settings_of(birth.new, birth, past.name), birth.offset), past.history.changes)
    reached = f"offsets from {kept[0].next_offset} on can be" if kept else "nothing can be"
    raise UsageError(
        f"{past.name}: no kept checkpoint at or before offset {offset}, and its beginning "
        f"{'is not on record' if birth is None else f'(offset {birth.offset}) is out of reach'}: {reached} recomputed"
    )


def settings_of(settings: Mapping[str, Any], change: Change, name: str) -> PartitionConfig:
    """The old or new settings of a change record of this partition. Raises `StateCorrupt` for unusable ones."""
    try:
        config = PartitionConfig.from_dict(settings)
        EventDecoder(config.events)
    except (KeyError, TypeError, ValueError, AssertionError, SettingsError) as error:
        raise _damaged(change, name, repr(error)) from error
    return config


def _damaged(change: Change, name: str, what: str) -> StateCorrupt:
    return StateCorrupt(
        f"{name}: the change record at offset {change.offset} holds settings that cannot be used ({what}): it is "
        f"damaged; what was decided before it and after it can only be audited apart, by offset ranges"
    )


def kept_at(past: Past, offset: int | None) -> Kept:
    """The kept snapshot at an input offset, the newest for None. Raises `UsageError` listing those there are."""
    found = [kept for kept in past.history.snapshots if offset is None or kept.next_offset == offset]
    if found:
        return found[-1]
    there = ", ".join(str(kept.next_offset) for kept in past.history.snapshots)
    asked = "" if offset is None else f" at offset {offset}"
    raise UsageError(
        f"{past.name}: group {past.group!r} keeps no checkpoint{asked}; "
        + (f"kept are those at {there}" if there else "none is kept at all: check the group, or start a worker first")
    )


def usable_snapshots(past: Past) -> list[Kept]:
    """Those that this program can go on from, with the events after them still there; oldest first."""
    begin = past.log.ends(Channel.EVENTS, past.partition).begin
    snapshots = past.history.snapshots
    return [kept for kept in snapshots if kept.snapshot.algorithm == ALGORITHM and kept.next_offset >= begin]


def cold(past: Past, config: PartitionConfig, offset: int) -> PartitionProcessor:
    """A first start at `offset`, from the seed where there is one."""
    model = None if past.seed is None else past.seed()
    return PartitionProcessor.cold(config, past.group, past.topic, past.partition, offset, model)


def steps(past: Past, walk: Walk, end: int) -> Iterator[list[Output]]:
    """Walk to `end`, a page of events at a time; each step returns its outputs. Settings are those at `end` then."""
    records = past.log.read(Channel.EVENTS, past.partition, walk.processor.next_offset, end)
    while walk.halted is None and (page := list(islice(records, _PAGE))):
        yield walk.take(page)
    if walk.halted is None:
        walk.processor.skip_to(max(walk.processor.next_offset, end))
        walk.arrive(end)


def walk_to(past: Past, walk: Walk, end: int) -> None:
    """Walk to `end` in silence. Raises `StateCorrupt` when the processor refuses to go that far."""
    for _ in steps(past, walk, end):
        pass
    if walk.halted is not None:
        raise walk.halted
