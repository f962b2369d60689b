"""Labels from a topic of their own: which of them come before which event, and a merge on its way into a batch.

Labels are taken together with an observation, just before it, and never
otherwise: then the decision on it can say what its model had learned, and the
decisions alone record the order in which two logs were read.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import dropwhile

from npstream.codec.event import EventId, Kind
from npstream.codec.labels import Label, LabelDecoder
from npstream.errors import BadEvent
from npstream.records import Merge, Output, Record

DECIDED = (Kind.OBSERVATION, Kind.LABELLED)
"""Events that the model decides: labels are taken before these."""


Due = tuple[Record, Label | BadEvent]
"""A record of the labels topic, and what it says."""


class DueLabels:
    """The merges that were handed over with one batch; a merge is decoded when its observation has come."""

    def __init__(self, merges: Iterable[Merge], decoder: LabelDecoder | None, next_label: int | None) -> None:
        self._decoder = decoder
        self._merges = [merge for merge in merges if next_label is None or merge.next_label > next_label]

    def before(self, events: Sequence[Record], kinds: Sequence[int]) -> dict[int, list[Due]]:
        """What must be learned before which event of a batch, by its index; labels without an observation are left."""
        found: dict[int, list[Due]] = {}
        at = 0
        for merge in self._merges:
            while at < len(events) and (events[at].offset < merge.before or kinds[at] not in DECIDED):
                at += 1
            if at == len(events):
                break
            assert self._decoder is not None, merge.before
            found.setdefault(at, []).extend(zip(merge.records, self._decoder.decode(merge.records), strict=True))
        return found


class Marks:
    """What merges did to one batch: how far labels were learned before each event, and which were refused."""

    def __init__(self, next_label: int | None) -> None:
        self._begin = next_label
        self._reached: list[tuple[int, int]] = []
        self.merges: list[tuple[int, int]] = []
        """The offset of an observation, and the label offset that was reached before it."""
        self.labels: list[tuple[int, EventId, int]] = []
        """Labels to learn: the index of the event they come before, id and sign."""
        self.refused: dict[int, list[Output]] = {}
        """Dead letters of labels, by the index of the event they came before."""

    def reach(self, event: int, offset: int, next_label: int) -> None:
        """Labels were learned before this event of the batch."""
        self._reached.append((event, next_label))
        self.merges.append((offset, next_label))

    def before_each(self, events: int) -> list[int] | None:
        """The label offset before each of so many events; None when labels have no topic."""
        if self._begin is None:
            return None
        found: list[int] = []
        now = self._begin
        for event, next_label in self._reached:
            found += [now] * (event - len(found))
            now = next_label
        return found + [now] * (events - len(found))


Merger = Callable[[Sequence[Record]], Sequence[Merge]]
"""Merges labels with the next events of a partition."""


def no_labels(events: Sequence[Record]) -> Sequence[Merge]:
    """The `Merger` where labels have no topic."""
    return ()


class MergeByTime:
    """Merges two logs that are there as a whole: each label before the first event that is not older.

    Labels older than the first event are about events before it, and left out.
    """

    def __init__(self, labels: Iterable[Record]) -> None:
        self._labels = iter(labels)
        self._next: Record | None = None
        self._has_begun = False

    def __call__(self, events: Sequence[Record]) -> list[Merge]:
        """The merges with these events, which follow those of the last call."""
        if events and not self._has_begun:
            self._has_begun, first_ms = True, events[0].timestamp_ms
            self._labels = dropwhile(lambda label: label.timestamp_ms < first_ms, self._labels)
            self._next = next(self._labels, None)
        merges = []
        for event in events:
            taken = []
            while self._next is not None and self._next.timestamp_ms <= event.timestamp_ms:
                taken.append(self._next)
                self._next = next(self._labels, None)
            if taken:
                merges.append(Merge(event.offset, taken))
        return merges
