"""Avro values by the schema they were written with, in the terms of JSON.

What Avro has and JSON has not becomes what an event in JSON would carry:
decimals numbers, timestamps and dates ISO text in UTC, UUIDs and enums text,
bytes base64.
"""

from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import orjson
from fastavro._read_py import schemaless_reader as slow_reader
from fastavro.types import Schema as AvroSchema

from npstream.registry.client import Schema, UnusableSchema
from npstream.registry.plain import as_base64, as_iso

DEPTH_MAX = 64
"""Deepest nesting taken of a schema that contains itself: the fast reader would run out of stack without a word."""

_PLAIN_TYPES = frozenset((str, int, float, bool, type(None)))


def compile_avro(schema: Schema, imported: list[Schema]) -> Callable[[bytes], Any]:
    """A reader of values of this schema; `imported` are the schemas it refers to, each after those it needs itself.

    The reader raises whatever it meets. Raises `UnusableSchema`.
    """
    try:
        named: dict[str, Any] = {}
        for each in imported:
            fastavro.parse_schema(orjson.loads(each.text), named_schemas=named)
        parsed = fastavro.parse_schema(orjson.loads(schema.text), named_schemas=named)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, orjson.JSONDecodeError) as error:
        raise UnusableSchema(f"it is not an Avro schema ({error})") from None
    if _has_free_items(parsed, named):
        raise UnusableSchema("an array of it has items that take no bytes, so that five bytes can ask for all memory")
    read = _deep_reader(parsed) if _is_recursive(parsed, named) else _reader(parsed)
    return read if _is_plain(parsed, named) else lambda value: _plain(read(value))


def _reader(parsed: AvroSchema) -> Callable[[bytes], Any]:
    load = fastavro.schemaless_reader

    def read(value: bytes) -> Any:
        source = BytesIO(value)
        content = load(source, parsed, None)
        if source.read(1):
            raise ValueError("bytes are left over")
        return content

    return read


def _deep_reader(parsed: AvroSchema) -> Callable[[bytes], Any]:
    """For schemas that contain themselves: the interpreter notices when its stack ends, compiled code does not."""

    def read(value: bytes) -> Any:
        source = BytesIO(value)
        content = slow_reader(source, parsed, None)
        if source.read(1) or _depth(content) > DEPTH_MAX:
            raise ValueError("bytes are left over, or it is nested too deeply")
        return content

    return read


def _depth(content: Any) -> int:
    deepest, todo = 0, [(content, 1)]
    while todo:
        value, depth = todo.pop()
        deepest = max(deepest, depth)
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        todo += [(each, depth + 1) for each in inner]
    return deepest


def _plain(value: Any) -> Any:
    """A value in the terms of JSON."""
    kind = type(value)
    if kind in _PLAIN_TYPES:
        return value
    if kind is dict:
        return {name: _plain(each) for name, each in value.items()}
    if kind is list:
        return [_plain(each) for each in value]
    return _PLAIN[kind](value)


_PLAIN: dict[type, Callable[[Any], Any]] = {
    Decimal: float,  # the number that the same digits in JSON are
    datetime: as_iso,
    date: date.isoformat,
    time: time.isoformat,
    UUID: str,
    bytes: as_base64,
}


def _types(schema: Any, named: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Every type in a schema, each with the names of the records it is in; a record in itself is not entered again."""
    if isinstance(schema, str) and schema in named:
        if schema in above:
            yield schema, above
            return
        schema = named[schema]
    yield schema, above
    if isinstance(schema, list):
        for branch in schema:
            yield from _types(branch, named, above)
    elif isinstance(schema, dict):
        if "fields" in schema:
            for field in schema["fields"]:
                yield from _types(field["type"], named, (*above, schema["name"]))
        for part in ("items", "values"):
            if part in schema:
                yield from _types(schema[part], named, above)
        if isinstance(schema.get("type"), dict | list):
            yield from _types(schema["type"], named, above)


def _is_recursive(schema: Any, named: dict[str, Any]) -> bool:
    return any(isinstance(each, str) and each in above for each, above in _types(schema, named))


def _is_plain(schema: Any, named: dict[str, Any]) -> bool:
    """Whether everything it can say is in the terms of JSON already."""
    for each, _ in _types(schema, named):
        kind = each.get("type") if isinstance(each, dict) else each
        if kind in ("bytes", "fixed") or (isinstance(each, dict) and "logicalType" in each):
            return False
    return True


def _has_free_items(schema: Any, named: dict[str, Any]) -> bool:
    arrays = (each for each, _ in _types(schema, named) if isinstance(each, dict) and each.get("type") == "array")
    return any(_is_free(array["items"], named, ()) for array in arrays)


def _is_free(schema: Any, named: dict[str, Any], above: tuple[str, ...]) -> bool:
    """Whether a value can take no bytes at all."""
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    if not isinstance(schema, dict):
        return bool(schema == "null")  # a union takes a byte for its branch
    if "fields" in schema:
        inside = (*above, schema["name"])
        return schema["name"] not in above and all(_is_free(each["type"], named, inside) for each in schema["fields"])
    return bool(schema["type"] == "null" or (schema["type"] == "fixed" and schema["size"] == 0))
