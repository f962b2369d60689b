"""What an event may say, and the columns a batch of events is decoded into.

The short form of events has these fields; a mapping (`features.Feature`) finds
id, label and features elsewhere, and reads no `x`, `score` and `kind`.

| field   | meaning                                                                     |
|---------|-----------------------------------------------------------------------------|
| `id`    | text (1 to 256 bytes of UTF-8) or integer; needed by labels that come alone |
| `x`     | d numbers, or an object of named features                                   |
| `score` | instead of `x` when the score comes from another model                      |
| `y`     | `1`/`true` target; `-1`/`0`/`false` not; absent: not known yet              |
| `kind`  | `"label"`: learn from this event, publish nothing                           |

Null means absent for every field, and fields not named here are ignored. In any
form the header of `learn_header` makes a label of an event.
"""

from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from npstream.codec.features import DEFAULT_LABEL, Feature, LabelRule, Transform, column_names, contract
from npstream.errors import BadEvent

EventId = str | int

ID_MAX_BYTES = 256
"""Longest event id, in UTF-8: ids are echoed in every decision."""

MAGNITUDE_MAX = 1e15
"""Largest feature or score taken: far beyond any real measurement, and its square is finite in float32."""

_SHOWN_MAX = 60
"""Characters of a value that a detail shows."""

REASONS = {
    "tombstone": "the record has no value",
    "empty": "the value has no bytes",
    "oversize": "the value is longer than events.max_bytes",
    "oversize_key": "the key is longer than 64,000 bytes",
    "bad_headers": "the name of a header is not UTF-8, or all headers together take more than 64,000 bytes",
    "not_json": "the value is not one JSON document",
    "transform_failed": "the function of events.transform raised an error, or returned something other than a dict",
    "not_wire_format": "the value does not begin with a zero byte and the four bytes of a schema's id",
    "wrong_schema_type": "the schema of the value is of another type than events.format",
    "not_of_schema": "the value does not fit the schema it names",
    "not_object": "the document is not an object",
    "no_features": "neither features nor a label are there (with preset external: neither score nor label)",
    "bad_features": "x is neither an array nor an object of the configured features",
    "wrong_length": "x does not have one number per feature",
    "missing_feature": "a feature that must not be missing is absent or null",
    "not_number": "a feature or the score is not a number",
    "not_finite": "a feature or the score is NaN or infinite",
    "magnitude": "a feature or the score is beyond 1e15",
    "bad_category": "a category is neither text nor an integer nor a boolean",
    "bad_flag": "a flag is none of true, false, 1, 0",
    "bad_time": "a time is neither ISO-8601 text nor a number since 1970",
    "bad_label": "the label is none of the values of events.label or labels.label (by default 1, true, -1, 0, false)",
    "no_label": 'kind is "label" and there is no y, or a record of labels.topic has no label',
    "bad_id": "id is neither an integer nor text of 1 to 256 bytes",
    "no_id": "a label came without features and without the id of the event it belongs to",
    "bad_kind": 'kind is not "label"',
}
"""Every reason a dead letter can carry, with its meaning."""


class Kind(IntEnum):
    """What an event asks for."""

    BAD = -1
    OBSERVATION = 0
    """Features alone: decide, publish, wait for the label."""
    LABELLED = 1
    """Features and label: decide, publish, learn."""
    LABEL = 2
    """Id and label: learn from the observation that waits under this id."""
    ECHO = 3
    """A label that brings its features back: learn, publish nothing."""


PlainFormat = Literal["json", "f32"]
"""The formats that npstream writes itself."""

EventFormat = Literal["json", "f32", "avro", "protobuf", "json_schema"]

RecordFormat = EventFormat | Literal["columns"]
"""In a replay of a file, events are also the columns of the model, which its rows were made into before."""

