"""Small builders for the codec tests."""

from typing import Any

import numpy as np
import orjson

from npstream.codec.decoder import Decoded
from npstream.records import Headers, Record


def record(
    value: bytes | None, offset: int = 0, headers: Headers = (), timestamp_ms: int = 1_700_000_000_000
) -> Record:
    """A record around a value."""
    return Record(offset, timestamp_ms, b"key", value, headers)


def event(**fields: Any) -> Record:
    """A JSON event with these fields."""
    return record(orjson.dumps(fields))


def f32(*numbers: float, **headers: bytes | None) -> Record:
    """A raw float32 event with these numbers and headers."""
    return record(np.array(numbers, "<f4").tobytes(), headers=list(headers.items()))


def rows(decoded: Decoded) -> list[tuple[Any, ...]]:
    """The columns as comparable rows: (kind, id, x, score, y, reason, awaited id)."""
    return [
        (
            int(kind),
            decoded.ids[i],
            tuple(decoded.x[i].tolist()),
            float(decoded.score[i]),
            int(decoded.y[i]),
            decoded.errors[i].reason if i in decoded.errors else None,
            decoded.bad_ids.get(i),
        )
        for i, kind in enumerate(decoded.kinds)
    ]


def no_dict(document: dict[str, Any]) -> list[str]:
    """What no function for `events.transform` may return."""
    return list(document)


def reasons(decoded: Decoded) -> list[str | None]:
    """What is wrong with each row, None for good ones."""
    return [row[5] for row in rows(decoded)]
