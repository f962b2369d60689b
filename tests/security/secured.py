"""A broker that asks for TLS, a password and rights; and the users and topics of a test on it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from npstream.kafka import KafkaConfig
from npstream.kafka.admin import Admin
from npstream.kafka.topics import Wishes
from npstream.records import Topics
from tests.broker import JarKafka
from tests.security.certificates import Authority, make_authority, make_keystore

LISTENER = "SECURE"
_TIMEOUT_S = 60.0
_START_S = 180.0

Kind = Literal["topic", "group", "transactional id"]


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One operation on one thing; a name that ends with a dot is a prefix."""

    operation: Literal["READ", "WRITE", "DESCRIBE"]
    kind: Kind
    name: str

    def binding(self, user: str) -> AclBinding:
        """The grant of it to a user."""
        kind = ResourceType[self.kind.upper().replace(" ", "_")]
        pattern = ResourcePatternType.PREFIXED if self.name.endswith(".") else ResourcePatternType.LITERAL
        operation = AclOperation[self.operation]
        return AclBinding(kind, self.name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


@dataclass(frozen=True, slots=True)
class Secured:
    """The running broker, and the authority that a client of it must trust."""

    broker: JarKafka
    authority: Authority

    @property
    def address(self) -> str:
        """The listener that asks for everything."""
        return self.broker.address(LISTENER)

    def create_topics(self, topics: Topics) -> None:
        """What `npstream init` makes, under the plain listener's user, who may do everything."""
        admin = Admin(KafkaConfig(self.broker.bootstrap, "init", "init", topics, connect_timeout_ms=60_000))
        admin.prepare(admin.plan(Wishes()))

    def create_user(self, name: str, password: str, rights: Iterable[Right]) -> None:
        """A SCRAM user with exactly these rights; returns when the broker knows both."""
        client = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        credential = UserScramCredentialUpsertion(name, info, password.encode())
        for done in client.alter_user_scram_credentials([credential], request_timeout=_TIMEOUT_S).values():
            done.result(timeout=_TIMEOUT_S)
        bindings = [right.binding(name) for right in rights]
        for done in client.create_acls(bindings, request_timeout=_TIMEOUT_S).values():
            done.result(timeout=_TIMEOUT_S)


@contextmanager
def secured_kafka(jars: Path, folder: Path) -> Iterator[Secured]:
    """A broker with a SASL_SSL listener and an authorizer; the plain listener's user is the administrator."""
    authority = make_authority(folder, "authority")
    own = f"listener.name.{LISTENER.lower()}"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    broker = JarKafka(
        jars,
        folder / "kafka",
        listeners={LISTENER: "SASL_SSL"},
        properties={
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{own}.scram-sha-512.sasl.jaas.config": module,
            f"{own}.ssl.keystore.type": "PEM",
            f"{own}.ssl.keystore.location": str(make_keystore(folder, authority)),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )
    try:
        broker.start(_START_S)
        yield Secured(broker, authority)
    finally:
        broker.close()


def least_rights(topics: Topics, group: str) -> Sequence[Right]:
    """The documented least of a worker, without DESCRIBE, which each of them includes."""
    return (
        Right("READ", "topic", topics.events),
        Right("WRITE", "topic", topics.decisions),
        Right("WRITE", "topic", topics.dead_letters),
        Right("READ", "topic", topics.checkpoints),
        Right("WRITE", "topic", topics.checkpoints),
        *([] if topics.labels is None else [Right("READ", "topic", topics.labels)]),
        Right("READ", "group", group),
        Right("WRITE", "transactional id", f"{group}."),
    )


def described(topics: Topics, group: str) -> Sequence[Right]:
    """DESCRIBE on everything a worker touches: with it granted apart, any other right can be missing alone."""
    names = [Right("DESCRIBE", "topic", name) for name in topics.names()]
    return [*names, Right("DESCRIBE", "group", group), Right("DESCRIBE", "transactional id", f"{group}.")]
