"""The board: what is known of the worker now, as values that never change.

The worker's thread writes, any thread reads. Writing builds a new value and puts
it in place of the old one; a reader sees the one or the other, never half.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from npstream.monitor.stillness import Stillness
from npstream.records import Phase, Reading

_SHOWN_TOGETHER = 16
"""A part of the partitions, one in this many, that may change before the change is shown: each showing copies all."""
_JOIN_S = 10.0
"""A member that has been assigned nothing this long after its first poll is a stable member with no partition."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which worker this is. Holds nothing that must stay secret."""

    group: str
    topic: str
    instance: str
    version: str
    algorithm: int


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One owned partition. Times are the worker's monotonic clock."""

    partition: int
    phase: Phase
    since: float
    reason: str = ""
    reading: Reading | None = None
    pinned: bool = False
    last_timestamp_ms: int | None = None
    committed_at: float | None = None
    restore_seconds: float | None = None
    checkpoint_at: float | None = None
    checkpoint_bytes: int = 0

    def checkpoint_age(self, now: float) -> float:
        """Seconds since the newest snapshot while there are events it does not cover; 0 when it covers all."""
        reading = self.reading
        if reading is None or self.checkpoint_at is None or reading.next_offset == reading.saved_offset:
            return 0.0
        return now - self.checkpoint_at


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The worker and all it owns."""

    partitions: Mapping[int, PartitionStatus] = field(default_factory=dict)
    first_poll_at: float | None = None
    knows_ownership: bool = False
    unsettled_since: float | None = None
    was_ready: bool = False
    transactions: int = 0
    aborts: int = 0
    session_restarts: int = 0
    last_restart: str = ""
    restores: int = 0
    replayed: int = 0
    rebalances: int = 0

    def paused(self) -> int:
        """How many partitions are paused."""
        return sum(status.phase is Phase.PAUSED for status in self.partitions.values())

    def settled(self, now: float) -> bool:
        """A first poll has returned, and every partition is live or waits for an operator.

        A paused partition does not hold up a rollout: an alert reports it.
        """
        if self.first_poll_at is None:
            return False
        if not self.partitions and not self.knows_ownership:
            return now - self.first_poll_at >= _JOIN_S
        return all(status.phase in (Phase.LIVE, Phase.PAUSED) for status in self.partitions.values())

    def ready(self, now: float, grace_s: float) -> bool:
        """Settled, or unsettled again for less than the grace time over a rebalance."""
        if self.settled(now):
            return True
        return self.was_ready and self.unsettled_since is not None and now - self.unsettled_since < grace_s


class StatusBoard:
    """Keeps `current` up to date. Only the worker's thread may call its methods."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._partitions: dict[int, PartitionStatus] = {}
        self._still: dict[int, tuple[Stillness, Stillness]] = {}
        self._event_time_ms: dict[int, int] = {}
        self._transactions = 0
        self._restores = 0
        self._replayed = 0
        self._dirty = False
        self._unshown = 0
        self.current = WorkerStatus()

    def polled(self) -> None:
        """A poll has returned: the first one is remembered, and what the last turn did is shown."""
        if self.current.first_poll_at is None:
            self._publish(first_poll_at=self._clock())
        elif self._dirty or self.current.unsettled_since is not None:
            self._publish()

    def rebalanced(self) -> None:
        """The group has assigned, revoked or taken partitions, or none."""
        self._publish(knows_ownership=True, rebalances=self.current.rebalances + 1)

    def restoring(self, partition: int) -> None:
        """A partition is new here."""
        self._put(PartitionStatus(partition, Phase.RESTORING, self._clock()))

    def restored(self, partition: int, seconds: float) -> None:
        """Its state is loaded; what was saved last is as old as this moment, as far as this worker knows."""
        known = replace(self._get(partition), restore_seconds=seconds, checkpoint_at=self._clock())
        self._restores += 1
        self._put(known)

    def replaying(self, reading: Reading) -> None:
        """The state of a partition that was restored, or replays."""
        known = self._get(reading.partition)
        since = known.since if known.phase is reading.phase else self._clock()
        self._watch(reading)
        self._put(replace(known, phase=reading.phase, since=since, reading=reading))

    def went_live(self, replayed: int) -> None:
        """Count what was processed again."""
        self._replayed += replayed
        self._dirty = True

    def processed(self, partition: int, last_timestamp_ms: int) -> None:
        """Remember the event time reached; on every batch, so it costs next to nothing."""
        self._event_time_ms[partition] = last_timestamp_ms

    def committed(self) -> None:
        """One more transaction."""
        self._transactions += 1

    def observed(self, reading: Reading, checkpoint_bytes: int) -> PartitionStatus:
        """A partition after commits; `checkpoint_bytes` is 0 when no snapshot was among them.

        Shown after the next poll, so that this costs the same however many partitions are owned.
        """
        now = self._clock()
        known = replace(
            self._get(reading.partition),
            reading=reading,
            committed_at=now,
            pinned=self._watch(reading),
            last_timestamp_ms=self._event_time_ms.get(reading.partition),
        )
        if known.phase is not reading.phase:
            known = replace(known, phase=reading.phase, since=now)
        if checkpoint_bytes:
            known = replace(known, checkpoint_at=now, checkpoint_bytes=checkpoint_bytes)
        self._partitions[reading.partition] = known
        self._dirty = True
        return known

    def paused(self, partition: int, reason: str) -> None:
        """A partition is paused until an operator acts."""
        self._put(replace(self._get(partition), phase=Phase.PAUSED, since=self._clock(), reason=reason))

    def released(self, partition: int) -> None:
        """A partition is no longer here."""
        self._drop(partition)
        self._changed()

    def aborted(self) -> None:
        """Count a transaction that was not committed."""
        self._publish(aborts=self.current.aborts + 1)

    def session_ended(self, cause: str) -> None:
        """Nothing is owned until the group assigns again."""
        for partition in tuple(self._partitions):
            self._drop(partition)
        self._publish(
            knows_ownership=False,
            first_poll_at=None,
            session_restarts=self.current.session_restarts + 1,
            last_restart=cause,
        )

    def _watch(self, reading: Reading) -> bool:
        """Whether threshold or gamma has stopped moving."""
        threshold, gamma = self._still.setdefault(reading.partition, (Stillness(), Stillness()))
        # The paper's threshold is fixed by design, and an external score has no multiplier.
        moves_with = reading.counts["decisions"] if reading.control == "alarm_rate" else reading.negatives
        threshold_still = threshold.update(reading.threshold, moves_with) and reading.preset != "paper"
        gamma_still = gamma.update(reading.gamma, reading.negatives) and reading.preset != "external"
        return reading.learning and (threshold_still or gamma_still)

    def _get(self, partition: int) -> PartitionStatus:
        return self._partitions.get(partition) or PartitionStatus(partition, Phase.RESTORING, self._clock())

    def _put(self, status: PartitionStatus) -> None:
        self._partitions[status.partition] = status
        self._changed()

    def _changed(self) -> None:
        """Show it: at once where few partitions are owned, after some changes or the next poll where many are."""
        self._dirty = True
        self._unshown += 1
        if self._unshown * _SHOWN_TOGETHER >= len(self._partitions):
            self._publish()

    def _drop(self, partition: int) -> None:
        for known in (self._partitions, self._still, self._event_time_ms):
            known.pop(partition, None)

    def _publish(self, **changes: object) -> None:
        self._dirty = False
        self._unshown = 0
        now = self._clock()
        new: WorkerStatus = replace(
            self.current,
            partitions=MappingProxyType(dict(sorted(self._partitions.items()))),
            transactions=self._transactions,
            restores=self._restores,
            replayed=self._replayed,
            **changes,  # type: ignore[arg-type]
        )
        settled = new.settled(now)
        since = None if settled else (self.current.unsettled_since if self.current.unsettled_since is not None else now)
        self.current = replace(new, was_ready=new.was_ready or settled, unsettled_since=since)
