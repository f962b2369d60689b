"""A worker that makes one commit and is killed at the failpoint named in its environment.

`python -m tests.contracts.dying_worker PLACE...` with what `Place.arguments` says.
"""

import sys

from npstream.port import Log
from npstream.records import Channel, Position
from tests.contracts.builders import chunks, decision, joined, read_checkpoint, share, values
from tests.stage.places import Place, place_from

SHARES = [
    share(
        0,
        5,
        [decision(b"a"), decision(b"dead", Channel.DEAD_LETTERS)],
        chunks(3),
        [(b"change", b"tau")],
        segments=[(b"segment 7", b"waiting"), (b"segment 2", None)],
    ),
    share(2, 9, [decision(b"c"), decision(b"d")], chunks(1)),
]


def visible(place: Place, log: Log) -> tuple[list[list[bytes | None]], list[Position | None]]:
    """All that the commit could have changed, as the next worker sees it."""
    broker = place.broker()
    joined(broker)
    positions = [broker.state.committed(partition) for partition in (0, 2)]
    for partition, position in zip((0, 2), positions, strict=True):
        if position is not None:
            read_checkpoint(broker.state, partition, position.pointer)  # waits until the commit is stable there
    broker.abandon()
    outputs = (Channel.DECISIONS, Channel.DEAD_LETTERS, Channel.CHECKPOINTS)
    return [values(log, channel, partition) for channel in outputs for partition in (0, 2)], positions


if __name__ == "__main__":
    worker = place_from(sys.argv[1:]).broker()
    joined(worker)
    worker.commit(SHARES)
    print("committed and still alive")
