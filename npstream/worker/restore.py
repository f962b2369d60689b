"""How newly owned partitions begin; what is stored of them is asked for in one round.

committed position O ──► snapshot at C <= O ──► replay C..O
no position, no decisions ──► first start: cold or from a seed model
no position, decisions    ──► refuse: the group's offsets were lost

Where labels have a topic, the position says how it was merged between C and O,
and those labels are read before the replay begins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from npstream import failpoints
from npstream.codec.snapshot import Snapshot, check_topic
from npstream.errors import Fatal, Retryable, StateCorrupt, or_corrupt
from npstream.model import ALGORITHM, Model
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.port import DEFAULT_START, Ends, Log, Start, StateReader
from npstream.records import Channel, Merge, Position
from npstream.state import check_label_topic, committed_snapshots, kept_history, merges_of, processor_of
from npstream.worker.partition_task import Cadence


@dataclass(frozen=True, slots=True)
class Origin:
    """What a partition is and how it begins when nothing is known of it."""

    group: str
    topic: str
    config: PartitionConfig
    cadence: Cadence
    start: Start = DEFAULT_START
    seed: Callable[[], Model] | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """The processor of a newly owned partition, and what it must replay.

    `goal` is the committed position, None on a first start. `merges` were made on
    the way to it. `label_topic_id` is that of the labels topic now.
    """

    processor: PartitionProcessor
    goal: Position | None
    merges: Sequence[Merge]
    label_topic_id: str


def restore(
    partitions: Sequence[int], state: StateReader, log: Log, origin: Origin
) -> Iterator[tuple[int, Restored | StateCorrupt]]:
    """How newly owned partitions begin, in any order: what is stored of them is asked for in one round.

    One whose state cannot be trusted comes with the reason, and does not stop the others. Raises `Retryable`.
    """
    failpoints.hit("restore")
    label_topic_id = "" if origin.config.label_topic is None else log.topic_id(Channel.LABELS)
    committed = state.all_committed(partitions)
    new = [partition for partition, position in committed.items() if position is None]
    for partition, processor in _first_starts(new, state, log, origin):
        if isinstance(processor, StateCorrupt):
            yield partition, processor
        else:
            processor.label_topic_id = label_topic_id
            yield partition, Restored(processor, None, (), label_topic_id)
    yield from ((p, position) for p, position in committed.items() if isinstance(position, StateCorrupt))
    known = {p: position for p, position in committed.items() if isinstance(position, Position)}
    for partition, snapshot in committed_snapshots(state, log, origin.group, origin.topic, known):
        position = known[partition]
        yield partition, or_corrupt(_restored, partition, snapshot, position, state, log, origin, label_topic_id)


def _restored(
    partition: int,
    found: Snapshot | StateCorrupt,
    position: Position,
    state: StateReader,
    log: Log,
    origin: Origin,
    label_topic_id: str,
) -> Restored:
    if isinstance(found, StateCorrupt) and state.committed(partition) != position:
        raise Retryable(
            f"{origin.topic}/{partition}: another worker has gone on with it while this one looked, and its older "
            "checkpoint is gone: the session is restarted"
        )
    snapshot = _older_snapshot(partition, log, origin, position, found) if isinstance(found, StateCorrupt) else found
    _check_algorithm(snapshot, position)
    processor = processor_of(snapshot, log.topic_id())
    if snapshot.next_offset != position.pointer.next_offset:  # it does not know of those archived since
        processor.archive.adopt(kept_history(log, origin.group, origin.topic, partition).archives)
    if _label_topic(processor.config) == _label_topic(origin.config):
        check_label_topic(processor, label_topic_id)
    return Restored(processor, position, _merges(partition, log, origin, processor, position), label_topic_id)


def _label_topic(config: PartitionConfig) -> str | None:
    return None if config.label_topic is None else config.label_topic.name


def _merges(partition: int, log: Log, origin: Origin, processor: PartitionProcessor, position: Position) -> list[Merge]:
    """The merges between the snapshot and the committed position, with their records."""
    if position.labels is None or position.next_offset == processor.next_offset:
        return []
    topic = _label_topic(processor.config)
    if processor.next_offset != position.pointer.next_offset:
        raise StateCorrupt(
            f"{origin.topic}/{partition}: the checkpoint that committed offset {position.next_offset} points to is "
            f"gone or damaged. An older one, at {processor.next_offset}, is whole, but only the decisions say how the "
            f"labels of {topic!r} were merged since: stop all workers and run `npstream recover`, which follows them"
        )
    if position.labels.merges and topic != _label_topic(origin.config):
        raise StateCorrupt(
            f"{origin.topic}/{partition}: {position.next_offset - processor.next_offset} events must be replayed with "
            f"labels of topic {topic!r}, and labels.topic has changed. Start once more with labels.topic {topic!r} and "
            "stop it cleanly, then change it"
        )
    return merges_of(log, partition, position.labels, f"{topic}/{partition}")


def _first_starts(
    partitions: Sequence[int], state: StateReader, log: Log, origin: Origin
) -> Iterator[tuple[int, PartitionProcessor | StateCorrupt]]:
    """Processors of partitions without a position; nothing may have been published for them."""
    places = [(channel, partition) for channel in (Channel.DECISIONS, Channel.EVENTS) for partition in partitions]
    ends = log.all_ends(places) if places else {}
    for partition in partitions:
        decisions, events = ends[Channel.DECISIONS, partition], ends[Channel.EVENTS, partition]
        yield partition, or_corrupt(_first_start, partition, state, log, origin, decisions, events)


def _first_start(
    partition: int, state: StateReader, log: Log, origin: Origin, decisions: Ends, events: Ends
) -> PartitionProcessor:
    if _has_decisions(partition, log, decisions):
        # Asked for a second time: the decisions may be younger than the first.
        if state.committed(partition) is not None:
            raise Retryable(
                f"{origin.topic}/{partition}: another worker has started it while this one looked: the session is "
                "restarted"
            )
        newest = kept_history(log, origin.group, origin.topic, partition).newest
        if newest is not None:
            check_topic(newest.snapshot, log.topic_id())  # the brokers forget the offsets of a topic that is deleted
        raise StateCorrupt(
            f"{origin.topic}/{partition}: group {origin.group!r} has no committed offset, yet its decisions topic is "
            "not empty: the group's offsets were lost, or the topic belongs to another group. Run `npstream recover`, "
            "or give this group a decisions topic of its own"
        )
    known = {"earliest": events.begin, "latest": events.stable}
    begin = known[origin.start] if isinstance(origin.start, str) else log.offset_at(partition, origin.start)
    model = None if origin.seed is None else origin.seed()
    processor = PartitionProcessor.cold(origin.config, origin.group, origin.topic, partition, begin, model)
    processor.topic_id = log.topic_id()
    return processor


def _has_decisions(partition: int, log: Log, ends: Ends) -> bool:
    """Whether anything was ever published; the first transaction of a partition holds no decisions.

    A worker with the least rights may not read decisions. To it a topic that is
    not empty has some: the marks of an aborted transaction alone cannot be there
    before a first position is.
    """
    if ends.begin == ends.stable:
        return False
    try:
        return next(log.read(Channel.DECISIONS, partition, ends.begin, ends.stable), None) is not None
    except Fatal:
        return True


def _older_snapshot(partition: int, log: Log, origin: Origin, position: Position, unreadable: StateCorrupt) -> Snapshot:
    """In the place of the snapshot the position points to, which is unreadable: the newest older one that is whole."""
    kept = kept_history(log, origin.group, origin.topic, partition).without(position.pointer.offset)
    older = kept.at_or_before(position.next_offset)
    if older is None:
        raise StateCorrupt(
            f"{origin.topic}/{partition}: the checkpoint that committed offset {position.next_offset} points to "
            f"(at log offset {position.pointer.offset}) is gone or damaged, and no older one is whole: stop all "
            "workers and run `npstream recover`, which rebuilds the state from the events, or says what works "
            "where they are gone"
        ) from unreadable
    return older.snapshot


def _check_algorithm(snapshot: Snapshot, position: Position) -> None:
    if snapshot.algorithm != ALGORITHM and snapshot.next_offset != position.next_offset:
        raise StateCorrupt(
            f"{snapshot.topic}/{snapshot.partition}: the checkpoint at {snapshot.next_offset} was written by algorithm "
            f"version {snapshot.algorithm} and {position.next_offset - snapshot.next_offset} events must be replayed, "
            f"which version {ALGORITHM} cannot do. Start the old version once more and stop it cleanly, then upgrade"
        )
