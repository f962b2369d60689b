"""Records of a labels topic: an id and a label each, found by paths of their own; the rest of them is ignored."""

from collections.abc import Sequence
from dataclasses import dataclass

from npstream.codec.event import EventConfig, EventId
from npstream.codec.features import DEFAULT_LABEL, LabelRule
from npstream.codec.json_events import parsed
from npstream.codec.mapping import Mapping
from npstream.errors import BadEvent
from npstream.records import Record

DEFAULT_ID = "id"

Label = tuple[EventId, int]
"""The id of an observation, and 1 for a target, -1 for a non-target."""


@dataclass(frozen=True, slots=True)
class LabelTopic:
    """A topic that labels come on: JSON, with the id and the label at these paths."""

    name: str
    id: str = DEFAULT_ID
    label: LabelRule = DEFAULT_LABEL


class LabelDecoder:
    """Reads the records of one labels topic. Pure, as `EventDecoder` is."""

    def __init__(self, topic: LabelTopic, max_bytes: int) -> None:
        # A mapping of no features: the paths of id and label are all that is read.
        self._mapping = Mapping(EventConfig(d=0, external=True, mapping=(), id=topic.id, label=topic.label))
        self._max_bytes = max_bytes

    def decode(self, records: Sequence[Record]) -> list[Label | BadEvent]:
        """One entry per record; a bad one is returned, never raised."""
        return [self._label(record) for record in records]

    def _label(self, record: Record) -> Label | BadEvent:
        document = parsed(record.value, self._max_bytes)
        if isinstance(document, BadEvent):
            return document
        try:
            return self._mapping.read_label(document)
        except BadEvent as error:
            return error
