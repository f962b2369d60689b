"""The one way in for state: what a group has committed and kept, checked, as values and as processors.

A worker's restore, audit, explain, inspect, doctor, rollback and recover all come through here, so that none of them
goes on from the snapshot of another group, partition or topic.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from npstream.codec.chunks import join
from npstream.codec.history import History, read_history
from npstream.codec.segments import first_record, segment_keys, with_segments, without_segments
from npstream.codec.snapshot import Snapshot, check_topic, decode_snapshot, snapshot_digest
from npstream.errors import StateCorrupt, or_corrupt
from npstream.partition import PartitionProcessor
from npstream.port import Log, StateReader
from npstream.records import Channel, KeyValue, LabelPosition, Merge, Position

LABELS_RECREATED = "the labels topic was deleted and created again"


def committed_snapshot(
    state: StateReader, log: Log, group: str, topic: str, partition: int, position: Position
) -> Snapshot:
    """The snapshot that a committed position points to. Raises `StateCorrupt` when it is gone, damaged or another's."""
    ((_, found),) = committed_snapshots(state, log, group, topic, {partition: position})
    if isinstance(found, StateCorrupt):
        raise found
    return found


def committed_snapshots(
    state: StateReader, log: Log, group: str, topic: str, positions: Mapping[int, Position]
) -> Iterator[tuple[int, Snapshot | StateCorrupt]]:
    """Those of many partitions in any order, read in one round, and in a second one those that name segments.

    Each is handed out as soon as it is there, so that the bytes of all are never held together.
    """
    unfinished: dict[int, Snapshot] = {}
    for partition, found in snapshots_alone(state, group, topic, positions):
        if isinstance(found, StateCorrupt) or first_record(found) is None:
            yield partition, found
        else:
            unfinished[partition] = found
    yield from _with_their_segments(log, unfinished, positions)


def snapshots_alone(
    state: StateReader, group: str, topic: str, positions: Mapping[int, Position]
) -> Iterator[tuple[int, Snapshot | StateCorrupt]]:
    """As `committed_snapshots`, without the segments that they name."""
    for partition, chunks in state.read_checkpoints({p: position.pointer for p, position in positions.items()}):
        address = group, topic, partition
        yield partition, or_corrupt(_checked, chunks, address, positions[partition])


def _checked(chunks: list[KeyValue] | StateCorrupt, address: tuple[str, str, int], position: Position) -> Snapshot:
    if isinstance(chunks, StateCorrupt):
        raise chunks
    snapshot, digest = snapshot_of(chunks)
    found = (snapshot.group, snapshot.topic, snapshot.partition, snapshot.next_offset)
    expected = (*address, position.pointer.next_offset)
    if found != expected:
        raise StateCorrupt(f"checkpoint {chunks[0].key.decode()}: holds {found}, the committed offset names {expected}")
    if digest != position.pointer.digest:
        raise StateCorrupt(
            f"checkpoint {chunks[0].key.decode()}: its content is not what was committed with offset "
            f"{position.next_offset}: somebody has written to the checkpoint topic"
        )
    return snapshot


def _with_their_segments(
    log: Log, snapshots: Mapping[int, Snapshot], positions: Mapping[int, Position]
) -> Iterator[tuple[int, Snapshot | StateCorrupt]]:
    # Everything before a snapshot that could be read is stable.
    ranges = {
        (Channel.CHECKPOINTS, partition): (first_record(snapshot) or 0, positions[partition].pointer.offset)
        for partition, snapshot in snapshots.items()
    }
    wanted = {partition: segment_keys(snapshot) for partition, snapshot in snapshots.items()}
    records: dict[int, list[KeyValue]] = {partition: [] for partition in snapshots}
    for (_, partition), record in log.read_all(ranges):
        if isinstance(record, StateCorrupt):
            yield partition, record
            del records[partition]
        elif record.key in wanted[partition]:
            records[partition].append(KeyValue(record.offset, record.key or b"", record.value))
    for partition in list(records):
        yield partition, or_corrupt(with_segments, snapshots[partition], records.pop(partition))


