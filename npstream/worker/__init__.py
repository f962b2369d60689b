"""The loop: poll, process, commit; and the one way in for state."""

from npstream.worker.limits import Limits
from npstream.worker.loop import Worker
from npstream.worker.restore import Origin, restore
from npstream.worker.task import Cadence, PartitionTask

__all__ = ["Cadence", "Limits", "Origin", "PartitionTask", "Worker", "restore"]
