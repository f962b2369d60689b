"""Raw float32 events to columns.

The value is a little-endian float32 per feature (one, with preset external), or
empty in a label that comes alone. NaN is a missing value where the feature may
be missing. The headers `id` (UTF-8), `y` (`1`, `-1` or `0`) and
`kind` (`label`) say the rest; others are ignored, and of a repeated header the
last counts, as in Kafka's own clients.

Format `columns`, which replays of files use, has the columns of the model instead
of the features, NaN where one is missing, and the id as JSON.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from npstream.codec.columns import Columns
from npstream.codec.draft import Draft
from npstream.codec.event import (
    ID_MAX_BYTES,
    MAGNITUDE_MAX,
    Decoded,
    EventConfig,
    EventId,
    Kind,
    classify,
    shown,
    size_problem,
)
from npstream.codec.mapping import EventReading
from npstream.errors import BadEvent
from npstream.records import Record

_LABELS = {None: 0, b"1": 1, b"-1": -1, b"0": -1}
_PLAIN_LABELS = _LABELS.keys() - {None}


class _Raw(NamedTuple):
    value: bytes | None
    event_id: bytes | None
    y: bytes | None
    kind: bytes | None


class F32Decoder:
    """Decodes batches of raw float32 events."""

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        ready = config.format == "columns"
        features = config.mapping or ()
        self._columns = Columns(None if ready else features)
        # Where columns are ready, whoever made them has refused what must not be missing.
        may_miss = [features != ()] * config.width if ready else [each.may_miss for each in features]
        self._may_miss = np.array(may_miss or [False] * config.width)
        self._names = config.columns if ready else [each.name for each in features] or config.features
        self._id: Callable[[bytes], EventId] = orjson.loads if ready else _text
        self._ids: Callable[[Sequence[bytes]], list[EventId | None] | None] = _json_ids if ready else _texts

    def decode(self, records: Sequence[Record]) -> Decoded:
        """Decode one batch. Never raises for what a record holds."""
        draft = self._try_plain(records) or self._decode_each(records)
        self._condemn_absurd(draft)
        return draft.finish(self._columns, self._config)

    def _try_plain(self, records: Sequence[Record]) -> Draft | None:
        """A batch in which every event has all its features and the headers `id` and `y`, in this order and no others.

        Each step looks at a whole column, which costs half of looking at each event.
        None when any event needs a closer look.
        """
        if not records:
            return None
        _, _, _, values, headers = zip(*records, strict=True)
        try:
            if {*map(len, values)} != {4 * self._config.width} or {*map(len, headers)} != {2}:
                return None
            names, contents = zip(*chain.from_iterable(headers), strict=True)
            ids, labels = self._ids(contents[0::2]), contents[1::2]
            if names != ("id", "y") * len(records) or not {*labels} <= _PLAIN_LABELS:
                return None
        except (TypeError, UnicodeDecodeError):  # a value or an id is missing, or is not text
            return None
        if ids is None:
            return None
        y = np.array([*map(_LABELS.__getitem__, labels)], np.int8)
        return Draft([int(Kind.LABELLED)] * len(records), ids, y, self._matrix(b"".join(values)))

    def _decode_each(self, records: Sequence[Record]) -> Draft:
        """Any batch."""
        draft, rows, parts = Draft.empty(len(records), self._config.width), list[int](), list[bytes]()
        size, max_bytes = 4 * self._config.width, self._config.max_bytes
        for index, (_, _, _, value, headers) in enumerate(records):
            event_id = y = kind = None
            for name, content in headers:
                if name == "id":
                    event_id = content
                elif name == "y":
                    y = content
                elif name == "kind":
                    kind = content
            raw = _Raw(value, event_id, y, kind)
            try:
                draft.put(index, _read(raw, size, max_bytes, self._id))
            except BadEvent as error:
                draft.put_bad(index, error, _awaited(raw, self._id))
                continue
            if value:
                rows.append(index)
                parts.append(value)
        draft.values[rows] = self._matrix(b"".join(parts))
        return draft

    def _matrix(self, values: bytes) -> NDArray[np.float64]:
        # Not every NaN can be cast quietly, and none is an error here.
        with np.errstate(invalid="ignore"):
            return np.frombuffer(values, "<f4").reshape(-1, self._config.width).astype(np.float64)

    def _condemn_absurd(self, draft: Draft) -> None:
        """Events with a number beyond every measure are bad; NaN is, too, where the feature must not be missing."""
        values = draft.values
        # Written so that NaN fails; one comparison for the whole batch in the usual case.
        if np.abs(values).max(initial=0.0) <= MAGNITUDE_MAX:
            return
        missing = np.isnan(values)
        values[missing] = np.nan  # in one form: x86-64 makes it with a sign, arm64 without
        wrong = ~((np.abs(values) <= MAGNITUDE_MAX) | (missing & self._may_miss))
        for index in np.flatnonzero(wrong.any(axis=1)).tolist():
            at = int(np.flatnonzero(wrong[index])[0])
            awaited = None if draft.kinds[index] == Kind.ECHO else draft.ids[index]
            draft.put_bad(index, self._absurd(at, float(values[index, at])), awaited)

    def _absurd(self, at: int, value: float) -> BadEvent:
        name = f"number {at}" if self._names is None else f"number {at}, {self._names[at]}"
        if np.isfinite(value):
            return BadEvent("magnitude", f"{name} is beyond 1e15; scale the feature before sending it")
        return BadEvent("not_finite", f"{name} is NaN or infinite")


def _texts(ids: Sequence[bytes]) -> list[EventId | None] | None:
    """Ids of text; None when one of them has too few or too many bytes. Raises what is raised for no text."""
    sizes = {*map(len, ids)}
    return None if min(sizes) == 0 or max(sizes) > ID_MAX_BYTES else [*map(bytes.decode, ids)]


def _json_ids(ids: Sequence[bytes]) -> list[EventId | None]:
    found: list[EventId | None] = orjson.loads(b"[%b]" % b",".join(ids))
    return found


def _read(raw: _Raw, size: int, max_bytes: int, id_of: Callable[[bytes], EventId]) -> EventReading:
    """All but the numbers, which are looked at for the whole batch."""
    _check_size(raw.value, size, max_bytes)
    text = None if raw.event_id is None else id_of(raw.event_id)
    label = _label(raw.y)
    kind = classify(says_label=_says_label(raw.kind), label=label, has_numbers=bool(raw.value), has_id=text is not None)
    return EventReading(kind, text, [], label)


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
        pass  # reported below, with the bytes themselves
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


def _awaited(raw: _Raw, id_of: Callable[[bytes], EventId]) -> EventId | None:
    """The id of a bad event, unless it cannot be read or the event is a label: nobody waits for those."""
    if raw.event_id is None or raw.kind == b"label" or (not raw.value and raw.y is not None):
        return None
    try:
        return id_of(raw.event_id)
    except BadEvent:
        return None
