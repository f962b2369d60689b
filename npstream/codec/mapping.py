"""One parsed document to one event, by every rule: slow and obvious, and the judge of what is bad and why.

The documents are what `orjson.loads` gives: dict, list, str, int, float, bool
and None; whatever else a message format holds must be made into these first.

A mapped event has its features at their paths, anywhere. The short form has
them in `x`, an array or an object of names; the score of another model is in
`score`. What comes out are raw values, one per feature, NaN where one is
missing; `columns.fill` makes the model's columns of them.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from npstream.codec.categories import canonical_text, code_of, start_of_key
from npstream.codec.event import ID_MAX_BYTES, MAGNITUDE_MAX, EventConfig, EventId, Kind, classify, shown
from npstream.codec.features import Feature, Steps, steps_of
from npstream.codec.times import TIME_LIMIT, seconds_of_number, seconds_of_text
from npstream.errors import BadEvent

_NUMBERS = (float, int)


class EventReading(NamedTuple):
    """What one event says: `values` has a raw value per feature (per score), or nothing in a label that comes alone."""

    kind: Kind
    event_id: EventId | None
    values: list[float]
    label: int


class Mapping:
    """Reads documents as one `EventConfig` says."""

    def __init__(self, config: EventConfig) -> None:
        self._config = config
        self._id = steps_of(config.id)
        self._label = steps_of(config.label.path)
        self._signs = config.label.signs
        self._source = "score" if config.external else "x"
        self._raw: Callable[[dict[str, Any]], list[Any] | None] = self._mapped
        if config.mapping is None:
            self._raw = self._score if config.external else self._x
        self._features = [(feature, steps_of(feature.path)) for feature in config.mapping or ()]
        self._key = start_of_key(config.key)
        self._of_kind = {"number": _number, "category": self._category, "flag": _flag, "time": _time}
        self._readers = [(each, each.kind == "number", self._of_kind[each.kind]) for each in config.mapping or ()]

    def read(self, document: object) -> EventReading:
        """The event that a parsed document holds. Raises `BadEvent` with one of `REASONS`, naming feature and path."""
        if not isinstance(document, dict):
            raise BadEvent("not_object", f"the document is {shown(document)}")
        event_id, label = self._event_id(document), self._sign(document)
        raw = self._raw(document)
        kind = classify(
            says_label=self._says_label(document),
            label=label,
            has_numbers=raw is not None,
            has_id=event_id is not None,
        )
        return EventReading(kind, event_id, [] if raw is None else self._values(raw), label)

    def awaited(self, document: object) -> EventId | None:
        """The id of a bad event, unless it cannot be read or the event is a label: nobody waits for those."""
        if not isinstance(document, dict):
            return None
        if self._config.mapping is None:
            if document.get("kind") == "label":
                return None
            alone = document.get(self._source) is None
        else:
            alone = self._found(document) is None
        if alone and find(document, self._label) is not None:
            return None
        try:
            return self._event_id(document)
        except BadEvent:
            return None

    def _event_id(self, document: dict[str, Any]) -> EventId | None:
        return self.id_of(find(document, self._id))

    def id_of(self, event_id: Any) -> EventId | None:
        """The id that a value is. Raises `BadEvent`."""
        if event_id is None or type(event_id) is int:
            return event_id
        if type(event_id) is not str or not 0 < len(event_id.encode()) <= ID_MAX_BYTES:
            raise BadEvent("bad_id", f"{self._config.id} is {shown(event_id)}")
        return event_id

    def _sign(self, document: dict[str, Any]) -> int:
        return self.label_of(find(document, self._label))

    def label_of(self, y: Any) -> int:
        """1 or -1 by the label's rule, 0 when it is not known yet. Raises `BadEvent`."""
        if y is None:
            return 0
        sign = self._signs.get(y) if isinstance(y, int | float | str) else None
        if sign is None:
            rule = self._config.label
            known = f"a target is {_listed(rule.target)}, a non-target {_listed(rule.non_target)}"
            raise BadEvent("bad_label", f"{rule.path} is {shown(y)}; {known}")
        return sign

    def _says_label(self, document: dict[str, Any]) -> bool:
        """In the short form only: a mapped event is somebody else's, and may call anything `kind`."""
        kind = document.get("kind") if self._config.mapping is None else None
        if kind is not None and kind != "label":
            raise BadEvent("bad_kind", f'kind is {shown(kind)}; the only kind is "label"')
        return kind is not None

    # What an event brings for each feature, still as it is written; None when it brings none.

    def _score(self, document: dict[str, Any]) -> list[Any] | None:
        score = document.get("score")
        return None if score is None else [score]

    def _x(self, document: dict[str, Any]) -> list[Any] | None:
        x, d, names = document.get("x"), self._config.d, self._config.features
        if x is None:
            return None
        if isinstance(x, dict):
            if names is None:
                raise BadEvent("bad_features", "x is an object; name its features in events.features")
            missing = [name for name in names if name not in x]
            if missing:
                raise BadEvent("missing_feature", f"{shown(missing[0])}: x has {len(missing)} of {d} names less")
            return [x[name] for name in names]
        if not isinstance(x, list):
            raise BadEvent("bad_features", f"x is {shown(x)}; it must be an array of {d} numbers")
        if len(x) != d:
            raise BadEvent("wrong_length", f"x has {len(x)} numbers, {d} expected")
        return x

    def _found(self, document: dict[str, Any]) -> list[Any] | None:
        found = [find(document, steps) for _, steps in self._features]
        return None if found.count(None) == len(found) else found

    def _mapped(self, document: dict[str, Any]) -> list[Any] | None:
        found = self._found(document)
        if found is not None and None in found:
            for (feature, _), value in zip(self._features, found, strict=True):
                if value is None and not feature.may_miss:
                    raise _absent(feature)
        return found

    # Raw values.

    def _values(self, raw: list[Any]) -> list[float]:
        if self._config.mapping is None:
            return [
                float(value) if _is_number(value) else _refuse(value, self._place(at)) for at, value in enumerate(raw)
            ]
        return [
            value if is_number and type(value) is float and abs(value) <= MAGNITUDE_MAX else read(feature, value)
            for (feature, is_number, read), value in zip(self._readers, raw, strict=True)
        ]

    def value_of(self, feature: Feature, value: Any) -> float:
        """The raw value of one feature, NaN where it is missing. Raises `BadEvent`."""
        if value is None and not feature.may_miss:
            raise _absent(feature)
        return self._of_kind[feature.kind](feature, value)

    def _place(self, at: int) -> str:
        """What a number of the short form is called."""
        if self._config.external:
            return "score"
        names = self._config.features
        return f"x[{at}]" if names is None else f"x.{names[at]}"

    def _category(self, feature: Feature, value: Any) -> float:
        if value is None:
            return math.nan
        text = canonical_text(value)
        if text is None:
            raise BadEvent("bad_category", f"{_name(feature)} is {shown(value)}; use text, an integer or a boolean")
        return float(code_of(text, self._key))


