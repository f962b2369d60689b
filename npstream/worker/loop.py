"""The worker: a straight line from poll to commit, and what to do when it breaks.

One turn: poll; replay what must be replayed; commit debuts (first snapshots and
changes of settings); process; commit. A transaction never spans a poll. After
anything unclear the worker drops its clients and all state and comes back
through `restore`, within `recover_s`.

Committing is mostly waiting for the brokers. Under load, when a batch came full,
its shares are staged instead: the next poll is made first, and their commit is
in the air while the batch it brought is processed. Nothing of that batch can be
seen before its own commit, and when a commit fails both are thrown away.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from npstream import failpoints
from npstream.errors import Fatal, NpstreamError, Refused, Retryable, StateCorrupt
from npstream.observe import Observer
from npstream.partition import Step
from npstream.port import Broker, Landing, Log
from npstream.records import Batch, Record, Share
from npstream.worker.limits import Limits
from npstream.worker.partition_task import PartitionTask
from npstream.worker.reading import reading_of
from npstream.worker.refusals import UNKNOWN, Refusals
from npstream.worker.restore import Origin, restore

_BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)
_HEALTHY_S = 10.0
"""A session this long without an error ends an outage even when no event arrives to be committed."""
_STAGED_POLL_S = 0.005
"""How long a poll may look for the next batch while a processed one waits for its commit."""
_TELL_S = 0.25
"""How partitions stand is told this often, however small the batches: a reading costs as much as ten events."""
_UNTOLD_MAX_S = 1.0
"""Only committed state is told. Under load there is none at the end of a turn, so every second one commits at once."""


@dataclass(frozen=True, slots=True)
class _Flight:
    """A commit that has begun: what it publishes, how to wait for its end, and how long it took to begin."""

    shares: list[Share]
    land: Landing
    seconds: float


class Worker:
    """Runs until told to stop; raises `Fatal` or `SettingsError` when it cannot go on.

    `connect` builds fresh clients. `clock` is monotonic. `stop` may be set from a
    signal handler.
    """

    def __init__(
        self,
        connect: Callable[[], tuple[Broker, Log]],
        origin: Origin,
        limits: Limits,
        clock: Callable[[], float],
        stop: threading.Event,
        observer: Observer,
    ) -> None:
        self._connect = connect
        self._origin = origin
        self._limits = limits
        self._clock = clock
        self._stop = stop
        self._observer = observer
        self._log = structlog.get_logger("npstream.worker")
        self._tasks: dict[int, PartitionTask] = {}
        self._paused: dict[int, str] = {}
        self._refusals = Refusals()
        self._committed: dict[int, int] = {}
        self._failing_since: float | None = None
        self._staged: list[Share] = []
        self._flight: _Flight | None = None
        self._untold: set[int] = set()
        self._told_at = clock()
        self._broker: Broker
        self._reader: Log

    @property
    def tasks(self) -> Mapping[int, PartitionTask]:
        """Owned partitions by number; for status, not to be changed."""
        return self._tasks

    @property
    def paused_partitions(self) -> Mapping[int, str]:
        """Partitions that stand still, with the reason."""
        return self._paused

    def run(self) -> None:
        """Sessions one after another until stopped, each through the restore path."""
        connected = False
        attempt = 0
        while not self._stop.is_set():
            try:
                self._broker, self._reader = self._connect()
                connected = True
                self._session()
                return
            except Retryable as cause:
                if not connected:
                    raise Fatal(str(cause)) from cause
                attempt = attempt + 1 if self._failing_since is not None else 0
                self._recover(cause, attempt)

    def _session(self) -> None:
        started = self._clock()
        try:
            self._broker.subscribe(self)
            while not self._stop.is_set():
                self._turn()
                if self._failing_since is not None and self._clock() - started > _HEALTHY_S:
                    self._failing_since = None
            self._drain()
        except Refused as error:
            if error.committed is None and error.partition is not None:
                error.committed = self._committed.get(error.partition)
            self._refusals.note(error, self._clock())
            self._broker.abandon()
            raise
        except BaseException:
            self._broker.abandon()
            raise
        finally:
            self._staged, self._flight = [], None
            self._reader.close()
            self._forget((*self._tasks, *self._paused))

    def _recover(self, cause: Retryable, attempt: int) -> None:
        now = self._clock()
        self._failing_since = now if self._failing_since is None else self._failing_since
        if now - self._failing_since > self._limits.recover_s:
            raise Fatal(f"no progress for {self._limits.recover_s:.0f} s; last error: {cause}") from cause
        wait_s = _BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)]
        self._log.warning("reset", cause=str(cause), retry_in_s=wait_s)
        self._observer.reset(cause.cause)
        self._stop.wait(wait_s)

    def _turn(self) -> None:
        batches = self._broker.poll(self._limits.batch_max, _STAGED_POLL_S if self._staged else self._limits.poll_s)
        failpoints.hit("after_poll")
        self._observer.polled()
        self._show_models()
        self._take_off()
        live = self._replay(batches)
        self._make_debuts()
        steps = self._process(live)
        if self._flight is not None:
            failpoints.hit("in_flight")
        self._land()
        shares = self._shares(steps, self._clock())
        halted = [task for task in self._tasks.values() if task.halted is not None]
        if not halted and self._may_wait(batches):
            self._staged = shares
        else:
            self._commit(shares)
        for task in halted:
            self._pause(task.partition, str(task.halted))
        self._maybe_tell()

    def _may_wait(self, batches: Sequence[Batch]) -> bool:
        """Whether a processed batch may wait for the next poll: a full one, since then there is more to read."""
        full = sum(len(records) for _, records in batches) >= self._limits.batch_max
        return full and self._clock() - self._told_at < _UNTOLD_MAX_S and not self._refusals.apart

    def _replay(self, batches: Sequence[Batch]) -> list[tuple[PartitionTask, list[Record]]]:
        """Let restored partitions catch up silently; answer the live records of each."""
        live = []
        for partition, records in batches:
            task = self._tasks.get(partition)
            if task is None:
                continue
            was_live = task.live
            try:
                rest = task.replay(records)
            except StateCorrupt as error:
                self._pause(partition, str(error))
                continue
            if not was_live:
                self._observer.replaying(reading_of(task))
            if task.live and not was_live:
                self._observer.went_live(partition, task.replayed)
                self._log.info("live", partition=partition, replayed=task.replayed)
            if rest:
                live.append((task, rest))
        return live

    def _make_debuts(self) -> None:
        """Commit what must stand before the first live decision of a partition."""
        if any(task.debuts for task in self._tasks.values()):
            self._settle()
            now = self._clock()
            self._commit([share for task in self._tasks.values() if (share := task.debut(now))])

    def _process(self, live: Sequence[tuple[PartitionTask, list[Record]]]) -> list[tuple[PartitionTask, Step]]:
        steps = []
        for task, records in live:
            steps.append((task, task.process(records)))
            self._observer.processed(task.partition, len(records), records[-1].timestamp_ms)
        return steps

    def _shares(self, steps: Sequence[tuple[PartitionTask, Step]], now: float) -> list[Share]:
        """What each partition publishes, those that only have a checkpoint to write included."""
        shares = [task.share(step, now) for task, step in steps]
        busy = {task.partition for task, _ in steps}
        idle = [task for task in self._tasks.values() if task.partition not in busy]
        return shares + [share for task in idle if (share := task.checkpoint(now, forced=False))]

    def _commit(self, shares: list[Share]) -> None:
        """Publish these after what is on its way; on return they are committed."""
        self._settle()
        for together in [[share] for share in shares] if self._refusals.apart else [shares]:
            self._staged = together
            self._settle()

    def _settle(self) -> None:
        self._take_off()
        self._land()

    def _take_off(self) -> None:
        """Begin to commit what is staged, if anything is."""
        if self._staged:
            shares, self._staged = self._staged, []
            began = self._clock()
            with self._noting_aborts(shares):
                land = self._broker.start_commit(shares)
            self._flight = _Flight(shares, land, self._clock() - began)

    def _land(self) -> None:
        """Wait until the commit in the air stands, if one is: transactions come one after another."""
        if self._flight is None:
            return
        flight, self._flight = self._flight, None
        began = self._clock()
        with self._noting_aborts(flight.shares):
            pointers = flight.land()
        for partition, pointer in pointers.items():
            if partition in self._tasks:  # it may have been paused since
                self._tasks[partition].committed(pointer)
                self._untold.add(partition)
        for share in flight.shares:
            self._committed[share.partition] = share.position.next_offset
            self._refusals.clear(share.partition)
        self._failing_since = None
        self._observer.committed(flight.shares, flight.seconds + self._clock() - began)

    @contextmanager
    def _noting_aborts(self, shares: Sequence[Share]) -> Iterator[None]:
        try:
            yield
        except NpstreamError as error:
            if isinstance(error, Refused):
                self._explain(error, shares)
            self._observer.aborted(error.cause)
            raise

    def _explain(self, error: Refused, shares: Sequence[Share]) -> None:
        """Say who took part in what was refused, and where they were: later that is forgotten."""
        error.together = frozenset(share.partition for share in shares)
        if len(shares) == 1:
            error.partition = shares[0].partition
        if error.partition is not None:
            error.committed = self._committed.get(error.partition)

    def _maybe_tell(self) -> None:
        """Let the observer know how partitions stand that have committed since it was last told."""
        if self._untold and not self._staged and self._clock() - self._told_at >= _TELL_S:
            self._told_at = self._clock()
            for partition in tuple(self._untold):
                self._tell(partition)

    def _tell(self, partition: int) -> None:
        if partition in self._untold:
            self._untold.discard(partition)
            self._observer.observed(reading_of(self._tasks[partition]))

    def _show_models(self) -> None:
        """Answer whoever asks to see a model; costs a look at an empty set when nobody does."""
        for partition in self._observer.wanted_models:
            if partition in self._tasks:
                model = self._tasks[partition].processor.model
                self._observer.shown_model(partition, model.params, model.to_bytes())

    def _drain(self) -> None:
        """A last checkpoint of everything, then leave: the next start replays nothing."""
        self._checkpoint(tuple(self._tasks))
        self._broker.close(self._limits.drain_s)
        self._log.info("stopped", partitions=sorted(self._tasks))

    def _checkpoint(self, partitions: Sequence[int]) -> None:
        self._settle()
        now = self._clock()
        tasks = [self._tasks[partition] for partition in partitions if partition in self._tasks]
        self._commit([share for task in tasks if (share := task.checkpoint(now, forced=True))])

    def _forget(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._tasks.pop(partition, None)
            self._paused.pop(partition, None)
            self._committed.pop(partition, None)
            self._untold.discard(partition)
            self._observer.released(partition)

    def _give_away(self, partitions: Sequence[int]) -> None:
        """Another worker goes on with them, and finds out for itself what is wrong with them."""
        self._forget(partitions)
        for partition in partitions:
            self._refusals.clear(partition)

    def _pause(self, partition: int, reason: str) -> None:
        """Stop one partition and keep the others; give up only when none is left."""
        self._refusals.clear(partition)
        self._tell(partition)
        self._tasks.pop(partition, None)
        self._paused[partition] = reason
        self._broker.pause(partition)
        self._observer.paused(partition, reason)
        self._log.error("partition paused", partition=partition, reason=reason)
        if not self._tasks:
            self._settle()  # what is decided is still ours to publish, and its events may be gone
            raise Fatal(f"every owned partition is paused; the last: {reason}")

    def on_assigned(self, partitions: Sequence[int]) -> Mapping[int, int | None]:
        """Restore each partition; a corrupt one is answered with None and stays paused."""
        starts: dict[int, int | None] = {}
        self._observer.rebalanced("assigned")
        for partition in partitions:
            self._paused.pop(partition, None)
            try:
                starts[partition] = self._assign(partition)
            except StateCorrupt as error:
                starts[partition] = None
                self._paused[partition] = str(error)
                self._observer.paused(partition, str(error))
                self._log.error("partition paused", partition=partition, reason=str(error))
        if partitions and not self._tasks:
            raise Fatal(f"every owned partition is paused; the last: {self._paused[partitions[-1]]}")
        return starts

    def _assign(self, partition: int) -> int:
        started = self._clock()
        self._observer.restoring(partition)
        self._refusals.check(partition, UNKNOWN)
        try:
            task = restore(partition, self._broker, self._reader, self._origin, started)
        except Refused as error:
            error.partition = partition
            raise
        if task.is_known:
            self._refusals.check(partition, task.replay_to)
            self._committed[partition] = task.replay_to
        self._tasks[partition] = task
        seconds = self._clock() - started
        self._observer.assigned(partition, seconds, task.processor.next_offset, task.replay_to)
        self._observer.replaying(reading_of(task))
        self._log.info(
            "assigned",
            partition=partition,
            checkpoint=task.processor.next_offset,
            committed=task.replay_to,
            seconds=round(seconds, 3),
        )
        return task.processor.next_offset

    def on_revoked(self, partitions: Sequence[int]) -> None:
        """Save what the next owner would have to replay; a failure costs only that replay."""
        self._observer.rebalanced("revoked")
        try:
            self._checkpoint(partitions)
        except NpstreamError as error:
            self._log.warning("no checkpoint on revoke", partitions=list(partitions), cause=str(error))
            raise
        finally:
            self._give_away(partitions)
        self._log.info("revoked", partitions=list(partitions))

    def on_lost(self, partitions: Sequence[int]) -> None:
        """Another worker owns them now: what is staged for them must never be published."""
        self._observer.rebalanced("lost")
        self._staged = [share for share in self._staged if share.partition not in partitions]
        self._give_away(partitions)
        self._log.warning("lost", partitions=list(partitions))

    def on_waiting(self, partition: int, reason: str) -> None:
        """An operator has something to do before this partition can start; the worker waits for it."""
        self._paused[partition] = reason
        self._observer.paused(partition, reason)
        self._log.warning("partition waits", partition=partition, reason=reason)

    def on_failed(self, partition: int, error: StateCorrupt) -> None:
        """The log cannot serve this partition any more."""
        self._pause(partition, str(error))
