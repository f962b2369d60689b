"""How a newly owned partition begins.

committed position O ──► snapshot at C <= O ──► replay C..O
no position, no decisions ──► first start: cold or from a seed model
no position, decisions    ──► refuse: the group's offsets were lost
"""

from collections.abc import Callable
from dataclasses import dataclass

from npstream import failpoints
from npstream.codec.snapshot import Snapshot, check_topic
from npstream.errors import Fatal, StateCorrupt
from npstream.model import ALGORITHM, Model
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.port import DEFAULT_START, Log, Start, StateReader
from npstream.records import Channel, Position
from npstream.state import committed_snapshot, kept_history, processor_of
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


def restore(partition: int, state: StateReader, log: Log, origin: Origin) -> tuple[PartitionProcessor, Position | None]:
    """The processor of a newly owned partition, and the committed position it must replay to, None on a first start.

    Raises `StateCorrupt`, `Retryable`.
    """
    failpoints.hit("restore")
    position = state.committed(partition)
    if position is None:
        return _first_start(partition, log, origin), None
    snapshot = _find_snapshot(partition, state, log, origin, position)
    _check_algorithm(snapshot, position)
    return processor_of(snapshot, log.topic_id()), position


def _first_start(partition: int, log: Log, origin: Origin) -> PartitionProcessor:
    if _has_decisions(partition, log):
        newest = kept_history(log, origin.group, origin.topic, partition).newest
        if newest is not None:
            check_topic(newest.snapshot, log.topic_id())  # the brokers forget the offsets of a topic that is deleted
        raise StateCorrupt(
            f"{origin.topic}/{partition}: group {origin.group!r} has no committed offset, yet its decisions topic is "
            "not empty: the group's offsets were lost, or the topic belongs to another group. Run `npstream recover`, "
            "or give this group a decisions topic of its own"
        )
    begin = log.offset_at(partition, origin.start)
    model = None if origin.seed is None else origin.seed()
    processor = PartitionProcessor.cold(origin.config, origin.group, origin.topic, partition, begin, model)
    processor.topic_id = log.topic_id()
    return processor


def _has_decisions(partition: int, log: Log) -> bool:
    """Whether anything was ever published; the first transaction of a partition holds no decisions.

    A worker with the least rights may not read decisions. To it a topic that is
    not empty has some: the marks of an aborted transaction alone cannot be there
    before a first position is.
    """
    ends = log.ends(Channel.DECISIONS, partition)
    if ends.begin == ends.stable:
        return False
    try:
        return next(log.read(Channel.DECISIONS, partition, ends.begin, ends.stable), None) is not None
    except Fatal:
        return True


def _find_snapshot(partition: int, state: StateReader, log: Log, origin: Origin, position: Position) -> Snapshot:
    """The snapshot the position points to, or, when it is unreadable, the newest older one that is whole."""
    try:
        return committed_snapshot(state, log, origin.group, origin.topic, partition, position)
    except StateCorrupt as unreadable:
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
