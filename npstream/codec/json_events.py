"""JSON events to columns.

Each event is parsed on its own: joining a batch into one document would let
malformed events merge. Batches go through compiled code first; what it leaves
alone, and small batches, are parsed and read one by one, by every rule.
"""

from collections.abc import Callable, Sequence

import numpy as np
import orjson

from npstream.codec.columns import Columns
from npstream.codec.draft import DocumentDecoder, Draft
from npstream.codec.event import Decoded, EventConfig, size_problem
from npstream.codec.walk import ODD, Walker
from npstream.errors import BadEvent
from npstream.jit import DISABLED
from npstream.records import Record

WALK_MIN = 4
"""Events for which the call of compiled code is worth its price."""


class JsonDecoder:
    """Decodes batches of JSON events."""

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        self._documents = DocumentDecoder(config)
        self._columns = Columns(config.mapping)
        # A function of the user's takes whole documents: then each is parsed.
        self._walker = None if DISABLED or config.transform is not None else Walker(config)

    def warm_up(self) -> None:
        """Have the compiled code ready."""
        self.decode([Record(0, 0, None, b"{}", ())] * WALK_MIN)

    def decode(self, records: Sequence[Record]) -> Decoded:
        """Decode one batch. Never raises for what a record holds."""
        values, max_bytes = [record[3] for record in records], self._config.max_bytes
        texts = [value if value is not None and len(value) <= max_bytes else b"" for value in values]
        return self.decode_texts(texts, lambda index: parsed(values[index], max_bytes))

    def decode_texts(self, texts: list[bytes], document: Callable[[int], object]) -> Decoded:
        """Decode events by their text, or, where that is empty or odd, by their document or its `BadEvent`."""
        if self._walker is None or len(texts) < WALK_MIN:
            draft, left = Draft.empty(len(texts), self._config.width), [*range(len(texts))]
        else:
            draft, left = self._walked(self._walker, texts)
        for index in left:
            self._documents.read_into(draft, index, document(index))
        return draft.finish(self._columns, self._config)

    def _walked(self, walker: Walker, texts: list[bytes]) -> tuple[Draft, list[int]]:
        """What compiled code could read, and which events it left alone."""
        found, ids = walker.walk(texts)
        left = np.flatnonzero(found.kinds == ODD).tolist()
        return Draft(found.kinds.tolist(), ids, found.y, found.values), left


def parsed(value: bytes | None, max_bytes: int) -> object:
    """The document that a value holds, or the `BadEvent` that it is."""
    if value is None or not 0 < len(value) <= max_bytes:
        return size_problem(value, max_bytes)
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        # The parser's own words change between its versions, and a replay must give the same bytes.
        return BadEvent("not_json", "the value is not one JSON document in UTF-8")
