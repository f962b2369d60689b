"""The settings of KRaft brokers for tests: small, quick to come back; one alone, or three that replicate."""

import base64
import socket
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from random import SystemRandom

HOST = "127.0.0.1"

COMMON: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    # After kill -9 a broker can register again only when its old session has expired: 9 s by default. One that is
    # late by more than that, on a busy machine, is given up by its own controller.
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "400",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    # Lets a test wait one or two seconds for a dead member instead of six.
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # Events of tests carry old timestamps: half a minute after its start a broker would delete them as expired.
    "log.retention.ms": "-1",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


REPLICATED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "default.replication.factor",
            "offsets.topic.replication.factor",
            "transaction.state.log.replication.factor",
            "share.coordinator.state.topic.replication.factor",
        ),
        "3",
    ),
    **dict.fromkeys(
        ("min.insync.replicas", "transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr"), "2"
    ),
    "controller.quorum.election.timeout.ms": "2000",
    "controller.quorum.fetch.timeout.ms": "4000",
}
"""Added to those of each of three brokers: what is acknowledged outlives any one of them."""


def listener_properties(ports: Mapping[str, int], protocols: Mapping[str, str], bind: str = HOST) -> dict[str, str]:
    """The properties that open `ports` (listener name to port), advertised on the loopback address.

    `protocols` names the security protocol of each listener; PLAINTEXT where absent.
    """
    advertised = {name: port for name, port in ports.items() if name != "CONTROLLER"}
    return {
        "listeners": ",".join(f"{name}://{bind}:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in advertised.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocols.get(name, 'PLAINTEXT')}" for name in ports),
    }


def free_ports(count: int) -> list[int]:
    """Loopback ports nobody listens on, all different.

    Below the ephemeral range, so that no outgoing connection takes one while the
    broker is down between a kill and a restart.
    """
    random = SystemRandom()
    with ExitStack() as probes:
        ports: list[int] = []
        for _ in range(200 * count):
            port = random.randrange(20_000, 32_000)
            probe = probes.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind((HOST, port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError("no free loopback ports between 20000 and 32000; stop what listens there and try again")


def new_cluster_id() -> str:
    """An id as the storage tool wants it."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


@dataclass(frozen=True, slots=True)
class Node:
    """What a broker is in its cluster: its number, and the controller ports of all nodes, by number."""

    number: int = 1
    controllers: Mapping[int, int] = field(default_factory=lambda: {1: free_ports(1)[0]})
    cluster_id: str = field(default_factory=new_cluster_id)

    @property
    def port(self) -> int:
        """Its own controller port."""
        return self.controllers[self.number]

    def properties(self) -> dict[str, str]:
        """Its place among the others."""
        voters = ",".join(f"{number}@{HOST}:{port}" for number, port in self.controllers.items())
        return {"node.id": str(self.number), "controller.quorum.voters": voters}
