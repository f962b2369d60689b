"""Events found by their ids in a large topic, at the price of a look at each.

A first look finds every record that may be one of them: compiled code that reads
the id alone, or the headers of raw vectors. What it finds, and what it leaves alone
(a bad event, escapes in an id), is decoded by every rule.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from npstream.codec.decoder import EventConfig, EventDecoder, EventId, Kind
from npstream.codec.document import FRAME_BYTES, Document
from npstream.codec.features import Feature, steps_of
from npstream.codec.json_events import WALK_MIN
from npstream.codec.mapping import find
from npstream.codec.walk import ODD, Walker
from npstream.jit import DISABLED
from npstream.records import Record

_WHOLE_DIGITS_MAX = 4_000
"""Python refuses to read an integer of more digits, and so does every reader of events."""

FirstLook = Callable[[Sequence[Record]], list[int]]
"""Which records may be wanted; never leaves out one that is."""


class Found(NamedTuple):
    """A record with a wanted id. `name` is the id as text, `y` the label that it brings, 0 for none."""

    record: Record
    name: str
    kind: Kind
    y: int


class EventFinder:
    """Finds the events of some ids. An id is meant by its text: 17 and "17" are one here."""

    def __init__(self, config: EventConfig, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._decoder = EventDecoder(config)
        self._first_look = _first_look(config, self._names)

    def find(self, records: Sequence[Record]) -> list[Found]:
        """What is there of them, in order. A bad event counts unless its id cannot be read."""
        suspects = [records[index] for index in self._first_look(records)]
        if not suspects:
            return []
        decoded = self._decoder.decode(suspects)
        ids = [decoded.bad_ids.get(row, own) for row, own in enumerate(decoded.ids)]
        return [
            Found(suspects[row], name, Kind(decoded.kinds[row]), int(decoded.y[row]))
            for row, own in enumerate(ids)
            if own is not None and (name := str(own)) in self._names
        ]


def _first_look(config: EventConfig, names: frozenset[str]) -> FirstLook:
    if config.format == "f32":
        contents = {name.encode() for name in names}
        return lambda records: [index for index, record in enumerate(records) if _is_named(record, contents)]
    ids: set[EventId] = {*names, *map(int, filter(_is_whole, names))}
    if config.transform is not None or DISABLED:
        return lambda records: [*range(len(records))]
    if config.format in ("avro", "protobuf"):
        steps = steps_of(config.id)
        return lambda records: [at for at, record in enumerate(records) if _content_id(record, steps) in ids]
    return _WalkedIds(config, ids).look


def _is_named(record: Record, contents: Collection[bytes]) -> bool:
    return any(name == "id" and content in contents for name, content in record.headers)


def _is_whole(name: str) -> bool:
    digits = name.removeprefix("-")
    plain = digits.isascii() and digits.isdecimal() and len(digits) < _WHOLE_DIGITS_MAX
    return plain and str(int(name)) == name


def _content_id(record: Record, steps: tuple[str | int, ...]) -> EventId | None:
    found = find(record.value.content, steps) if isinstance(record.value, Document) else None
    return found if type(found) in (str, int) else None


class _WalkedIds:
    """The ids of JSON events, read by the compiled code that reads whole events elsewhere."""

    def __init__(self, config: EventConfig, ids: Collection[EventId]) -> None:
        self._ids = ids
        self._max_bytes = config.max_bytes
        self._skipped = FRAME_BYTES if config.format == "json_schema" else 0
        # The id is its only feature, so that nothing else is taken for one.
        alone = Feature(name="id", kind="category", path=config.id, buckets=2)
        self._walker = Walker(
            EventConfig(d=1, mapping=(alone,), id=config.id, label=config.label, max_bytes=config.max_bytes)
        )

    def look(self, records: Sequence[Record]) -> list[int]:
        if len(records) < WALK_MIN:
            return [*range(len(records))]
        walked, ids = self._walker.walk([self._text(record.value) for record in records])
        odd = (walked.kinds == ODD).tolist()
        wanted = self._ids
        return [index for index, own in enumerate(ids) if odd[index] or own in wanted]

    def _text(self, value: bytes | None) -> bytes:
        text = b"" if value is None else value[self._skipped :]
        return text if len(text) <= self._max_bytes else b""
