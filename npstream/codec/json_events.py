"""JSON events to columns.

Each event is parsed on its own: joining a batch into one document would let
malformed events merge. A batch of nothing but plain events is taken column by
column (`_try_plain`); in any other the common shapes are taken by a few
conditions (`_decode_each`), and the rest goes through `JsonReader.read`, which
knows every rule and names what is wrong. The numbers of a batch are checked
together.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
import orjson
from numpy.typing import NDArray

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

# Keys compare as numbers do, so true, false, 1.0 and -0.0 find their place too.
_LABELS: dict[float, int] = {1: 1, -1: -1, 0: -1}
_NUMBERS = frozenset((float, int))
_ID_TYPES = frozenset((str, int, type(None)))
_LABEL_TYPES = frozenset((int, type(None)))
_PLAIN_LABELS: Mapping[Any, int] = {**_LABELS, None: 0}
_SCAN_MIN = 32
"""Events for which the compiled scanner is worth its start."""
_SURE_ID_CHARS = ID_MAX_BYTES // 4  # no character takes more than 4 bytes


class _Event(NamedTuple):
    kind: Kind
    event_id: EventId | None
    numbers: list[Any]
    label: int


def decode_json(records: Sequence[Record], config: EventConfig) -> Decoded:
    """Decode one batch. Never raises for what a record holds."""
    values = [record[3] for record in records]
    scanned = _try_scan(values, config) if len(values) >= _SCAN_MIN else None
    if scanned is not None:
        return scanned
    documents = _try_parse(values, config.max_bytes)
    return _try_plain(documents, config) or _decode_each(values, documents, config)


def compile_reader(config: EventConfig) -> None:
    """Have the compiled reader ready, where events of this kind may be read by it."""
    _try_scan([orjson.dumps({"id": "0", "x": [0] * config.d, "y": 1})], config)


def _try_scan(values: list[bytes | None], config: EventConfig) -> Decoded | None:
    """A batch of events as most producers write them, in a third of the time; None when any is written otherwise."""
    if config.features is not None or config.external:
        return None
    # Here and not above: it brings the compiler along, which is no use to those who only read an event or two.
    from npstream.codec.scan import ID_BEGIN, read_events

    if None in values:
        return None
    whole = cast(list[bytes], values)
    sizes = [*map(len, whole)]
    found = read_events(whole, sizes, config.d, _SURE_ID_CHARS) if max(sizes) <= config.max_bytes else None
    if found is None:
        return None
    ids = [value[ID_BEGIN:end].decode() for value, end in zip(whole, found.id_ends.tolist(), strict=True)]
    return plain_batch([*ids], found.x.ravel(), found.y, config.d)


def _try_parse(values: list[bytes | None], max_bytes: int) -> list[Any] | None:
    """The documents of a batch in one go; None when one of the values is none."""
    try:
        sizes = [*map(len, values)]  # type: ignore[arg-type]
        return [*map(orjson.loads, values)] if sizes and max(sizes) <= max_bytes else None  # type: ignore[arg-type]
    except (TypeError, orjson.JSONDecodeError):
        return None


def _try_plain(documents: list[Any] | None, config: EventConfig) -> Decoded | None:
    """A batch in which every event has its features as an array, perhaps a label, and nothing unusual.

    Each step looks at a whole column, which costs half of looking at each event.
    None when any event needs a closer look.
    """
    if documents is None or config.features is not None or config.external or {*map(type, documents)} != {dict}:
        return None
    rows = [document.get("x") for document in documents]
    if (
        {*map(type, rows)} != {list}
        or {*map(len, rows)} != {config.d}
        or True in ["kind" in each for each in documents]
    ):
        return None
    ids, labels = [document.get("id") for document in documents], [document.get("y") for document in documents]
    x = _plain_numbers([*chain.from_iterable(rows)])
    if x is None or not (_plain_ids(ids) and _plain_labels(labels)):
        return None
    return plain_batch(ids, x, np.array([*map(_PLAIN_LABELS.__getitem__, labels)], np.int8), config.d)


def _plain_numbers(numbers: list[Any]) -> NDArray[np.float64] | None:
    """The numbers as an array; None when one of them is none."""
    try:
        x = np.frombuffer(struct.pack(f"{len(numbers)}d", *numbers))  # np.array takes three times as long
    except (struct.error, OverflowError):
        return None
    # Only true and false pass for numbers, as 1 and 0, and to look at each number takes twice as long as to pack it.
    suspicious = bool(((x == 0.0) | (x == 1.0)).any())
    return x if not suspicious or {*map(type, numbers)} <= _NUMBERS else None


def _plain_ids(ids: list[Any]) -> bool:
    kinds = {*map(type, ids)}
    if not kinds <= _ID_TYPES:
        return False
    sizes = {*map(len, ids)} if kinds == {str} else {len(each) for each in ids if type(each) is str}
    return not sizes or (min(sizes) > 0 and max(sizes) <= _SURE_ID_CHARS)


def _plain_labels(labels: list[Any]) -> bool:
    return {*map(type, labels)} <= _LABEL_TYPES and {*labels} <= _PLAIN_LABELS.keys()


def _decode_each(values: list[bytes | None], documents: list[Any] | None, config: EventConfig) -> Decoded:
    """Any batch; `documents` are the parsed values, where all could be parsed."""
    draft, reader = Draft(), JsonReader(config)
    flat: list[Any] = []
    width, max_bytes, source, arrange = config.width, config.max_bytes, reader.source, _arrange(config)
    observation, labelled, label_alone = int(Kind.OBSERVATION), int(Kind.LABELLED), int(Kind.LABEL)
    # Bound once: this loop runs for every event.
    add_kind, add_id, add_label, add_row = draft.kinds.append, draft.ids.append, draft.labels.append, draft.rows.append
    loads, add_numbers = orjson.loads, flat.extend
    for index, value in enumerate(values):
        if value is None or not 0 < len(value) <= max_bytes:
            draft.add_bad(size_problem(value, max_bytes), None)
            continue
        try:
            document = loads(value) if documents is None else documents[index]
        except orjson.JSONDecodeError:
            # The parser's own words change between its versions, and a replay must give the same bytes.
            draft.add_bad(BadEvent("not_json", "the value is not one JSON document in UTF-8"), None)
            continue
        if type(document) is dict and "kind" not in document:
            x, event_id, y = document.get(source), document.get("id"), document.get("y")
            if arrange is not None:
                x = arrange(x)
            if (y is None or (type(y) is int and -1 <= y <= 1)) and (
                (type(event_id) is str and 0 < len(event_id) <= _SURE_ID_CHARS)
                or event_id is None
                or type(event_id) is int
            ):
                if type(x) is list and len(x) == width:
                    add_kind(observation if y is None else labelled)
                    add_id(event_id)
                    add_label(0 if y is None else (y or -1))
                    add_row(index)
                    add_numbers(x)
                    continue
                if x is None and y is not None and event_id is not None:
                    add_kind(label_alone)
                    add_id(event_id)
                    add_label(y or -1)
                    continue
        try:
            event = reader.read(document)
        except BadEvent as error:
            draft.add_bad(error, reader.awaited(document))
            continue
        draft.add(event.kind, event.event_id, event.label)
        if event.kind != Kind.LABEL:
            add_row(index)
            add_numbers(event.numbers)
    return draft.finish(_as_matrix(draft, flat, width), config)


def _arrange(config: EventConfig) -> Callable[[Any], Any] | None:
    """How to make an array of what the event brings; whatever does not fit is left for the reader to name."""
    if config.external:
        return lambda score: None if score is None else [score]
    if config.features is None:
        return None
    names = config.features

    def in_order(x: Any) -> Any:
        try:
            return [x[name] for name in names] if type(x) is dict else x
        except KeyError:
            return x

    return in_order


def _as_matrix(draft: Draft, flat: list[Any], width: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The numbers as float64[rows, width]; events with anything but numbers are condemned."""
    if not set(map(type, flat)) <= _NUMBERS:
        rows, kept = [], []
        for at, row in enumerate(draft.rows):
            numbers = flat[at * width : (at + 1) * width]
            if set(map(type, numbers)) <= _NUMBERS:
                rows.append(row)
                kept.extend(numbers)
            else:
                draft.condemn(row, _not_number(numbers))
        draft.rows, flat = rows, kept
    return np.array(flat, np.float64).reshape(-1, width)


