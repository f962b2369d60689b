"""The rules for events once more, one event at a time, slow and plain: the oracle of the fast decoders."""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

import numpy as np

from npstream.codec.decoder import EventConfig
from npstream.codec.features import Feature
from npstream.records import Headers

Row = tuple[Any, ...]


class Refused(Exception):
    """The event is bad for this reason."""


def naive_row(value: bytes | None, config: EventConfig) -> Row:
    """(kind, id, x, score, y, reason, awaited id) of one event."""
    zeros = (0.0,) * config.d
    try:
        document = parse(value, config.max_bytes)
    except Refused as refused:
        return (-1, None, zeros, 0.0, 0, str(refused), None)
    try:
        return read(document, config)
    except Refused as refused:
        return (-1, None, zeros, 0.0, 0, str(refused), awaited(document, config))


def naive_f32_row(value: bytes | None, headers: Headers, config: EventConfig) -> Row:
    """The same of one raw float32 event."""
    zeros = (0.0,) * config.d
    found: dict[str, bytes | None] = dict(headers)  # the last of a name counts
    name, y, kind = found.get("id"), found.get("y"), found.get("kind")
    try:
        return read_f32(value, name, y, kind, config)
    except Refused as refused:
        alone = not value and y is not None
        waits = name is not None and kind != b"label" and not alone and is_text(name)
        return (-1, None, zeros, 0.0, 0, str(refused), name.decode() if name is not None and waits else None)


def read_f32(value: bytes | None, name: bytes | None, y: bytes | None, kind: bytes | None, config: EventConfig) -> Row:
    width = 1 if config.external else config.d
    if value is None:
        raise Refused("tombstone")
    if len(value) > config.max_bytes:
        raise Refused("oversize")
    if value and len(value) != 4 * width:
        raise Refused("wrong_length")
    if name is not None and not is_text(name):
        raise Refused("bad_id")
    if y not in (None, b"1", b"-1", b"0"):
        raise Refused("bad_label")
    if kind not in (None, b"label"):
        raise Refused("bad_kind")
    event_id = None if name is None else name.decode()
    label = 0 if y is None else 1 if y == b"1" else -1
    what = read_kind(None if kind is None else "label", event_id, label, bool(value))
    numbers = [float(number) for number in np.frombuffer(value, "<f4")]
    for number in numbers:
        if not np.isfinite(number):
            raise Refused("not_finite")
        if abs(number) > 1e15:
            raise Refused("magnitude")
    x = tuple(numbers) if numbers and not config.external else (0.0,) * config.d
    return (what, event_id, x, numbers[0] if numbers and config.external else 0.0, label, None, None)


def is_text(name: bytes) -> bool:
    try:
        return 0 < len(name) <= 256 and name.decode() is not None
    except UnicodeDecodeError:
        return False


def parse(value: bytes | None, max_bytes: int) -> dict[str, Any]:
    if value is None:
        raise Refused("tombstone")
    if len(value) == 0:
        raise Refused("empty")
    if len(value) > max_bytes:
        raise Refused("oversize")
    try:
        document = json.loads(
            value.decode("utf-8"), parse_constant=refuse_constant, parse_int=read_integer, parse_float=read_float
        )
        json.dumps(document, ensure_ascii=False).encode()  # fails for half of a surrogate pair, as parsers do
    except (ValueError, RecursionError):
        raise Refused("not_json") from None
    if not isinstance(document, dict):
        raise Refused("not_object")
    return document


def read_integer(text: str) -> int | float:
    """Integers have 64 bits, as in most parsers; larger ones are doubles."""
    number = int(text)
    return number if -(2**63) <= number < 2**64 else float(text)


def read_float(text: str) -> float:
    """A number beyond all doubles is no number."""
    if math.isinf(float(text)):
        raise ValueError(text)
    return float(text)


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def read(document: dict[str, Any], config: EventConfig) -> Row:
    event_id = read_id(look(document, config.id))
    y = read_label(look(document, config.label.path), config)
    if config.mapping is not None:
        return read_mapped(document, event_id, y, config)
    numbers = read_numbers(document, config)
    kind = read_kind(document.get("kind"), event_id, y, numbers is not None)
    checked = check_numbers(numbers or [])
    x = tuple(float(np.float32(number)) for number in checked) if not config.external else ()
    score = checked[0] if config.external and checked else 0.0
    return (kind, event_id, x if x else (0.0,) * config.d, score, y, None, None)


def look(document: Any, path: str) -> Any:
    """What a plain path of names and [n] leads to."""
    for step in path.replace("[", ".[").split("."):
        if step.startswith("["):
            document = (
                document[int(step[1:-1])] if isinstance(document, list) and int(step[1:-1]) < len(document) else None
            )
        else:
            document = document.get(step) if isinstance(document, dict) else None
    return document


