"""Who gives the tests their broker: the environment, Docker, or the local Java."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Protocol

from tests.broker.docker_kafka import DockerKafka, docker_responds
from tests.broker.jar_kafka import JarKafka
from tests.broker.jars import VERSION, ensure_jars
from tests.broker.readiness import wait_ready
from tests.fetching import Missing

ADDRESS_VARIABLE = "NPSTREAM_TEST_KAFKA"


@dataclass(frozen=True, slots=True)
class Kafka:
    """A running broker: where it is, who gave it, how long it took to respond."""

    bootstrap: str
    provider: str
    ready_s: float


class StartKafka(Protocol):
    """Starts a private broker with further listeners and properties, as `JarKafka` takes them."""

    def __call__(
        self, *, listeners: Mapping[str, str] | None = None, properties: Mapping[str, str] | None = None
    ) -> JarKafka: ...


@contextmanager
def provide_kafka(directory: Path) -> Iterator[Kafka]:
    """A broker for the length of the block, from the first provider that is at hand.

    Logs go to `directory`. A provider that is at hand and fails is an error, not
    a reason to try the next. Raises `Missing`.
    """
    began = monotonic()
    if address := os.environ.get(ADDRESS_VARIABLE):
        wait_ready(address, 30.0, lambda: None)
        yield Kafka(address, ADDRESS_VARIABLE, monotonic() - began)
    elif docker_responds():
        yield from _from_docker(directory, began)
    else:
        yield from _from_jars(directory, began)


def local_jars() -> Path:
    """The jars, where Java can run them. Raises `Missing`."""
    if shutil.which("java") is None:
        raise Missing(f"no `java` on the path; install Java 17, start Docker, or set {ADDRESS_VARIABLE}=host:port")
    return ensure_jars()


_NEVER_KILLED = {"broker.session.timeout.ms": "60000"}
"""Its own controller would give it up for a slow disk or core, and with it all that is under way."""


def _from_docker(directory: Path, began: float) -> Iterator[Kafka]:
    broker = DockerKafka()
    try:
        broker.start()
        yield Kafka(broker.bootstrap, f"Docker, Kafka {VERSION}", monotonic() - began)
    finally:
        broker.close(directory / "server.log")


def _from_jars(directory: Path, began: float) -> Iterator[Kafka]:
    broker = JarKafka(local_jars(), directory, properties=_NEVER_KILLED)
    try:
        broker.start()
        yield Kafka(broker.bootstrap, f"jars, Kafka {VERSION}, log {broker.log}", monotonic() - began)
    finally:
        broker.close()