def _not_number(numbers: list[Any]) -> BadEvent:
    at = next(at for at, number in enumerate(numbers) if type(number) not in _NUMBERS)
    return BadEvent("not_number", f"number {at} is {shown(numbers[at])}")


class JsonReader:
    """Reads one parsed document by every rule; whether its numbers are numbers is left to the batch."""

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        self.source = "score" if config.external else "x"

    def read(self, document: object) -> _Event:
        """Raises `BadEvent` with one of `REASONS`."""
        if not isinstance(document, dict):
            raise BadEvent("not_object", f"the document is {shown(document)}")
        event_id, label = _event_id(document), _label(document)
        numbers = self._numbers(document)
        kind = classify(
            says_label=_says_label(document),
            label=label,
            has_numbers=numbers is not None,
            has_id=event_id is not None,
        )
        return _Event(kind, event_id, numbers or [], label)

    def awaited(self, document: object) -> EventId | None:
        """The id of a bad event, unless it cannot be read or the event is a label: nobody waits for those."""
        if not isinstance(document, dict) or document.get("kind") == "label":
            return None
        if document.get(self.source) is None and document.get("y") is not None:
            return None
        try:
            return _event_id(document)
        except BadEvent:
            return None

    def _numbers(self, document: dict[str, Any]) -> list[Any] | None:
        numbers = document.get(self.source)
        if numbers is None:
            return None
        if self._config.external:
            return [numbers]
        if isinstance(numbers, dict):
            numbers = self._named(numbers)
        if not isinstance(numbers, list):
            raise BadEvent("bad_features", f"x is {shown(numbers)}; it must be an array of {self._config.d} numbers")
        if len(numbers) != self._config.d:
            raise BadEvent("wrong_length", f"x has {len(numbers)} numbers, {self._config.d} expected")
        return numbers

    def _named(self, numbers: dict[str, Any]) -> list[Any]:
        features = self._config.features
        if features is None:
            raise BadEvent("bad_features", "x is an object; name its features in events.features")
        try:
            return [numbers[name] for name in features]
        except KeyError:
            missing = [name for name in features if name not in numbers]
            raise BadEvent("missing_feature", f"{len(missing)} missing, the first is {shown(missing[0])}") from None


def _event_id(document: dict[str, Any]) -> EventId | None:
    event_id = document.get("id")
    if event_id is None or type(event_id) is int:
        return event_id
    if type(event_id) is not str or not 0 < len(event_id.encode()) <= ID_MAX_BYTES:
        raise BadEvent("bad_id", f"id is {shown(event_id)}")
    return event_id


def _says_label(document: dict[str, Any]) -> bool:
    kind = document.get("kind")
    if kind is not None and kind != "label":
        raise BadEvent("bad_kind", f'kind is {shown(kind)}; the only kind is "label"')
    return kind is not None


def _label(document: dict[str, Any]) -> int:
    y = document.get("y")
    if y is None:
        return 0
    label = _LABELS.get(y) if isinstance(y, int | float) else None
    if label is None:
        raise BadEvent("bad_label", f"y is {shown(y)}; use 1 for a target, 0 or -1 for the rest")
    return label
