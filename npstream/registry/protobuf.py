"""Protobuf values by the .proto text they were written with, in the terms of JSON.

A registry keeps .proto text, and Protobuf's own library reads compiled
descriptors only: so protoc compiles the text, once per schema, in a process of
its own. Field names are those of the text. A field without a value is absent
where the schema shows it (`optional`, messages, proto2) and its zero elsewhere.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from npstream.registry.client import Schema, UnusableSchema
from npstream.registry.plain import as_base64, as_iso

_COMPILE_TIMEOUT_S = 60.0
_MAIN = "npstream-value.proto"
_INDEXES_MAX = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

ToPlain = Callable[[Any], Any]


def compile_protobuf(schema: Schema, imported: Iterable[tuple[str, Schema]]) -> Callable[[bytes], Any]:
    """A reader of values of this schema, message indexes first; `imported` are the files it imports, by name.

    The reader raises whatever it meets. Raises `UnusableSchema`.
    """
    file = _compile(schema.text, {name: each.text for name, each in imported})
    readers: dict[tuple[int, ...], Callable[[bytes], Any]] = {}

    def read(value: bytes) -> Any:
        path, begin = _message_path(value)
        reader = readers.get(path)
        if reader is None:
            reader = readers[path] = _reader(_message_at(file, path))
        return reader(value[begin:])

    return read


def _compile(text: str, imported: dict[str, str]) -> FileDescriptor:
    with TemporaryDirectory(prefix="npstream-proto-") as folder:
        for name, content in {**imported, _MAIN: text}.items():
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise UnusableSchema(f"it imports {name!r}, which is not a plain path")
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        compiled = Path(folder, "npstream-value.bin")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
        command += [f"--descriptor_set_out={compiled}", _MAIN]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise UnusableSchema(f"protoc did not compile it within {_COMPILE_TIMEOUT_S:g} s") from None
        if done.returncode != 0:
            raise UnusableSchema(f"protoc cannot compile it: {' '.join(done.stderr.split())[:500]}")
        files = FileDescriptorSet.FromString(compiled.read_bytes())
    pool = DescriptorPool()
    for each in files.file:
        pool.Add(each)
    return pool.FindFileByName(_MAIN)


def _message_path(value: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of the file a value is: the place of each message in the one around it; and where it begins."""
    if value[:1] == b"\0":
        return (0,), 1  # the short form of the commonest path
    count, at = _varint(value, 0)
    if not 0 < count <= _INDEXES_MAX:
        raise ValueError("not a path of a message")
    path = []
    for _ in range(count):
        index, at = _varint(value, at)
        path.append(index)
    return tuple(path), at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint, and where it ends."""
    number = 0
    for shift in range(0, 35, 7):
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise ValueError("a number too long")


def _message_at(file: FileDescriptor, path: tuple[int, ...]) -> Descriptor:
    if min(path) < 0:
        raise IndexError(path)
    messages: list[Descriptor] = list(file.message_types_by_name.values())
    found = messages[path[0]]
    for index in path[1:]:
        found = found.nested_types[index]
    return found


def _reader(message: Descriptor) -> Callable[[bytes], Any]:
    parse, plain = GetMessageClass(message).FromString, _to_plain(message, {})
    return lambda value: plain(parse(value))


def _to_plain(message: Descriptor, known: dict[str, ToPlain]) -> ToPlain:
    """How a message of this type becomes an object; `known` are those in the making, for types in themselves."""
    if message.full_name in _WELL_KNOWN:
        return _WELL_KNOWN[message.full_name]
    if message.full_name in known:
        return known[message.full_name]
    fields: list[tuple[str, bool, ToPlain | None]] = []

    def convert(value: Any) -> dict[str, Any]:
        content = {}
        for name, has_presence, plain in fields:
            if not has_presence or value.HasField(name):
                found = getattr(value, name)
                content[name] = found if plain is None else plain(found)
        return content

    known[message.full_name] = convert
    fields += [(field.name, field.has_presence, _field(field, known)) for field in message.fields]
    return convert


def _field(field: FieldDescriptor, known: dict[str, ToPlain]) -> ToPlain | None:
    """How the content of a field becomes plain; None when it is already."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        one = _single(message.fields_by_name["value"], known) or _same
        return lambda items: {_key(key): one(items[key]) for key in items}
    single = _single(field, known)
    if not field.is_repeated:
        return single
    return list if single is None else lambda items: [single(each) for each in items]


def _single(field: FieldDescriptor, known: dict[str, ToPlain]) -> ToPlain | None:
    if field.message_type is not None:
        return _to_plain(field.message_type, known)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, number)
    return as_base64 if field.type == FieldDescriptor.TYPE_BYTES else None


def _same(value: Any) -> Any:
    return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _value(value: Any) -> Any:
    """A google.protobuf.Value: any JSON."""
    kind = value.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    content = getattr(value, kind)
    return _WELL_KNOWN[content.DESCRIPTOR.full_name](content) if kind in ("struct_value", "list_value") else content


_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
_WELL_KNOWN: dict[str, ToPlain] = {
    **{f"google.protobuf.{name}Value": lambda wrapper: wrapper.value for name in _WRAPPERS},
    "google.protobuf.BytesValue": lambda wrapper: as_base64(wrapper.value),
    "google.protobuf.Timestamp": lambda moment: as_iso(
        _EPOCH + timedelta(seconds=moment.seconds, microseconds=moment.nanos // 1000)
    ),
    "google.protobuf.Duration": lambda duration: duration.seconds + duration.nanos / 1e9,
    "google.protobuf.Struct": lambda struct: {key: _value(struct.fields[key]) for key in struct.fields},
    "google.protobuf.ListValue": lambda items: [_value(each) for each in items.values],
    "google.protobuf.Value": _value,
}
