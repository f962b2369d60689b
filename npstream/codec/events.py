"""The door for events: records of one partition in, columns out, order kept."""

from collections.abc import Sequence

from npstream.codec.event import REASONS, Decoded, EventConfig, EventId, Kind
from npstream.codec.f32_events import decode_f32
from npstream.codec.json_events import compile_reader, decode_json
from npstream.records import Record

__all__ = ["REASONS", "Decoded", "EventConfig", "EventDecoder", "EventId", "Kind"]


class EventDecoder:
    """Turns records into columns; whatever a record holds, it becomes a row.

    Pure: the rows do not depend on how the records were batched.
    """

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        self._decode = {"json": decode_json, "f32": decode_f32}[config.format]

    def warm_up(self) -> None:
        """Compile what the first large batch would need."""
        if self._config.format == "json":
            compile_reader(self._config)

    def decode(self, records: Sequence[Record]) -> Decoded:
        """Decode a batch; bad events are told in `Decoded.errors`, never raised."""
        return self._decode(records, self._config)
