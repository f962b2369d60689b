"""The loop: poll, process, commit; and the one way in for state."""

from npstream.worker.loop import Worker
from npstream.worker.partition_task import Cadence, PartitionTask
from npstream.worker.restore import Origin, restore
from npstream.worker.session import Limits

__all__ = ["Cadence", "Limits", "Origin", "PartitionTask", "Worker", "restore"]
