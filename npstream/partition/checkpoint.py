"""How a processor's state becomes records of the checkpoint topic. Pure: nothing is written here."""

from collections.abc import Sequence

from npstream.codec.changes import Change, encode_change
from npstream.codec.chunks import SegmentKey, split
from npstream.codec.snapshot import encode_snapshot, snapshot_digest
from npstream.partition.config import PartitionConfig
from npstream.partition.processor import PartitionProcessor
from npstream.records import LabelPosition, Output, Pointer, Position, Share

Pair = tuple[bytes, bytes]


def checkpoint_share(
    processor: PartitionProcessor, outputs: Sequence[Output], ring_place: int, after: int, keep: int
) -> Share:
    """A share with a snapshot of the state as it is; the offset of its pointer is still a hole.

    `after` is a log offset before all that it writes, `keep` how many snapshots the ring has.
    """
    snapshot, segments = processor.checkpoint(ring_place, after, keep)
    data = encode_snapshot(snapshot)
    chunks = split(data, *processor.address, ring_place)
    pointer = Pointer(-1, len(chunks), ring_place, processor.next_offset, snapshot_digest(data))
    labels = None if processor.next_label is None else LabelPosition(processor.next_label)
    return Share(
        processor.partition,
        tuple(outputs),
        Position(processor.next_offset, pointer, processor.proof(), labels),
        chunks=tuple(chunks),
        segments=tuple((SegmentKey(*processor.address, number).encode(), value) for number, value in segments),
    )


def change_record(processor: PartitionProcessor, old: PartitionConfig | None) -> Pair:
    """The record that the processor's settings count from its next event on; `old` None: it begins here.

    A partition that has not met a single event yet begins with the new settings:
    what it was to begin with decides nothing.
    """
    began = old is None or (processor.tally.events == 0 and processor.tally.dead_letters == 0)
    before = {} if old is None or began else old.to_dict()
    return encode_change(Change(processor.next_offset, before, processor.config.to_dict()), *processor.address)
