"""How a processor's state becomes records of the checkpoint topic. Pure: nothing is written here."""

from collections.abc import Sequence
from dataclasses import replace

from npstream.codec.changes import Change, encode_change
from npstream.codec.chunks import ArchiveKey, SegmentKey, archived, split
from npstream.codec.snapshot import encode_snapshot, snapshot_digest
from npstream.partition.archive import Archived, ArchiveRules
from npstream.partition.config import PartitionConfig
from npstream.partition.processor import PartitionProcessor
from npstream.records import LabelPosition, Output, Pointer, Position, Share

Pair = tuple[bytes, bytes]


def checkpoint_share(
    processor: PartitionProcessor,
    outputs: Sequence[Output],
    ring_place: int,
    after: int,
    keep: int,
    archives: ArchiveRules | None = None,
) -> Share:
    """A share with a snapshot of the state as it is; the offset of its pointer is still a hole.

    `after` is a log offset before all that it writes, `keep` how many snapshots the ring has. Where the rules say
    that it is time, the same snapshot is archived; without rules the archive stays as it is.
    """
    removed, is_due = _turn_archive(processor, archives)
    snapshot, segments = processor.checkpoint(ring_place, after, keep)
    data = encode_snapshot(snapshot)
    chunks = split(data, *processor.address, ring_place)
    records: list[tuple[bytes, bytes | None]] = [
        (SegmentKey(*processor.address, number).encode(), value) for number, value in segments
    ]
    records += [(key, None) for each in removed for key in _archive_keys(processor, each)]
    if is_due:
        # The snapshot says how many chunks it has, which changes none of its lengths.
        processor.archive.measured(len(chunks))
        data = encode_snapshot(replace(snapshot, blobs={**snapshot.blobs, "archive": processor.archive.dump()}))
        chunks = split(data, *processor.address, ring_place)
        records += archived(chunks, *processor.address, processor.next_offset)
    pointer = Pointer(-1, len(chunks), ring_place, processor.next_offset, snapshot_digest(data))
    labels = None if processor.next_label is None else LabelPosition(processor.next_label)
    return Share(
        processor.partition,
        tuple(outputs),
        Position(processor.next_offset, pointer, processor.proof(), labels),
        chunks=tuple(chunks),
        segments=tuple(records),
    )


def _turn_archive(processor: PartitionProcessor, rules: ArchiveRules | None) -> tuple[list[Archived], bool]:
    """The archived snapshots that are removed now, and whether the one that is made now is archived."""
    if rules is None:
        return [], False
    archive, events = processor.archive, processor.tally.events
    is_due = archive.is_due(rules, events)
    if is_due:
        archive.add(Archived(processor.next_offset, 0, processor.pending.segments.snapshots + 1), events)
    return archive.let_go(rules.keep), is_due


def _archive_keys(processor: PartitionProcessor, each: Archived) -> list[bytes]:
    return [ArchiveKey(*processor.address, each.offset, chunk).encode() for chunk in range(each.chunks)]


def promotion_record(processor: PartitionProcessor, old: PartitionConfig) -> Pair:
    """The record that the challenger of `old` is the champion from the processor's next event on."""
    change = Change(processor.next_offset, old.to_dict(), processor.config.to_dict(), promoted=True)
    return encode_change(change, *processor.address)


def change_record(processor: PartitionProcessor, old: PartitionConfig | None) -> Pair:
    """The record that the processor's settings count from its next event on; `old` None: it begins here.

    A partition that has not met a single event yet begins with the new settings:
    what it was to begin with decides nothing.
    """
    began = old is None or (processor.tally.events == 0 and processor.tally.dead_letters == 0)
    before = {} if old is None or began else old.to_dict()
    return encode_change(Change(processor.next_offset, before, processor.config.to_dict()), *processor.address)
