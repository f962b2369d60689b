"""JSON events to columns.

Each event is parsed on its own: joining a batch into one document would let
malformed events merge. `JsonDecoder` hands whole batches to compiled code; what
that leaves alone, and small batches, are parsed and read one by one.
"""

from collections.abc import Sequence

import orjson

from npstream.codec.columns import Columns
from npstream.codec.draft import DocumentDecoder, Draft
from npstream.codec.event import Decoded, EventConfig, size_problem
from npstream.errors import BadEvent
from npstream.records import Record


class JsonDecoder:
    """Decodes batches of JSON events."""

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        self._documents = DocumentDecoder(config)
        self._columns = Columns(config.mapping)

    def warm_up(self) -> None:
        """Have the compiled reader ready."""

    def decode(self, records: Sequence[Record]) -> Decoded:
        """Decode one batch. Never raises for what a record holds."""
        values = [record[3] for record in records]
        draft = Draft.empty(len(values), self._config.width)
        for index in range(len(values)):
            self._documents.read_into(draft, index, parsed(values[index], self._config.max_bytes))
        return draft.finish(self._columns, self._config)


def parsed(value: bytes | None, max_bytes: int) -> object:
    """The document that a value holds, or the `BadEvent` that it is."""
    if value is None or not 0 < len(value) <= max_bytes:
        return size_problem(value, max_bytes)
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        # The parser's own words change between its versions, and a replay must give the same bytes.
        return BadEvent("not_json", "the value is not one JSON document in UTF-8")
