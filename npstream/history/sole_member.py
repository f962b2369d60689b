"""Committing a group's positions by hand: join it alone, commit in one transaction, leave.

The tool is an ordinary member while it writes, so a worker that starts at the
same moment is fenced or fences it by the group's own rules; nothing is
overwritten that somebody else has moved.
"""

from collections.abc import Callable, Mapping, Sequence

from npstream.errors import Retryable, StateCorrupt, UsageError
from npstream.port import Broker, StateReader
from npstream.records import Phase, Position, Share

_POLL_S = 0.1


def require_nobody(state: StateReader, group: str, advice: str) -> None:
    """Raises `UsageError` naming the workers that are still members of the group, and `advice`."""
    members = state.members()
    if members:
        raise UsageError(f"group {group!r} has active members: {'; '.join(members)}. Stop them first.{advice}")


def commit_alone(
    broker: Broker,
    partitions: int,
    committed: Mapping[int, Position | None],
    shares: Sequence[Share],
    clock: Callable[[], float],
    timeout_s: float,
) -> None:
    """Commit the shares as the group's only member; `committed` are the positions they were planned from.

    Raises `UsageError` when another worker has joined or a position has moved
    meanwhile; then nothing is committed. Ends the broker in any case.
    """
    try:
        _own_all(broker, partitions, clock() + timeout_s, clock)
        for partition, position in committed.items():
            if try_committed(broker.state, partition) != position:
                raise UsageError(
                    f"partition {partition} has moved since it was looked at: stop all workers and run it again"
                )
        broker.commit(shares)
        broker.close(timeout_s)
    finally:
        broker.abandon()


def try_committed(state: StateReader, partition: int) -> Position | None:
    """The committed position; one that cannot be read counts as none: a reposition repairs it."""
    try:
        return state.committed(partition)
    except StateCorrupt:
        return None


def _own_all(broker: Broker, partitions: int, deadline: float, clock: Callable[[], float]) -> None:
    owner = _SoleOwner()
    broker.subscribe(owner)
    while len(owner.owned) < partitions:
        broker.poll(1, _POLL_S)
        if clock() > deadline:
            owned = f"{len(owner.owned)} of {partitions} partitions"
            if not owner.owned:
                raise Retryable("the group did not let this tool join in time: check the brokers and run it again")
            raise UsageError(f"another worker is in the group ({owned} were given to this tool): stop it first")


class _SoleOwner:
    """Owns partitions without reading them."""

    def __init__(self) -> None:
        self.owned: set[int] = set()

    def on_assigned(self, partitions: Sequence[int]) -> Mapping[int, int | None]:
        self.owned |= set(partitions)
        return dict.fromkeys(partitions)

    def on_revoked(self, partitions: Sequence[int]) -> None:
        self.owned -= set(partitions)

    def on_lost(self, partitions: Sequence[int]) -> None:
        self.owned -= set(partitions)

    def on_waiting(self, partition: int, reason: str) -> None:
        raise UsageError(reason)

    def on_failed(self, partition: int, error: StateCorrupt) -> None:
        raise error

    def phase_of(self, partition: int) -> Phase:
        return Phase.PAUSED
