"""The observer of the dashboard: what the worker reports goes to the pulse, the board and the metrics."""

from collections.abc import Callable, Collection
from typing import Any, Literal

from npstream.monitor.boundary import ModelDesk
from npstream.monitor.metrics import Metrics
from npstream.monitor.status import Identity, StatusBoard
from npstream.monitor.watchdog import Pulse
from npstream.observe import Observer
from npstream.records import Reading, Share


class Recorder(Observer):
    """Keeps `pulse`, `board`, `metrics` and `desk` up to date. Only the worker's thread may call its methods."""

    def __init__(self, identity: Identity, clock: Callable[[], float]) -> None:
        self.pulse = Pulse(clock)
        self.board = StatusBoard(clock)
        self.metrics = Metrics(identity)
        self.desk = ModelDesk()
        self._saved_bytes: dict[int, int] = {}

    @property
    def wanted_models(self) -> Collection[int]:  # type: ignore[override]  # read-only here, a constant in the base
        """What HTTP threads wait for."""
        return self.desk.wanted

    def turned(self) -> None:
        """Alive."""
        self.pulse.beat()

    def polled(self) -> None:
        """Alive and started, and what the last turn did can be shown."""
        self.pulse.turned()
        self.metrics.bind_some()
        self.board.polled()

    def rebalanced(self, change: Literal["assigned", "revoked", "lost"]) -> None:
        """Count it."""
        self.metrics.rebalances[change].inc()
        self.board.rebalanced()

    def restoring(self, partition: int) -> None:
        """Its metrics come with the next turns."""
        self.pulse.beat()
        self.metrics.expect(partition)
        self.board.restoring(partition)

    def assigned(self, partition: int, seconds: float, replay_from: int, replay_to: int) -> None:
        """Take the time."""
        self.pulse.beat()
        self.metrics.restore.observe(seconds)
        self.board.restored(partition, seconds)

    def replaying(self, reading: Reading) -> None:
        """What is replayed is shown and not counted: the worker that decided it has done so."""
        self.metrics.start_from(reading)
        self.board.replaying(reading)

    def went_live(self, partition: int, replayed: int) -> None:
        """Count what was processed again."""
        self.metrics.replayed.inc(replayed)
        self.board.went_live(replayed)

    def released(self, partition: int) -> None:
        """Forget the partition."""
        self.metrics.remove(partition)
        self.board.released(partition)

    def paused(self, partition: int, reason: str) -> None:
        """Show why."""
        self.board.paused(partition, reason)

    def processed(self, partition: int, records: int, last_timestamp_ms: int) -> None:
        """Note the batch's size and the event time reached."""
        self.metrics.partition(partition).batch.observe(records)
        self.board.processed(partition, last_timestamp_ms)

    def committed(self, shares: list[Share], seconds: float) -> None:
        """Take the time, and note what readings do not have: the sizes of snapshots."""
        self.pulse.beat()
        self.metrics.transaction.observe(seconds)
        self.board.committed()
        for share in shares:
            if share.chunks:
                self._saved_bytes[share.partition] = sum(len(value) for _, value in share.chunks)
                waiting = sum(len(value or b"") for _, value in share.segments)
                self.metrics.partition(share.partition).count_checkpoint(self._saved_bytes[share.partition] + waiting)

    def observed(self, reading: Reading) -> None:
        """Count what was committed since the last reading."""
        status = self.board.observed(reading, self._saved_bytes.pop(reading.partition, 0))
        self.metrics.partition(reading.partition).update(status)

    def shown_model(self, partition: int, params: Any, state: bytes) -> None:
        """Hand the model to whoever asked."""
        self.desk.deliver(partition, params, state)

    def aborted(self, cause: str) -> None:
        """Count it."""
        self.metrics.aborted(cause)
        self.board.aborted()

    def session_ended(self, cause: str) -> None:
        """Nothing is owned any more."""
        self.pulse.beat()
        self.metrics.session_ended(cause)
        self.board.session_ended(cause)
