"""The door for events: records of one partition in, columns out, order kept."""

from collections.abc import Sequence

import numpy as np

from npstream.codec.document import SchemaDecoder, unframed
from npstream.codec.event import REASONS, Decoded, EventConfig, EventId, Kind, RecordFormat
from npstream.codec.f32_events import F32Decoder
from npstream.codec.json_events import JsonDecoder
from npstream.codec.learn_header import apply_learn_headers
from npstream.codec.screen import unusable
from npstream.errors import BadEvent
from npstream.records import Record

__all__ = ["REASONS", "Decoded", "EventConfig", "EventDecoder", "EventId", "Kind"]


class EventDecoder:
    """Turns records into columns; whatever a record holds, it becomes a row.

    Pure: the rows do not depend on how the records were batched.
    """

    def __init__(self, config: EventConfig) -> None:
        self._format = _FORMATS[config.format](config)
        self._is_framed = config.format == "json_schema"

    def warm_up(self) -> None:
        """Compile what the first large batch would need."""
        if not isinstance(self._format, F32Decoder):
            self._format.warm_up()

    def decode(self, records: Sequence[Record]) -> Decoded:
        """Decode a batch; bad events are reported in `Decoded.errors`, never raised."""
        decoded = self._decode(records)
        apply_learn_headers(records, decoded)
        return decoded

    def _decode(self, records: Sequence[Record]) -> Decoded:
        bad = unusable(records)
        if self._is_framed:
            records, unreadable = unframed(records)
            bad = unreadable | bad
        if not bad:
            return self._format.decode(records)
        good = [index for index in range(len(records)) if index not in bad]
        return _spread(self._format.decode([records[index] for index in good]), good, bad)


_FORMATS: dict[RecordFormat, type[F32Decoder | JsonDecoder | SchemaDecoder]] = {
    "json": JsonDecoder,
    "json_schema": JsonDecoder,
    "f32": F32Decoder,
    "columns": F32Decoder,
    "avro": SchemaDecoder,
    "protobuf": SchemaDecoder,
}


def _spread(decoded: Decoded, good: list[int], bad: dict[int, BadEvent]) -> Decoded:
    """The rows of the good records where they belong, between those of the bad ones."""
    n, d = len(good) + len(bad), decoded.x.shape[1]
    kinds, ids = [int(Kind.BAD)] * n, list[EventId | None]([None]) * n
    x, score, y = np.zeros((n, d), np.float32), np.zeros(n), np.zeros(n, np.int8)
    x[good], score[good], y[good] = decoded.x, decoded.score, decoded.y
    for row, index in enumerate(good):
        kinds[index], ids[index] = decoded.kinds[row], decoded.ids[row]
    errors = {good[row]: error for row, error in decoded.errors.items()} | bad
    bad_ids = {good[row]: identity for row, identity in decoded.bad_ids.items()}
    return Decoded(kinds, ids, x, score, y, errors, bad_ids)