SCHEMA_FORMATS = ("avro", "protobuf")
"""Those that cannot be read without the schema of each event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventConfig:
    """How the events of one topic are written.

    `d` is the number of the model's columns; with `external` it is 0 and every
    event carries one score instead. `features` names the numbers of `x` in the
    model's order; `mapping` finds features by path instead of in `x`. `key` is
    that of the hash of categories. `transform` makes the event that the paths
    read of the one that came.
    """

    d: int
    format: RecordFormat = "json"
    features: tuple[str, ...] | None = None
    mapping: tuple[Feature, ...] | None = None
    id: str = "id"
    label: LabelRule = DEFAULT_LABEL
    key: int = 0
    transform: Transform | None = None
    external: bool = False
    max_bytes: int = 262_144

    def __post_init__(self) -> None:
        assert (self.d == 0) if self.external else (self.d > 0), self
        assert self.features is None or len(self.features) == self.d, self
        assert self.mapping is None or len(column_names(self.mapping)) == self.d, self
        assert self.features is None or self.mapping is None, self
        assert self.format not in ("f32", "columns") or 4 * self.width <= self.max_bytes, self

    @property
    def width(self) -> int:
        """Values carried by an event that is not a bare label: one per feature, before any becomes two columns."""
        if self.mapping is not None and self.format != "columns":
            return len(self.mapping)
        return 1 if self.external else self.d

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the model's columns, None when they have none."""
        return self.features if self.mapping is None else column_names(self.mapping)

    @property
    def contract(self) -> str | None:
        """The hash of the feature list, None when nothing is named."""
        listed = self.features if self.mapping is None else self.mapping
        return None if listed is None else contract(listed)


@dataclass(slots=True)
class Decoded:
    """One batch as columns, one row per record, in record order.

    `kinds` are `Kind` values. `ids` holds None where the event names none. `x`
    is float32[n, d] and `score` float64[n], zero in rows without them; `y` is
    int8[n], 0 when unknown. `errors` says for each bad row what is wrong with
    it; `bad_ids` holds the ids of bad rows that somebody may await a decision
    for: not those of labels.
    """

    kinds: list[int]
    ids: list[EventId | None]
    x: NDArray[np.float32]
    score: NDArray[np.float64]
    y: NDArray[np.int8]
    errors: dict[int, BadEvent]
    bad_ids: dict[int, EventId]


def shown(value: object) -> str:
    """A short, pure-ASCII picture of a value for details, the same on every machine."""
    text = ascii(_outline(value, _SHOWN_MAX))
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "..."


def _outline(value: object, depth: int) -> object:
    """The part of a parsed document that can reach a picture: a level or an item takes a character at least.

    Drawing a document whole would let a deeply nested one exhaust the stack.
    """
    if depth == 0:
        return 0
    if isinstance(value, list):
        return [_outline(item, depth - 1) for item in value[:_SHOWN_MAX]]
    if isinstance(value, dict):
        return {key: _outline(item, depth - 1) for key, item in islice(value.items(), _SHOWN_MAX)}
    return value


def size_problem(value: bytes | None, max_bytes: int) -> BadEvent:
    """Say why a value that is missing, empty or longer than `max_bytes` cannot be used."""
    if value is None:
        return BadEvent("tombstone", "the record has no value; events are never deleted by key")
    if not value:
        return BadEvent("empty", "the value has no bytes")
    return BadEvent("oversize", f"{len(value)} bytes, at most {max_bytes} allowed by events.max_bytes")


def classify(*, says_label: bool, label: int, has_numbers: bool, has_id: bool) -> Kind:
    """What an event asks for, by the fields it brings.

    Raises `BadEvent` when they do not make an event.
    """
    if label == 0:
        if says_label:
            raise BadEvent("no_label", 'kind is "label" and the label is missing')
        if not has_numbers:
            raise BadEvent("no_features", "both the features (or the score) and the label are missing")
        return Kind.OBSERVATION
    if has_numbers:
        return Kind.ECHO if says_label else Kind.LABELLED
    if not has_id:
        raise BadEvent("no_id", "a label that comes alone needs the id of the event it belongs to")
    return Kind.LABEL
