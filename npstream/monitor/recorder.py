"""The observer behind the dashboard: what the worker tells goes to the pulse, the board and the metrics."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

from npstream.codec.dead_letters import REASON_HEADER
from npstream.codec.decisions import decode_decision
from npstream.monitor.boundary import ModelDesk
from npstream.monitor.metrics import Metrics
from npstream.monitor.status import Identity, StatusBoard
from npstream.monitor.watchdog import Pulse
from npstream.observe import Observer, Reading
from npstream.records import Channel, Output, Share


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
        self.board.polled()

    def rebalanced(self, change: Literal["assigned", "revoked", "lost"]) -> None:
        """Count it."""
        self.metrics.rebalances[change].inc()
        self.board.rebalanced()

    def restoring(self, partition: int) -> None:
        """Bind the partition's metrics."""
        self.pulse.beat()
        self.metrics.partition(partition)
        self.board.restoring(partition)

    def assigned(self, partition: int, seconds: float, replay_from: int, replay_to: int) -> None:
        """Take the time."""
        self.pulse.beat()
        self.metrics.restore.observe(seconds)
        self.board.restored(partition, seconds)

    def replaying(self, reading: Reading) -> None:
        """What is replayed is shown and not counted: the worker that decided it has done so."""
        self.metrics.partition(reading.partition).start_from(reading)
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
        """Take the time, and note what readings do not tell: reasons of dead letters, sizes of snapshots."""
        self.pulse.beat()
        self.metrics.transaction.observe(seconds)
        self.board.committed()
        for share in shares:
            if _any_dead_letter(share.outputs):
                self.metrics.partition(share.partition).count_bad(*reasons_and_answers(share.outputs))
            if share.chunks:
                self._saved_bytes[share.partition] = sum(len(value) for _, value in share.chunks)
                self.metrics.partition(share.partition).count_checkpoint(self._saved_bytes[share.partition])

    def observed(self, reading: Reading) -> None:
        """Count what was committed since the last reading."""
        status = self.board.observed(reading, self._saved_bytes.pop(reading.partition, 0))
        self.metrics.partition(reading.partition).update(status)

    def shown_model(self, partition: int, params: Any, state: bytes) -> None:
        """Hand the model to whoever asked."""
        self.desk.answer(partition, params, state)

    def aborted(self, cause: str) -> None:
        """Count it."""
        self.metrics.aborted(cause)
        self.board.aborted()

    def session_ended(self, cause: str) -> None:
        """Nothing is owned any more."""
        self.pulse.beat()
        self.metrics.session_ended(cause)
        self.board.session_ended(cause)


def _any_dead_letter(outputs: Sequence[Output]) -> bool:
    # Looks at every decision, hence by place and identity: by name and value it costs fifteen times as much.
    dead = Channel.DEAD_LETTERS
    return bool([output for output in outputs if output[0] is dead])


def reasons_and_answers(outputs: Sequence[Output]) -> tuple[list[str], list[str]]:
    """The reasons of the dead letters among outputs, and the decisions ("1", "-1") published on bad events.

    A bad event's decision directly follows its dead letter, so only those are looked at.
    """
    reasons: list[str] = []
    answers: list[str] = []
    after_letter = False
    for output in outputs:
        if output.channel == Channel.DEAD_LETTERS:
            reasons.append(_reason(output))
        elif after_letter:
            decision = decode_decision(output.value)
            if decision.reason == "invalid":
                answers.append(str(decision.decision))
        after_letter = output.channel == Channel.DEAD_LETTERS
    return reasons, answers


def _reason(letter: Output) -> str:
    # An event that failed before and was sent back has the header twice; the last one is ours.
    return next((text or b"").decode() for name, text in reversed(letter.headers) if name == REASON_HEADER)
