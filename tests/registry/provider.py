"""Who gives the tests their registry: the environment, Docker, or the local Go."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.broker.docker_kafka import docker_responds
from tests.fetching import Missing
from tests.registry.build import ensure_server
from tests.registry.server_process import RegistryServer

ADDRESS_VARIABLE = "NPSTREAM_TEST_REGISTRY"
_IMAGE = "docker.redpanda.com/redpandadata/redpanda:v25.2.7"
"""Confluent's own image needs a broker beside it; this one has a registry with the same interface in one container."""


@dataclass(frozen=True, slots=True)
class Registry:
    """A running registry: where it is, who gave it."""

    url: str
    provider: str


class StartRegistry(Protocol):
    """Starts a private server, with a login to ask for, or a key and certificate to show."""

    def __call__(self, *, login: tuple[str, str] | None = None, keystore: Path | None = None) -> RegistryServer: ...


@contextmanager
def provide_registry() -> Iterator[Registry]:
    """A registry for the length of the block, from the first provider that is at hand. Raises `Missing`."""
    if address := os.environ.get(ADDRESS_VARIABLE):
        yield Registry(address, ADDRESS_VARIABLE)
    elif docker_responds():
        yield from _from_docker()
    else:
        server = RegistryServer(local_server())
        try:
            server.start()
            yield Registry(server.url, "Go, conduit-schema-registry")
        finally:
            server.stop()


def local_server() -> Path:
    """The compiled server. Raises `Missing`."""
    try:
        return ensure_server()
    except Missing as missing:
        raise Missing(f"{missing}\nor start Docker, or set {ADDRESS_VARIABLE}=http://host:port") from missing


def _from_docker() -> Iterator[Registry]:
    from testcontainers.community.kafka import RedpandaContainer

    with RedpandaContainer(_IMAGE) as container:
        yield Registry(container.get_schema_registry_address(), f"Docker, {_IMAGE}")
