"""A batch in the making: what is known of each event, then everything laid out as columns at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from npstream.codec.columns import Columns
from npstream.codec.event import Decoded, EventConfig, EventId, Kind
from npstream.codec.mapping import EventReading, Mapping
from npstream.codec.transform import LoadedTransform, load_transform
from npstream.errors import BadEvent

_WITHOUT_VALUES = (int(Kind.BAD), int(Kind.LABEL))


@dataclass(slots=True)
class Draft:
    """One row per event: `values` are the raw ones of its features, or its score."""

    kinds: list[int]
    ids: list[EventId | None]
    y: NDArray[np.int8]
    values: NDArray[np.float64]
    errors: dict[int, BadEvent] = field(default_factory=dict)
    bad_ids: dict[int, EventId] = field(default_factory=dict)

    @classmethod
    def empty(cls, count: int, width: int) -> "Draft":
        """Nothing is known yet."""
        return cls([int(Kind.BAD)] * count, [None] * count, np.zeros(count, np.int8), np.zeros((count, width)))

    def put(self, index: int, reading: EventReading) -> None:
        """One good event."""
        kind, self.ids[index], values, self.y[index] = reading
        self.kinds[index] = int(kind)
        if values:
            self.values[index] = values

    def put_bad(self, index: int, error: BadEvent, awaited: EventId | None) -> None:
        """One bad event, whatever was known of it before."""
        self.kinds[index], self.ids[index], self.y[index] = int(Kind.BAD), None, 0
        self.errors[index] = error
        if awaited is not None:
            self.bad_ids[index] = awaited

    def finish(self, columns: Columns, config: EventConfig) -> Decoded:
        """Everything as a batch for the model."""
        count = len(self.kinds)
        if config.external:
            x, score = np.zeros((count, 0), np.float32), np.ascontiguousarray(self.values[:, 0])
        else:
            x, score = columns.fill(self.values), np.zeros(count)
        bare = [index for index, kind in enumerate(self.kinds) if kind in _WITHOUT_VALUES] if self._has_bare() else []
        x[bare], score[bare] = 0.0, 0.0
        return Decoded(self.kinds, self.ids, x, score, self.y, self.errors, self.bad_ids)

    def _has_bare(self) -> bool:
        return any(kind in self.kinds for kind in _WITHOUT_VALUES)


class DocumentDecoder:
    """Parsed documents to columns: for formats whose messages are parsed one by one."""

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        self._mapping = Mapping(config)
        self._transform: LoadedTransform | None = None
        self._columns = Columns(config.mapping)

    def decode(self, documents: Sequence[object]) -> Decoded:
        """One row per document; where there is a `BadEvent` instead of one, it is that row's error."""
        draft = Draft.empty(len(documents), self._config.width)
        for index, document in enumerate(documents):
            self.read_into(draft, index, document)
        return draft.finish(self._columns, self._config)

    def prepared(self, document: object) -> object:
        """The document that the paths read: the one that came, or what the user's function makes of it.

        Raises `StateCorrupt` when the function is gone or another one.
        """
        if self._config.transform is None or isinstance(document, BadEvent):
            return document
        if self._transform is None:  # not before: settings of the past may name a function that is gone
            self._transform = load_transform(self._config.transform)
        return self._transform.apply(document)

    def read_into(self, draft: Draft, index: int, document: object) -> None:
        """One document to its row."""
        came, document = document, self.prepared(document)
        if isinstance(document, BadEvent):
            draft.put_bad(index, document, None if came is document else self._mapping.awaited(came))
            return
        try:
            draft.put(index, self._mapping.read(document))
        except BadEvent as error:
            draft.put_bad(index, error, self._mapping.awaited(document))
