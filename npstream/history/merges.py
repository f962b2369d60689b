"""How the labels topic was merged with the events, as the decisions of a partition record it."""

from collections.abc import Iterator, Sequence

from npstream.codec.envelope import LABELS_HEADER
from npstream.codec.resets import Reset
from npstream.errors import StateCorrupt, UsageError
from npstream.history.published import Published, published
from npstream.port import Log
from npstream.records import Channel, Merge, Record
from npstream.state import LABELS_RECREATED, is_recreated

_DIGITS_MAX = 19


class RecordedMerges:
    """Follows the decisions on the events from an offset on, and reads the labels that were learned before them.

    Nothing is read before it is needed.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        partition: int,
        begin: int,
        next_label: int | None,
        resets: Sequence[Reset],
        learned_from: str = "",
    ) -> None:
        """`next_label` is where the state before the event at `begin` has its labels from; None: it knows none.

        `learned_from` is the id of the topic that they were learned from, where that is known.
        """
        self._log = log
        self._learned_from = learned_from
        self._name = f"{topic}/{partition}"
        self._partition = partition
        self._begin = begin
        self._at = next_label or 0
        self._resets = resets
        self._decisions: Iterator[Published] | None = None
        self._ahead: Published | None = None
        self._labels: Iterator[Record] | None = None

    def up_to(self, offset: int) -> list[Merge]:
        """Merges before observations at or below an offset, without those of an earlier call."""
        if self._decisions is None:
            self._decisions = published(
                self._log, Channel.DECISIONS, self._partition, self._begin, 2**63 - 1, self._resets
            )
            self._ahead = next(self._decisions, None)
        merges = []
        while self._ahead is not None and self._ahead.event_offset <= offset:
            next_label = label_mark(self._ahead.record)
            if next_label is not None and next_label < self._at:
                self._at, self._labels = 0, None  # labels.topic was taken out of the settings and put in again
            if next_label is not None and next_label > self._at:
                merges.append(Merge(self._ahead.event_offset, self._read(next_label)))
                self._at = next_label
            self._ahead = next(self._decisions, None)
        return merges

    def _read(self, next_label: int) -> list[Record]:
        if self._labels is None:
            if is_recreated(self._learned_from, self._log.topic_id(Channel.LABELS)):
                raise UsageError(
                    f"{self._name}: {LABELS_RECREATED}: what was decided with labels of the old one cannot be "
                    "recomputed. Choose a range after it"
                )
            begin = self._log.ends(Channel.LABELS, self._partition).begin
            if 0 < self._at < begin:
                raise UsageError(
                    f"{self._name}: labels from offset {self._at} on were learned, and are kept from {begin} on only: "
                    "what was decided since cannot be recomputed. Choose a later range"
                )
            self._labels = self._log.read(Channel.LABELS, self._partition, self._at, 2**63 - 1)
        found: list[Record] = []
        for record in self._labels:
            found.append(record)
            if record.offset >= next_label - 1:
                break
        if not found or found[-1].offset != next_label - 1:
            raise StateCorrupt(
                f"{self._name}: the label at offset {next_label - 1} was learned, says a decision, and is not there: "
                "the topic was emptied, or deleted and created again"
            )
        return found


def label_mark(record: Record) -> int | None:
    """The label offset that a decision names, None when it names none."""
    text = next((content for name, content in record.headers if name == LABELS_HEADER), None)
    return int(text) if text is not None and text.isdigit() and len(text) <= _DIGITS_MAX else None
