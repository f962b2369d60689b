"""Events of a partition and labels from a topic of their own, on their way through one processor."""

from collections.abc import Sequence

from npstream.partition import PartitionProcessor, Step
from npstream.partition.merges import Merger
from npstream.records import Merge, Record


class MergedRun:
    """A processor over the events of a partition, merged with its labels on the way."""

    def __init__(self, processor: PartitionProcessor, merger: Merger) -> None:
        self.processor = processor
        self._merger = merger
        self._left: list[Merge] = []

    def process(self, records: Sequence[Record]) -> Step:
        """The next events. Labels that no observation has followed yet wait for one."""
        self._left += self._merger(records)
        step = self.processor.process(records, self._left)
        self._left = [merge for merge in self._left if merge.next_label > (self.processor.next_label or 0)]
        return step
