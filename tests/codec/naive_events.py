"""The rules for events once more, one event at a time, slow and plain: the oracle of the fast decoders."""

import json
from typing import Any

import numpy as np

from npstream.codec.decoder import EventConfig
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
        document = json.loads(value.decode("utf-8"), parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise Refused("not_json") from None
    if not isinstance(document, dict):
        raise Refused("not_object")
    return document


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def read(document: dict[str, Any], config: EventConfig) -> Row:
    event_id = read_id(document.get("id"))
    y = read_label(document.get("y"))
    numbers = read_numbers(document, config)
    kind = read_kind(document.get("kind"), event_id, y, numbers is not None)
    checked = check_numbers(numbers or [])
    x = tuple(float(np.float32(number)) for number in checked) if not config.external else ()
    score = checked[0] if config.external and checked else 0.0
    return (kind, event_id, x if x else (0.0,) * config.d, score, y, None, None)


def read_id(event_id: Any) -> Any:
    if event_id is None or (isinstance(event_id, int) and not isinstance(event_id, bool)):
        return event_id
    if isinstance(event_id, str) and 1 <= len(event_id.encode("utf-8")) <= 256:
        return event_id
    raise Refused("bad_id")


def read_label(y: Any) -> int:
    if y is None:
        return 0
    if isinstance(y, bool | int | float):
        if y == 1:
            return 1
        if y in (0, -1):
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
    for number in numbers:
        if abs(number) > 1e15:
            raise Refused("magnitude")
    return [float(number) for number in numbers]


def awaited(document: dict[str, Any], config: EventConfig) -> Any:
    source = document.get("score" if config.external else "x")
    if document.get("kind") == "label" or (source is None and document.get("y") is not None):
        return None
    try:
        return read_id(document.get("id"))
    except Refused:
        return None
