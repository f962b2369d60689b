"""How a processor's state becomes records of the checkpoint topic. Pure: nothing is written here."""

from collections.abc import Sequence

from npstream.codec.changes import Change, encode_change
from npstream.codec.chunks import split
from npstream.codec.snapshot import encode_snapshot, snapshot_digest
from npstream.partition.config import PartitionConfig
from npstream.partition.processor import PartitionProcessor
from npstream.records import Pointer, Position, Share

Pair = tuple[bytes, bytes]


def snapshot_chunks(processor: PartitionProcessor, ring_place: int) -> tuple[list[Pair], Pointer]:
    """The chunks of a snapshot of the state as it is, and the pointer to them, its offset still a hole."""
    data = encode_snapshot(processor.snapshot(ring_place))
    chunks = split(data, *processor.address, ring_place)
    return chunks, Pointer(-1, len(chunks), ring_place, processor.next_offset, snapshot_digest(data))


def change_record(processor: PartitionProcessor, old: PartitionConfig | None) -> Pair:
    """The record that the processor's settings count from its next event on; `old` None: it begins here.

    A partition that has not met a single event yet begins with the new settings:
    what it was to begin with decides nothing.
    """
    began = old is None or (processor.tally.events == 0 and processor.tally.dead_letters == 0)
    before = {} if old is None or began else old.to_dict()
    return encode_change(Change(processor.next_offset, before, processor.config.to_dict()), *processor.address)


def whole_share(processor: PartitionProcessor, ring_place: int, changes: Sequence[Pair]) -> Share:
    """What makes a state durable on its own: a snapshot, its position, further records; no outputs."""
    chunks, pointer = snapshot_chunks(processor, ring_place)
    position = Position(processor.next_offset, pointer, processor.proof())
    return Share(processor.partition, (), position, tuple(chunks), tuple(changes))
