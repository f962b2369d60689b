"""Values of a topic to documents through a real registry: schemas are fetched once; and when they cannot be."""

from typing import Any

import pytest

from npstream.codec.document import Document
from npstream.errors import BadEvent, Fatal, Retryable, UnknownSchema
from npstream.registry import documents
from npstream.registry.client import RegistryClient, RegistryConfig
from npstream.registry.documents import DocumentReader
from tests.registry import StartRegistry
from tests.registry.server_process import RegistryServer
from tests.registry.values import avro_writer, register


def record(*fields: str) -> dict[str, Any]:
    """A schema with these fields of text."""
    return {"type": "record", "name": "P", "fields": [{"name": name, "type": "string"} for name in fields]}


@pytest.fixture
def server(start_registry: StartRegistry) -> RegistryServer:
    """A registry of the test's own, whose requests can be counted."""
    return start_registry()


def avro_reader(server: RegistryServer) -> DocumentReader:
    """A reader of Avro values."""
    return DocumentReader("avro", RegistryClient(RegistryConfig(server.url)), 1000)


def content(value: bytes | None) -> Any:
    """What a value says; a bad one by its reason and detail."""
    assert isinstance(value, Document)
    found = value.content
    return (found.reason, found.detail) if isinstance(found, BadEvent) else found


def test_three_versions_of_a_schema_in_one_topic(server: RegistryServer) -> None:
    """Each value is read with the schema that it was written with, and each schema is fetched once."""
    writers = [avro_writer(server.url, "pay", record(*fields)) for fields in (("a",), ("b", "a"), ("a", "c"))]
    wanted = [{"a": "1"}, {"b": "2", "a": "1"}, {"a": "1", "c": "3"}]
    values = [write(fields) for _ in range(3) for write, fields in zip(writers, wanted, strict=True)]
    reader, before = avro_reader(server), len(server.requests())

    assert [content(reader.read(value)) for value in values] == wanted * 3
    assert server.requests()[before:] == [f"GET /schemas/ids/{identity}" for identity in (1, 2, 3)]


def test_the_bytes_stay_what_they_are(server: RegistryServer) -> None:
    """Dead letters and exports have the value as it was sent; what no format can read is passed on as it came."""
    value = avro_writer(server.url, "pay", record("a"))({"a": "1"})
    reader = avro_reader(server)

    assert reader.read(value) == value
    for untouched in (None, b"", bytes(1001)):
        assert type(reader.read(untouched)) is type(untouched)


def test_what_no_schema_can_read_is_a_bad_event(server: RegistryServer) -> None:
    """Not in wire format, cut short, of another type: each with its reason."""
    value = avro_writer(server.url, "pay", record("a"))({"a": "12345"})
    other = register(server.url, "proto", 'syntax="proto3"; message A {}', "PROTOBUF")
    reader = avro_reader(server)

    assert content(reader.read(b'{"a":"1"}')) == ("not_wire_format", "its first bytes are 7b 22 61 22 3a")
    assert content(reader.read(b"\x00\x00\x00")) == ("not_wire_format", "its first bytes are 00 00 00")
    assert content(reader.read(value[:-1])) == ("not_of_schema", "it does not fit schema 1")
    assert content(reader.read(b"\x00" + other.to_bytes(4) + b"\x00")) == (
        "wrong_schema_type",
        f"schema {other} is of type PROTOBUF, events.format is avro",
    )


def test_an_unknown_id_is_not_a_bad_event(server: RegistryServer) -> None:
    """It may be known tomorrow, when a replay would read it; then it is read."""
    reader = avro_reader(server)
    with pytest.raises(UnknownSchema, match=rf"schema 1, which the registry {server.url} does not have"):
        reader.read(b"\x00\x00\x00\x00\x01\x02a")

    register(server.url, "pay", '{"type":"record","name":"P","fields":[{"name":"a","type":"string"}]}')

    assert content(reader.read(b"\x00\x00\x00\x00\x01\x02a")) == {"a": "a"}


def test_a_schema_that_cannot_be_used_is_not_a_bad_event_either(server: RegistryServer) -> None:
    """Another version of the library may know it."""
    register(server.url, "pay", '{"type":"unheard of"}')
    register(server.url, "gone", '{"type":"array","items":"Gone"}', references={"Gone": "nobody"})
    reader = avro_reader(server)

    with pytest.raises(UnknownSchema, match="schema 1, which cannot be used: it is not an Avro schema"):
        reader.read(b"\x00\x00\x00\x00\x01a")
    with pytest.raises(UnknownSchema, match="schema 2, which cannot be used: it refers to version 1 of 'nobody'"):
        reader.read(b"\x00\x00\x00\x00\x02a")


def test_schemas_that_refer_to_others(server: RegistryServer) -> None:
    """What a schema imports is fetched with it, in the order in which the parts need each other."""
    register(server.url, "country", '{"type":"enum","name":"Country","symbols":["DE","PT"]}')
    card = '{"type":"record","name":"Card","fields":[{"name":"country","type":"Country"}]}'
    register(server.url, "card", card, references={"Country": "country"})
    payment = '{"type":"record","name":"P","fields":[{"name":"card","type":"Card"},{"name":"of","type":"Country"}]}'
    identity = register(server.url, "pay", payment, references={"Card": "card", "Country": "country"})

    assert content(avro_reader(server).read(b"\x00" + identity.to_bytes(4) + b"\x02\x00")) == {
        "card": {"country": "PT"},
        "of": "DE",
    }


def test_schemas_that_refer_to_each_other(server: RegistryServer) -> None:
    """Not even a registry that lets it happen makes us ask forever."""
    register(server.url, "a", '{"type":"array","items":"B"}', references={"B": "b"})
    identity = register(server.url, "b", '{"type":"array","items":"A"}', references={"A": "a"})

    with pytest.raises(UnknownSchema, match="'A' refers to itself"):
        avro_reader(server).read(b"\x00" + identity.to_bytes(4) + b"a")


def test_known_schemas_need_no_registry(server: RegistryServer) -> None:
    """While the registry is away, values of schemas that were seen before are read; others are worth another try."""
    value = avro_writer(server.url, "pay", record("a"))({"a": "1"})
    reader = avro_reader(server)
    reader.read(value)
    server.stop()

    assert content(reader.read(value)) == {"a": "1"}
    with pytest.raises(Retryable, match="cannot be reached"):
        reader.read(b"\x00\x00\x00\x00\x02a")


def test_the_cache_has_a_bound(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it the oldest schema is forgotten, and fetched again when it is needed."""
    monkeypatch.setattr(documents, "KEPT_MAX", 2)
    values = [avro_writer(server.url, "pay", record(name))({name: "1"}) for name in ("a", "b", "c")]
    reader, before = avro_reader(server), len(server.requests())

    for at in (0, 1, 1, 2, 0):
        reader.read(values[at])

    assert [line[-1] for line in server.requests()[before:]] == ["1", "2", "3", "1"]


def test_wrong_credentials_are_fatal(start_registry: StartRegistry) -> None:
    """Whatever is asked."""
    with pytest.raises(Fatal, match="refuses to let us in"):
        avro_reader(start_registry(login=("a", "b"))).read(b"\x00\x00\x00\x00\x02a")
