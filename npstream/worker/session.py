"""One session of a worker: from joining the group to leaving it, or to the first unclear error.

One turn: poll; replay what must be replayed; commit what must come before a
first live decision; process; commit. After an error a session is thrown away
with all its state, and the next one comes back through `restore`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from npstream import failpoints
from npstream.errors import Fatal, NpstreamError, Refused, StateCorrupt
from npstream.observe import Observer
from npstream.partition import Step
from npstream.port import Broker, Log
from npstream.records import Batch, LabelsWanted, Phase, Record, Share
from npstream.worker.commits import Commits
from npstream.worker.partition_task import PartitionTask
from npstream.worker.progress import Progress
from npstream.worker.refusals import UNKNOWN, Refusals
from npstream.worker.restore import Origin, Restored, restore

_STAGED_POLL_S = 0.005
"""How long a poll may look for the next batch while a processed one waits for its commit."""

_IDLE_LOOK_S = 0.2
"""Idle partitions are asked this often whether a checkpoint is due: a turn may cost nothing for each of a thousand."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the loop, in records and seconds."""

    batch_max: int = 2000
    poll_s: float = 0.02
    drain_s: float = 20.0
    recover_s: float = 300.0


class Session:
    """The owned partitions and their commits, between one `connect` and one `abandon` or `leave`.

    It is the broker's listener. Any exception ends it: the caller then calls `abandon`.
    """

    def __init__(
        self,
        broker: Broker,
        log: Log,
        origin: Origin,
        limits: Limits,
        clock: Callable[[], float],
        observer: Observer,
        refusals: Refusals,
    ) -> None:
        self._broker = broker
        self._reader = log
        self._origin = origin
        self._limits = limits
        self._clock = clock
        self._observer = observer
        self._refusals = refusals
        self._log = structlog.get_logger("npstream.worker")
        self._tasks: dict[int, PartitionTask] = {}
        self._beginners: list[PartitionTask] = []
        """Those that were not live at the last look; there are none of them in most turns."""
        self._idle_seen_at = clock()
        self._progress = Progress(observer, clock)
        self._commits = Commits(broker, self._tasks, refusals, clock, observer)

    @property
    def has_committed(self) -> bool:
        """Whether any transaction of this session was committed."""
        return self._commits.count > 0

    def join(self) -> None:
        """Join the group; partitions come with the first turns."""
        self._broker.subscribe(self)

    def turn(self) -> None:
        """Poll once and deal with what it brought."""
        # Nobody can read a staged batch before its commit begins: it must not wait for a slow topic.
        wait_s = _STAGED_POLL_S if self._commits.is_staged else self._limits.poll_s
        batches = self._broker.poll(self._limits.batch_max, wait_s)  # partitions come and go in here
        failpoints.hit("after_poll")
        self._observer.polled()
        self._progress.show_models(self._tasks)
        self._commits.begin()  # of the batch before: it runs while this one is processed
        live = self._replay(batches)
        self._make_first_commits()  # after the replay, which may have ended in this batch
        steps = self._process(live)
        if self._commits.is_running:
            failpoints.hit("in_flight")
        self._commits.finish()  # before shares are made: they point to the newest snapshot
        shares = self._shares(steps, self._clock())
        halted = [(task, step.halted) for task, step in steps if step.halted is not None]
        if not halted and self._may_wait(batches):
            self._commits.stage(shares)
        else:
            self._commits.publish(shares)
        for task, reason in halted:  # after the commit: what it decided before the bad event counts
            self._pause(task, str(reason))
        if not self._commits.is_staged:  # else the tasks are ahead of what is committed
            self._progress.maybe_report(self._tasks)

    def _may_wait(self, batches: Sequence[Batch]) -> bool:
        """Whether a processed batch may wait for the next poll: a full one, since then there is more to read.

        Not when a report is overdue, nor while partitions are published one by one to find the one to blame.
        """
        full = sum(len(records) for _, records in batches) >= self._limits.batch_max
        return full and not self._progress.is_overdue and not self._refusals.apart

    def _replay(self, batches: Sequence[Batch]) -> list[tuple[PartitionTask, list[Record]]]:
        """Let restored partitions catch up silently; return the live records of each."""
        live = []
        for partition, records in batches:
            task = self._tasks[partition]
            rest = records
            if task.phase is Phase.REPLAYING:
                try:
                    rest = task.replay(records)
                except StateCorrupt as error:
                    self._pause(task, str(error))
                    continue  # its other records are read again by whoever restores it next
                self._progress.replayed(task)
            if rest:
                live.append((task, rest))
        return live

    def _make_first_commits(self) -> None:
        """Commit what must be there before the first live decision of a partition."""
        due = [task for task in self._beginners if task.phase is Phase.FIRST_COMMIT_DUE]
        if due:
            self._commits.settle()  # as before any share: the commit before it must be over
            now = self._clock()
            self._commits.publish([task.first_commit(now) for task in due])
        if self._beginners:
            self._beginners = [task for task in self._beginners if task.phase in (Phase.RESTORING, Phase.REPLAYING)]

    def _process(self, live: Sequence[tuple[PartitionTask, list[Record]]]) -> list[tuple[PartitionTask, Step]]:
        labels = self._labels(live)
        steps = []
        for task, records in live:
            if task.is_restored:  # reading its labels may have paused it
                steps.append((task, task.process(records, labels.get(task.partition, ()))))
                self._observer.processed(task.partition, len(records), records[-1].timestamp_ms)
        return steps

    def _labels(self, live: Sequence[tuple[PartitionTask, list[Record]]]) -> Mapping[int, Sequence[Record]]:
        """Labels that come before the batch of each partition, where labels have a topic."""
        wanted = [
            LabelsWanted(task.partition, task.processor.next_label, records[0].timestamp_ms)
            for task, records in live
            if task.processor.next_label is not None
        ]
        return self._broker.read_labels(wanted) if wanted else {}

    def _shares(self, steps: Sequence[tuple[PartitionTask, Step]], now: float) -> list[Share]:
        """What each partition publishes, those that only have a checkpoint to write included."""
        shares = [task.share(step, now) for task, step in steps]
        if now - self._idle_seen_at < _IDLE_LOOK_S:
            return shares
        self._idle_seen_at = now
        busy = {task.partition for task, _ in steps}
        idle = [task for task in self._tasks.values() if task.partition not in busy]
        return shares + [share for task in idle if (share := task.checkpoint(now, forced=False))]

    def leave(self) -> None:
        """Write a last checkpoint of everything and leave the group: the next start replays nothing."""
        self._checkpoint(tuple(self._tasks))
        partitions = sorted(self._tasks)
        self._broker.close(self._limits.drain_s)
        self._end()
        self._log.info("stopped", partitions=partitions)

    def abandon(self, error: BaseException) -> None:
        """Drop everything at once; publish nothing. Never raises."""
        if isinstance(error, Refused):
            self._note_refusal(error)
        self._broker.abandon()
        self._end()

    def _note_refusal(self, error: Refused) -> None:
        """Remember who was refused and where it was: with the session that is forgotten."""
        task = None if error.partition is None else self._tasks.get(error.partition)
        if error.committed is None and task is not None:
            error.committed = task.committed_offset
        self._refusals.note(error, self._clock())

    def _end(self) -> None:
        self._reader.close()
        self._forget(tuple(self._tasks))

    def _checkpoint(self, partitions: Sequence[int]) -> None:
        self._commits.settle()
        now = self._clock()
        tasks = [self._tasks[partition] for partition in partitions if partition in self._tasks]
        shares = [share for task in tasks if (share := task.checkpoint(now, forced=True))]
        self._commits.publish(shares)

    def _forget(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._tasks.pop(partition, None)
            self._observer.released(partition)
        self._beginners = [task for task in self._beginners if task.partition in self._tasks]

    def _give_away(self, partitions: Sequence[int]) -> None:
        """Another worker goes on with them, and finds out for itself what is wrong with them."""
        self._forget(partitions)
        for partition in partitions:
            self._refusals.clear(partition)

    def _pause(self, task: PartitionTask, reason: str) -> None:
        """Stop one partition and keep the others; give up only when none is left."""
        self._refusals.clear(task.partition)  # the others need not wait until it comes through
        if task.is_restored:
            self._progress.report(task)  # its last state, which the pause drops
        task.pause(reason)
        self._progress.paused(task)
        self._require_some(reason)

    def _require_some(self, reason: str) -> None:
        if all(task.phase is Phase.PAUSED for task in self._tasks.values()):
            self._commits.settle()  # what is decided is still ours to publish, and its events may be gone
            raise Fatal(f"every owned partition is paused; the last: {reason}")

    # The broker's listener.

    def phase_of(self, partition: int) -> Phase:
        """Only what is not paused is read."""
        return self._tasks[partition].phase

    def on_assigned(self, partitions: Sequence[int]) -> Mapping[int, int | None]:
        """Restore these partitions; a corrupt one is paused."""
        self._observer.rebalanced("assigned")
        # All of them before the first is restored: a corrupt one must not pass for the only one owned.
        for partition in partitions:
            self._tasks[partition] = PartitionTask(partition)
            self._observer.restoring(partition)
        for partition in partitions:
            with self._pausing(self._tasks[partition]):
                self._refusals.check(partition, UNKNOWN)  # the restore itself may have been refused
        self._restore_together([partition for partition in partitions if not self._is_paused(partition)])
        tasks = [self._tasks[partition] for partition in partitions]
        self._beginners += tasks
        return {task.partition: task.processor.next_offset if task.is_restored else None for task in tasks}

    def _restore_together(self, partitions: Sequence[int]) -> None:
        """Restore in one round; one by one when that is refused, to find whose records are to blame."""
        try:
            self._restore(partitions)
        except Refused as error:
            if error.partition is not None:
                raise
            for partition in partitions:
                if self._tasks[partition].phase is Phase.RESTORING:
                    self._restore_alone(partition)

    def _restore_alone(self, partition: int) -> None:
        try:
            self._restore([partition])
        except Refused as error:
            error.partition = partition
            raise

    def _restore(self, partitions: Sequence[int]) -> None:
        started = self._clock()
        for partition, found in restore(partitions, self._broker.state, self._reader, self._origin):
            with self._pausing(self._tasks[partition]):
                self._take_over(self._tasks[partition], found, started)

    def _take_over(self, task: PartitionTask, found: Restored | StateCorrupt, started: float) -> None:
        if isinstance(found, StateCorrupt):
            raise found
        if found.goal is not None:
            self._refusals.check(task.partition, found.goal.next_offset)
        config, cadence, now = self._origin.config, self._origin.cadence, self._clock()
        task.restored(found.processor, found.goal, config, cadence, started, found.merges, found.label_topic_id)
        self._progress.restored(task, now - started)

    @contextmanager
    def _pausing(self, task: PartitionTask) -> Iterator[None]:
        """What is wrong with one partition's state pauses that one."""
        try:
            yield
        except StateCorrupt as error:
            self._pause(task, str(error))

    def _is_paused(self, partition: int) -> bool:
        return self._tasks[partition].phase is Phase.PAUSED

    def on_revoked(self, partitions: Sequence[int]) -> None:
        """Save what the next owner would have to replay; a failure costs only that replay."""
        self._observer.rebalanced("revoked")
        try:
            self._checkpoint(partitions)
        except NpstreamError as error:
            self._log.warning("no checkpoint on revoke", partitions=list(partitions), cause=str(error))
            raise  # poll raises it again: after an unclear commit no state of this session can be trusted
        finally:
            self._give_away(partitions)
        self._log.info("revoked", partitions=list(partitions))

    def on_lost(self, partitions: Sequence[int]) -> None:
        """Another worker owns them now."""
        self._observer.rebalanced("lost")
        self._commits.drop(partitions)  # their new owner decides the same events
        self._give_away(partitions)
        self._log.warning("lost", partitions=list(partitions))

    def on_waiting(self, partition: int, reason: str) -> None:
        """An operator has something to do before this partition can start; the worker waits for it."""
        task = self._tasks[partition] = PartitionTask(partition)
        task.pause(reason)
        self._progress.waiting(task)

    def on_failed(self, partition: int, error: StateCorrupt) -> None:
        """The log cannot serve this partition any more."""
        self._pause(self._tasks[partition], str(error))
