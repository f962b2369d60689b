"""Raw float32 events to columns.

The value is d little-endian float32 (one, with preset external), or empty in a
label that comes alone. The headers `id` (UTF-8), `y` (`1`, `-1` or `0`) and
`kind` (`label`) say the rest; others are ignored, and of a repeated header the
last counts, as in Kafka's own clients.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from npstream.codec.draft import Draft, plain_batch
from npstream.codec.event import (
    ID_MAX_BYTES,
    Decoded,
    EventConfig,
    EventId,
    Kind,
    classify,
    shown,
    size_problem,
)
from npstream.errors import BadEvent
from npstream.records import Record

_LABELS = {None: 0, b"1": 1, b"-1": -1, b"0": -1}
_PLAIN_LABELS = _LABELS.keys() - {None}


class _Raw(NamedTuple):
    value: bytes | None
    event_id: bytes | None
    y: bytes | None
    kind: bytes | None


def decode_f32(records: Sequence[Record], config: EventConfig) -> Decoded:
    """Decode one batch. Never raises for what a record holds."""
    return _try_plain(records, config) or _decode_each(records, config)


def _try_plain(records: Sequence[Record], config: EventConfig) -> Decoded | None:
    """A batch in which every event has all its features and the headers `id` and `y`, in this order and no others.

    Each step looks at a whole column, which costs half of looking at each event.
    None when any event needs a closer look.
    """
    if not records or config.external:
        return None
    _, _, _, values, headers = zip(*records, strict=True)
    try:
        if {*map(len, values)} != {4 * config.d} or {*map(len, headers)} != {2}:
            return None
        names, contents = zip(*chain.from_iterable(headers), strict=True)
        ids, labels = contents[0::2], contents[1::2]
        sizes = {*map(len, ids)}
        if names != ("id", "y") * len(records) or not {*labels} <= _PLAIN_LABELS:
            return None
        texts: list[EventId | None] = [*map(bytes.decode, ids)]
    except (TypeError, UnicodeDecodeError):  # a value or an id is missing, or is not text
        return None
    if min(sizes) == 0 or max(sizes) > ID_MAX_BYTES:
        return None
    y = np.array([*map(_LABELS.__getitem__, labels)], np.int8)
    return plain_batch(texts, np.frombuffer(b"".join(values), "<f4"), y, config.d)


def _decode_each(records: Sequence[Record], config: EventConfig) -> Decoded:
    """Any batch."""
    draft, parts = Draft(), list[bytes]()
    size, max_bytes = 4 * config.width, config.max_bytes
    observation, labelled = int(Kind.OBSERVATION), int(Kind.LABELLED)
    # Bound once: this loop runs for every event.
    add_kind, add_id, add_label, add_row = draft.kinds.append, draft.ids.append, draft.labels.append, draft.rows.append
    add_part = parts.append
    for index, (_, _, _, value, headers) in enumerate(records):
        event_id = y = kind = None
        for name, content in headers:
            if name == "id":
                event_id = content
            elif name == "y":
                y = content
            elif name == "kind":
                kind = content
        try:
            if kind is None and value is not None and len(value) == size and y in _LABELS:
                asked, label = observation if y is None else labelled, _LABELS[y]
                text = None if event_id is None else _text(event_id)
            else:
                asked, text, label = _read(_Raw(value, event_id, y, kind), size, max_bytes)
        except BadEvent as error:
            draft.add_bad(error, _awaited(_Raw(value, event_id, y, kind)))
            continue
        add_kind(asked)
        add_id(text)
        add_label(label)
        if value:
            add_row(index)
            add_part(value)
    return draft.finish(np.frombuffer(b"".join(parts), "<f4").reshape(-1, config.width), config)


def _read(raw: _Raw, size: int, max_bytes: int) -> tuple[Kind, str | None, int]:
    _check_size(raw.value, size, max_bytes)
    text = None if raw.event_id is None else _text(raw.event_id)
    label = _label(raw.y)
    kind = classify(says_label=_says_label(raw.kind), label=label, has_numbers=bool(raw.value), has_id=text is not None)
    return kind, text, label


def _check_size(value: bytes | None, size: int, max_bytes: int) -> None:
    if value is None or len(value) > max_bytes:
        raise size_problem(value, max_bytes)
    if value and len(value) != size:
        raise BadEvent("wrong_length", f"{len(value)} bytes, {size} expected: {size // 4} little-endian float32")


def _text(event_id: bytes) -> str:
    try:
        if 0 < len(event_id) <= ID_MAX_BYTES:
            return event_id.decode()
    except UnicodeDecodeError:
        pass  # told below, with the bytes themselves
    raise BadEvent("bad_id", f"the header id is {shown(event_id)}")


def _label(y: bytes | None) -> int:
    label = _LABELS.get(y)
    if label is None:
        raise BadEvent("bad_label", f"the header y is {shown(y)}; use 1 for a target, 0 or -1 for the rest")
    return label


def _says_label(kind: bytes | None) -> bool:
    if kind is not None and kind != b"label":
        raise BadEvent("bad_kind", f"the header kind is {shown(kind)}; the only kind is label")
    return kind is not None


def _awaited(raw: _Raw) -> str | None:
    """The id of a bad event, unless it cannot be read or the event is a label: nobody waits for those."""
    if raw.event_id is None or raw.kind == b"label" or (not raw.value and raw.y is not None):
        return None
    try:
        return _text(raw.event_id)
    except BadEvent:
        return None
