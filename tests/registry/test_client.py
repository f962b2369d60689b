"""The registry's client on a real server: what it finds, and one clear message for each way it can fail."""

from pathlib import Path

import pytest

from npstream.errors import Fatal, Retryable
from npstream.registry.client import NotRegistered, RegistryClient, RegistryConfig, SchemaReference
from tests.registry import Registry, StartRegistry
from tests.registry.values import register
from tests.security.certificates import make_authority, make_keystore

SCHEMA = '{"type":"record","name":"Payment","fields":[{"name":"id","type":"string"}]}'


@pytest.fixture
def client(registry: Registry) -> RegistryClient:
    """A client of the registry that all tests share."""
    return RegistryClient(RegistryConfig(registry.url))


def test_schemas_are_found_by_id_and_by_version(client: RegistryClient, topic_prefix: str) -> None:
    """What was registered comes back, with what it refers to."""
    inner, outer = f"{topic_prefix}inner", f"{topic_prefix}outer"
    register(client.url, inner, SCHEMA)
    identity = register(client.url, outer, '{"type":"array","items":"Payment"}', references={"Payment": inner})

    found = client.schema(identity)

    assert (found.kind, found.references) == ("AVRO", (SchemaReference("Payment", inner, 1),))
    assert client.version(inner, 1).text.replace(" ", "") == SCHEMA
    assert client.schema(register(client.url, f"{topic_prefix}p", 'syntax="proto3";', "PROTOBUF")).kind == "PROTOBUF"


def test_registering_twice_gives_one_id(client: RegistryClient, topic_prefix: str) -> None:
    """`init` may run again; and a schema is found whatever its white space."""
    subject = f"{topic_prefix}decisions"
    assert client.find(subject, SCHEMA) is None

    identity = client.register(subject, SCHEMA)

    assert client.register(subject, SCHEMA) == identity
    assert client.find(subject, SCHEMA.replace(",", ", ")) == identity
    assert client.find(subject, SCHEMA.replace("Payment", "Order")) is None


def test_what_is_not_there(client: RegistryClient) -> None:
    """An id or a version that nobody registered is an error of its own; a probe takes it for a response."""
    with pytest.raises(NotRegistered):
        client.schema(2_000_000_000)
    with pytest.raises(NotRegistered):
        client.version("nobody/knows this", 1)
    client.probe()


def test_an_unreachable_registry_is_worth_another_try(start_registry: StartRegistry) -> None:
    """Its address and what to check are in the message."""
    server = start_registry()
    server.stop()

    with pytest.raises(
        Retryable, match=rf"schema registry {server.url}: cannot be reached .*check events.registry.url"
    ):
        RegistryClient(RegistryConfig(server.url)).schema(1)


def test_a_silent_registry_is_not_waited_for(start_registry: StartRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that accepts a connection and says nothing is unreachable, too."""
    monkeypatch.setattr("npstream.registry.client._TIMEOUT_S", 0.3)
    server = start_registry()
    server.freeze()

    with pytest.raises(Retryable, match="timed out"):
        RegistryClient(RegistryConfig(server.url)).schema(1)


def test_wrong_credentials_end_the_worker(start_registry: StartRegistry) -> None:
    """Another try would fail as well; the password is in no message."""
    server = start_registry(login=("reader", "right-secret"))
    allowed = RegistryClient(RegistryConfig(server.url, "reader", "right-secret"))
    refused = RegistryClient(RegistryConfig(server.url, "reader", "wrong-secret"))

    allowed.probe()
    with pytest.raises(Fatal, match=r"refuses to let us in as 'reader' \(HTTP 401\); correct events.registry.use") as e:
        refused.probe()
    assert "secret" not in str(e.value) + repr(RegistryConfig(server.url, "reader", "wrong-secret"))
    with pytest.raises(Fatal, match="without a login"):
        RegistryClient(RegistryConfig(server.url)).probe()


def test_another_server_is_not_taken_for_a_registry(start_registry: StartRegistry) -> None:
    """A wrong path in the address returns 404 as well, and must not look like an unknown schema."""
    with pytest.raises(Fatal, match="is not the address of a schema registry"):
        RegistryClient(RegistryConfig(start_registry().url + "/api/registry")).schema(1)


def test_tls_by_an_authority_of_ones_own(start_registry: StartRegistry, tmp_path: Path) -> None:
    """With its authority's file the server is trusted; without, the message says what to give."""
    authority = make_authority(tmp_path, "authority")
    server = start_registry(keystore=make_keystore(tmp_path, authority))

    RegistryClient(RegistryConfig(server.url, ca_file=str(authority.certificate))).probe()
    with pytest.raises(Fatal, match=r"its certificate is not trusted .* as events.registry.ca_file"):
        RegistryClient(RegistryConfig(server.url)).probe()
    with pytest.raises(Fatal, match=r"events.registry.ca_file .*gone.pem: cannot be used"):
        RegistryClient(RegistryConfig(server.url, ca_file=str(tmp_path / "gone.pem"))).probe()