def snapshot_of(chunks: Sequence[KeyValue]) -> tuple[Snapshot, str]:
    """The snapshot in these records, without its segments, and the digest of its bytes. Raises `StateCorrupt`."""
    data = join(chunks)
    return decode_snapshot(data), snapshot_digest(data)


def checkpoint_records(log: Log, partition: int) -> Iterator[KeyValue]:
    """Every record that the checkpoint topic still holds for a partition, of any group."""
    ends = log.ends(Channel.CHECKPOINTS, partition)
    return _records(log, partition, ends.begin, ends.stable)


def _records(log: Log, partition: int, begin: int, end: int) -> Iterator[KeyValue]:
    for record in log.read(Channel.CHECKPOINTS, partition, begin, end):
        yield KeyValue(record.offset, record.key or b"", record.value)


def kept_history(log: Log, group: str, topic: str, partition: int) -> History:
    """Every whole snapshot, change and reset of a partition that is still kept. Raises `StateCorrupt`."""
    return read_history(checkpoint_records(log, partition), group, topic, partition)


def processor_of(snapshot: Snapshot, topic_id: str = "") -> PartitionProcessor:
    """A processor that goes on where the snapshot was taken. Raises `StateCorrupt`.

    `topic_id` is that of the events topic now: offsets of a topic that was deleted and created again mean nothing.
    Who only looks at the state, and processes nothing, leaves it out.
    """
    check_topic(snapshot, topic_id)
    return PartitionProcessor.from_snapshot(replace(snapshot, topic_id=topic_id or snapshot.topic_id))


def processor_to_look_at(snapshot: Snapshot) -> tuple[PartitionProcessor, int]:
    """A processor that must process nothing: it lacks what waits in segments. How many observations do is the second.

    Raises `StateCorrupt`.
    """
    kept, waiting = without_segments(snapshot)
    return processor_of(kept), waiting


def check_label_topic(processor: PartitionProcessor, label_topic_id: str) -> None:
    """Raise `StateCorrupt` when the labels were learned from another topic of the same name; else remember which."""
    if is_recreated(processor.label_topic_id, label_topic_id):
        assert processor.config.label_topic is not None
        raise StateCorrupt(
            f"{processor.config.label_topic.name}/{processor.partition}: {LABELS_RECREATED} since label offset "
            f"{processor.next_label} was learned: offsets of the old one mean nothing in the new one. "
            f"{label_remedy(processor.partition)}"
        )
    processor.label_topic_id = label_topic_id or processor.label_topic_id


def is_recreated(known_id: str, id_now: str) -> bool:
    """Whether a topic is another one than it was, as far as the brokers' ids say."""
    return bool(known_id and id_now and known_id != id_now)


def label_remedy(partition: int) -> str:
    """How to go on when labels are gone that were to be read."""
    return (
        f"Stop the workers, then go on with the labels that are there by `npstream reset --partition {partition} "
        "--to OFFSET --keep-model --execute`, with the committed offset, which `npstream lag` shows"
    )


def merges_of(log: Log, partition: int, labels: LabelPosition, name: str) -> list[Merge]:
    """The merges since a snapshot, with their records. Raises `StateCorrupt` when one of those is gone."""
    if not labels.merges:
        return []
    begin = log.ends(Channel.LABELS, partition).begin
    records = log.read(Channel.LABELS, partition, labels.saved, labels.next_label)
    merges = []
    for before, next_label in labels.merges:
        taken = []
        for record in records:
            taken.append(record)
            if record.offset >= next_label - 1:
                break
        if not taken or taken[-1].offset != next_label - 1 or 0 < labels.saved < begin:
            raise StateCorrupt(
                f"{name}: label records from offset {labels.saved} to {next_label - 1} were learned and must be "
                f"replayed, and some of them are gone: their retention was too short, or the topic was deleted. "
                f"Roll back to a later checkpoint, or start the partition over. {label_remedy(partition)}"
            )
        merges.append(Merge(before, taken))
    return merges
