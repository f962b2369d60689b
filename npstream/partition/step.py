"""What comes out of a processor when records go in."""

from dataclasses import dataclass

from npstream.errors import StateCorrupt
from npstream.records import Output


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch produced. Nothing has left the process yet.

    `halted` says why the batch was cut short at `next_offset`: the partition
    must be paused there. `merges` are those that were made with the labels topic:
    the offset of an observation, and the label offset that was reached before it.
    """

    outputs: list[Output]
    next_offset: int
    halted: StateCorrupt | None = None
    merges: tuple[tuple[int, int], ...] = ()
