"""Reports on a session's partitions, to the observer and to the log, no more often than is useful."""

from collections.abc import Callable, Mapping

import structlog

from npstream.observe import Observer
from npstream.partition.reading import reading_of
from npstream.records import Reading
from npstream.worker.partition_task import PartitionTask

_REPORT_S = 0.25
"""Partitions are reported this often, however small the batches: a reading costs as much as ten events."""
_REPORT_MAX_S = 1.0
"""Only committed state is reported. Under load there is none at the end of a turn, so one batch per second is
committed at once."""


class Progress:
    """Reports each change of phase at once, and what was committed a few times a second."""

    def __init__(self, observer: Observer, clock: Callable[[], float]) -> None:
        self._observer = observer
        self._clock = clock
        self._log = structlog.get_logger("npstream.worker")
        self._reported_at = self._looked_at = clock()

    @property
    def is_overdue(self) -> bool:
        """Whether the next batch must be committed at once, so that something can be reported."""
        return self._clock() - self._reported_at >= _REPORT_MAX_S

    def restored(self, task: PartitionTask, seconds: float) -> None:
        """A partition's state is loaded; what was committed since its snapshot is to be replayed."""
        begin, end = task.processor.next_offset, task.replay_to
        self._observer.assigned(task.partition, seconds, begin, end)
        self._observer.replaying(_reading_of(task))
        self._log.info("assigned", partition=task.partition, checkpoint=begin, committed=end, seconds=round(seconds, 3))

    def replayed(self, task: PartitionTask) -> None:
        """A partition has replayed a batch, and may have come to the end of its replay."""
        self._observer.replaying(_reading_of(task))
        if task.is_live:
            self._observer.went_live(task.partition, task.replayed)
            self._log.info("live", partition=task.partition, replayed=task.replayed)

    def paused(self, task: PartitionTask) -> None:
        """A partition waits for an operator."""
        self._observer.paused(task.partition, task.reason)
        self._log.error("partition paused", partition=task.partition, reason=task.reason)

    def waiting(self, task: PartitionTask) -> None:
        """A partition waits for something that an operator has yet to prepare: no error of this worker."""
        self._observer.paused(task.partition, task.reason)
        self._log.warning("partition waits", partition=task.partition, reason=task.reason)

    def maybe_report(self, tasks: Mapping[int, PartitionTask]) -> None:
        """Report those that have committed since the last report, when it is time. Their state must be committed."""
        now = self._clock()
        if now - self._looked_at < _REPORT_S:
            return
        self._looked_at = now
        due = [task for task in tasks.values() if task.unreported]
        if due:
            self._reported_at = now
        for task in due:
            self.report(task)

    def report(self, task: PartitionTask) -> None:
        """Report one partition now, if it has committed since its last report."""
        if task.unreported:
            task.unreported = False
            self._observer.observed(_reading_of(task))

    def show_models(self, tasks: Mapping[int, PartitionTask]) -> None:
        """Hand out the models that somebody asks to see; costs a look at an empty set when nobody does."""
        for partition in self._observer.wanted_models:
            if partition in tasks and tasks[partition].is_restored:
                model = tasks[partition].processor.model
                self._observer.shown_model(partition, model.params, model.to_bytes())


def _reading_of(task: PartitionTask) -> Reading:
    return reading_of(task.processor, task.phase, task.replay_to, task.saved_offset)