def read_mapped(document: dict[str, Any], event_id: Any, y: int, config: EventConfig) -> Row:
    features = config.mapping or ()
    found = [look(document, feature.path) for feature in features]
    if all(value is None for value in found):
        return (read_kind(None, event_id, y, False), event_id, (0.0,) * config.d, 0.0, y, None, None)
    for feature, value in zip(features, found, strict=True):
        if value is None and feature.kind in ("number", "time") and feature.missing == "refuse":
            raise Refused("missing_feature")
    kind = read_kind(None, event_id, y, True)
    x = [
        column
        for feature, value in zip(features, found, strict=True)
        for column in read_feature(feature, value, config)
    ]
    return (kind, event_id, tuple(x), 0.0, y, None, None)


def read_feature(feature: Feature, value: Any, config: EventConfig) -> list[float]:
    """The columns of one feature; sine, cosine and logarithm by the C library, close and not equal to the bit."""
    if value is None:
        return [math.nan] * len(feature.columns)
    if feature.kind == "number":
        (number,) = check_numbers([value])
        scaled = math.copysign(math.log1p(abs(number)), number) if feature.scale == "log" else number
        return [float(np.float32(scaled))]
    if feature.kind == "flag":
        if value not in (0, 1):
            raise Refused("bad_flag")
        return [1.0 if value else 0.0]
    if feature.kind == "category":
        if isinstance(value, float | list | dict):
            raise Refused("bad_category")
        return [
            float(code_of(str(value).lower().encode() if isinstance(value, bool) else str(value).encode(), config.key))
        ]
    period = {"day": 86400.0, "week": 604800.0, "year": 31556952.0}[feature.cycle or ""]
    angle = 2 * math.pi * ((read_time(value) - (345600.0 if feature.cycle == "week" else 0.0)) % period) / period
    return [float(np.float32(math.sin(angle))), float(np.float32(math.cos(angle)))]


def read_time(value: Any) -> float:
    """Seconds since 1970."""
    if isinstance(value, str):
        if not re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", value, re.ASCII):
            raise Refused("bad_time")
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise Refused("bad_time") from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool | list | dict) or abs(value) >= 1e20:
        raise Refused("bad_time")
    units = 0 if abs(value) < 1e11 else 1 if abs(value) < 1e14 else 2 if abs(value) < 1e17 else 3
    return float(value / 1000**units)


def code_of(text: bytes, key: int) -> int:
    """The keyed hash of a category, by numbers without bounds that are cut to 64 bits."""

    def mix(h: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            h = ((h ^ h >> 33) * factor) % 2**64
        return h ^ h >> 33

    h = 0xCBF29CE484222325 ^ mix(key)
    for byte in text:
        h = ((h ^ byte) * 0x100000001B3) % 2**64
    return mix(h) // 2**40


def read_id(event_id: Any) -> Any:
    if event_id is None or (isinstance(event_id, int) and not isinstance(event_id, bool)):
        return event_id
    if isinstance(event_id, str) and 1 <= len(event_id.encode("utf-8")) <= 256:
        return event_id
    raise Refused("bad_id")


def read_label(y: Any, config: EventConfig) -> int:
    if y is None:
        return 0
    if isinstance(y, bool | int | float | str):
        if y in config.label.target:
            return 1
        if y in config.label.non_target:
            return -1
    raise Refused("bad_label")


def read_numbers(document: dict[str, Any], config: EventConfig) -> list[Any] | None:
    if config.external:
        return None if document.get("score") is None else [document["score"]]
    x = document.get("x")
    if x is None:
        return None
    if isinstance(x, dict) and config.features is not None:
        for name in config.features:
            if name not in x:
                raise Refused("missing_feature")
        x = [x[name] for name in config.features]
    if not isinstance(x, list):
        raise Refused("bad_features")
    if len(x) != config.d:
        raise Refused("wrong_length")
    return x


def read_kind(kind: Any, event_id: Any, y: int, has_numbers: bool) -> int:
    if kind is not None and kind != "label":
        raise Refused("bad_kind")
    if kind == "label" and y == 0:
        raise Refused("no_label")
    if has_numbers:
        return 3 if kind == "label" else (0 if y == 0 else 1)
    if y == 0:
        raise Refused("no_features")
    if event_id is None:
        raise Refused("no_id")
    return 2


def check_numbers(numbers: list[Any]) -> list[float]:
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise Refused("not_number")
        if abs(number) > 1e15:
            raise Refused("magnitude")
    return [float(number) for number in numbers]


def awaited(document: dict[str, Any], config: EventConfig) -> Any:
    if config.mapping is not None:
        alone = all(look(document, feature.path) is None for feature in config.mapping)
    else:
        alone = document.get("score" if config.external else "x") is None
        if document.get("kind") == "label":
            return None
    if alone and look(document, config.label.path) is not None:
        return None
    try:
        return read_id(look(document, config.id))
    except Refused:
        return None
