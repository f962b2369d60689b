"""Bring one partition's state in: the only door is `PartitionProcessor.from_snapshot`.

committed position O ──► snapshot at C <= O ──► task that replays C..O
no position, no decisions ──► first start: cold or from a seed model
no position, decisions    ──► refuse: the group's offsets were lost
"""

from collections.abc import Callable
from dataclasses import dataclass

from npstream import failpoints
from npstream.codec.chunks import join
from npstream.codec.history import read_history
from npstream.codec.snapshot import Snapshot, check_topic, decode_snapshot
from npstream.errors import Fatal, StateCorrupt
from npstream.model import ALGORITHM, Model
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.port import DEFAULT_START, Broker, Log, Start
from npstream.records import Channel, KeyValue, Position
from npstream.worker.partition_task import Cadence, PartitionTask


@dataclass(frozen=True, slots=True)
class Origin:
    """What a partition is and how it begins when nothing is known of it."""

    group: str
    topic: str
    config: PartitionConfig
    cadence: Cadence
    start: Start = DEFAULT_START
    seed: Callable[[], Model] | None = None


def restore(partition: int, broker: Broker, log: Log, origin: Origin, now: float) -> PartitionTask:
    """The task of a newly owned partition. Raises `StateCorrupt`, `Retryable`."""
    failpoints.hit("restore")
    position = broker.committed(partition)
    if position is None:
        processor = _first_start(partition, log, origin)
    else:
        snapshot = find_snapshot(partition, broker, log, origin, position)
        _check_algorithm(snapshot, position)
        check_topic(snapshot, log.topic_id())
        processor = PartitionProcessor.from_snapshot(snapshot)
    processor.topic_id = log.topic_id() or processor.topic_id
    return PartitionTask(processor, position, origin.config, origin.cadence, now)


def _first_start(partition: int, log: Log, origin: Origin) -> PartitionProcessor:
    if _has_decisions(partition, log):
        for snapshot in kept_snapshots(partition, log, origin.group, origin.topic)[-1:]:
            check_topic(snapshot, log.topic_id())  # the brokers forget the offsets of a topic that is deleted
        raise StateCorrupt(
            f"{origin.topic}/{partition}: group {origin.group!r} has no committed offset, yet its decisions topic is "
            "not empty: the group's offsets were lost, or the topic belongs to another group. Run `npstream recover`, "
            "or give this group a decisions topic of its own"
        )
    begin = log.offset_at(partition, origin.start)
    model = None if origin.seed is None else origin.seed()
    return PartitionProcessor.cold(origin.config, origin.group, origin.topic, partition, begin, model)


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


def find_snapshot(partition: int, broker: Broker, log: Log, origin: Origin, position: Position) -> Snapshot:
    """The snapshot the position points to, or, when it is unreadable, the newest older one that is whole."""
    try:
        return _decode(broker.read_checkpoint(partition, position.pointer), origin, partition, position)
    except StateCorrupt as unreadable:
        older = kept_snapshots(partition, log, origin.group, origin.topic)
        usable = [snapshot for snapshot in older if snapshot.next_offset <= position.next_offset]
        if not usable:
            raise StateCorrupt(
                f"{origin.topic}/{partition}: the checkpoint that committed offset {position.next_offset} points to "
                f"(slot {position.pointer.slot}, at log offset {position.pointer.offset}) is gone or damaged, and no "
                "older one is whole: stop all workers and run `npstream recover`, which rebuilds the state from the "
                "events, or says what works where they are gone"
            ) from unreadable
        return max(usable, key=lambda snapshot: snapshot.next_offset)


def kept_snapshots(partition: int, log: Log, group: str, topic: str) -> list[Snapshot]:
    """Every whole snapshot of a partition that the checkpoint topic still holds and that counts, oldest first."""
    ends = log.ends(Channel.CHECKPOINTS, partition)
    records = (
        KeyValue(record.offset, record.key or b"", record.value)
        for record in log.read(Channel.CHECKPOINTS, partition, ends.begin, ends.stable)
    )
    return [kept.snapshot for kept in read_history(records, group, topic, partition).snapshots]


def _decode(chunks: list[KeyValue], origin: Origin, partition: int, position: Position) -> Snapshot:
    snapshot = decode_snapshot(join(chunks))
    found = (snapshot.group, snapshot.topic, snapshot.partition, snapshot.next_offset)
    expected = (origin.group, origin.topic, partition, position.pointer.next_offset)
    if found != expected:
        raise StateCorrupt(f"checkpoint {chunks[0].key.decode()}: holds {found}, the committed offset names {expected}")
    return snapshot


def _check_algorithm(snapshot: Snapshot, position: Position) -> None:
    if snapshot.algorithm != ALGORITHM and snapshot.next_offset != position.next_offset:
        raise StateCorrupt(
            f"{snapshot.topic}/{snapshot.partition}: the checkpoint at {snapshot.next_offset} was written by algorithm "
            f"version {snapshot.algorithm} and {position.next_offset - snapshot.next_offset} events must be replayed, "
            f"which version {ALGORITHM} cannot do. Start the old version once more and stop it cleanly, then upgrade"
        )