def find(document: object, steps: Steps) -> Any:
    """What a path leads to; None when it leads nowhere."""
    for step in steps:
        if isinstance(step, str):
            document = document.get(step) if isinstance(document, dict) else None
        else:
            document = document[step] if isinstance(document, list) and step < len(document) else None
    return document


def _number(feature: Feature, value: Any) -> float:
    if _is_number(value):
        return float(value)
    # NaN, which formats other than JSON have, is missing as null is.
    if value is None or (value != value and feature.may_miss):
        return math.nan
    return _refuse(value, _name(feature))


def _flag(feature: Feature, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool | int | float) and value in (0, 1):
        return float(value == 1)
    raise BadEvent("bad_flag", f"{_name(feature)} is {shown(value)}; it must be true, false, 1 or 0")


def _time(feature: Feature, value: Any) -> float:
    seconds = math.nan
    if value is None:
        return seconds
    if isinstance(value, str):
        seconds = seconds_of_text(value)
    elif type(value) in _NUMBERS and abs(value) < TIME_LIMIT:
        seconds = seconds_of_number(float(value))
    elif value != value and feature.may_miss:
        return math.nan
    if math.isnan(seconds):
        raise BadEvent(
            "bad_time", f"{_name(feature)} is {shown(value)}; it must be ISO-8601 text or a number since 1970"
        )
    return seconds


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS and abs(value) <= MAGNITUDE_MAX


def _refuse(value: Any, place: str) -> NoReturn:
    if type(value) not in _NUMBERS:
        raise BadEvent("not_number", f"{place} is {shown(value)}")
    if isinstance(value, int) or math.isfinite(value):
        raise BadEvent("magnitude", f"{place} is beyond 1e15; scale the feature before sending it")
    raise BadEvent("not_finite", f"{place} is NaN or infinite")


def _absent(feature: Feature) -> BadEvent:
    return BadEvent("missing_feature", f"{feature.name}: {feature.path} is absent or null")


def _name(feature: Feature) -> str:
    return f"{feature.name}: {feature.path}"


def _listed(values: tuple[object, ...]) -> str:
    return " or ".join(shown(value) for value in values)
