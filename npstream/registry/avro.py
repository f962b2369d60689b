"""Avro values by the schema they were written with, in the terms of JSON.

What Avro has and JSON has not becomes what an event in JSON would carry:
decimals numbers, timestamps and dates ISO text in UTC, UUIDs and enums text,
bytes base64.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from io import BytesIO
from itertools import islice
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
    named: dict[str, Any] = {}
    try:
        for each in imported:
            fastavro.parse_schema(orjson.loads(each.text), named_schemas=named)
        parsed = fastavro.parse_schema(orjson.loads(schema.text), named_schemas=named)
    except Exception as error:  # the library's own kinds of error, and whatever a wrong type makes Python say
        raise UnusableSchema(f"it is not an Avro schema ({error})") from None
    nodes = [node for definition in (parsed, *named.values()) for node in _nodes(definition)]
    if _has_free_items(nodes, named):
        raise UnusableSchema("an array of it has items that take no bytes, so that five bytes can ask for all memory")
    read = _deep_reader(parsed) if _is_recursive(named) else _reader(parsed)
    return read if _is_plain(nodes) else lambda value: _plain(read(value))


def compile_avro_writer(schema: Schema) -> Callable[[Any], bytes]:
    """A writer of documents by this schema. It raises whatever it meets. Raises `UnusableSchema`."""
    try:
        parsed = fastavro.parse_schema(orjson.loads(schema.text))
    except Exception as error:  # the library's own kinds of error, and whatever a wrong type makes Python say
        raise UnusableSchema(f"it is not an Avro schema ({error})") from None

    def write(document: Any) -> bytes:
        target = BytesIO()
        fastavro.schemaless_writer(target, parsed, document)
        return target.getvalue()

    return write


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
    """A value in the terms of JSON; objects are changed in place, which takes a quarter less time."""
    kind = type(value)
    if kind is dict:
        for name, each in value.items():
            if type(each) not in _PLAIN_TYPES:
                value[name] = _plain(each)
        return value
    if kind is list:
        return [each if type(each) in _PLAIN_TYPES else _plain(each) for each in value]
    return value if kind in _PLAIN_TYPES else _PLAIN[kind](value)


_PLAIN: dict[type, Callable[[Any], Any]] = {
    Decimal: float,  # the number that the same digits in JSON are
    datetime: as_iso,
    date: date.isoformat,
    time: time.isoformat,
    UUID: str,
    bytes: as_base64,
}


def _nodes(definition: Any) -> Iterator[Any]:
    """Every type that a definition writes out, itself first; one that it only names is not entered."""
    todo = [definition]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            todo += [field["type"] for field in node.get("fields", ())]
            todo += [node[part] for part in ("items", "values", "type") if part in node]


def _is_recursive(named: Mapping[str, Any]) -> bool:
    """Whether a type contains itself."""
    inner = {
        name: {_name(node) for node in islice(_nodes(each), 1, None)} & named.keys() for name, each in named.items()
    }
    left = set(named)
    while ends := {name for name in left if not inner[name] & left}:
        left -= ends
    return bool(left)


def _name(node: Any) -> str | None:
    name = node.get("name") if isinstance(node, dict) else node
    return name if isinstance(name, str) else None


def _is_plain(nodes: Sequence[Any]) -> bool:
    """Whether every value is in the terms of JSON already."""
    return not any(node in ("bytes", "fixed") or (isinstance(node, dict) and "logicalType" in node) for node in nodes)


def _has_free_items(nodes: Sequence[Any], named: Mapping[str, Any]) -> bool:
    known: dict[str, bool] = {}
    return any(_is_free(node["items"], named, known) for node in nodes if isinstance(node, dict) and "items" in node)


def _is_free(schema: Any, named: Mapping[str, Any], known: dict[str, bool]) -> bool:
    """Whether a value can take no bytes at all; `known` are the records that were looked at, or are being."""
    definition = named.get(schema, schema) if isinstance(schema, str) else schema
    if not isinstance(definition, dict):
        return bool(definition == "null")  # a union takes a byte for its branch
    if "fields" not in definition:
        return bool(definition["type"] == "null" or definition.get("size") == 0)
    name = definition["name"]
    if name not in known:
        known[name] = False  # a record that contains itself takes a byte to end
        known[name] = all(_is_free(field["type"], named, known) for field in definition["fields"])
    return known[name]
