"""A broker that asks for TLS, rights, and a password, a token or a certificate; users and topics of a test on it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
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
from tests.security.provider import Provider

LISTENER = "SECURE"
TOKENS = "TOKENS"
CERTIFICATES = "CERTIFICATES"
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
        """The listener that asks for a password."""
        return self.broker.address(LISTENER)

    def create_topics(self, topics: Topics) -> None:
        """What `npstream init` makes, under the plain listener's user, who may do everything."""
        admin = Admin(KafkaConfig(self.broker.bootstrap, "init", "init", topics, connect_timeout_ms=60_000))
        admin.prepare(admin.plan(Wishes()))

    def create_user(self, name: str, password: str, rights: Iterable[Right]) -> None:
        """A SCRAM user with exactly these rights; returns when the broker knows both."""
        self.set_password(name, password)
        self.grant(name, rights)

    def set_password(self, name: str, password: str) -> None:
        """The password of a SCRAM user, who is made if there is none; an earlier one is no longer taken."""
        client = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        credential = UserScramCredentialUpsertion(name, info, password.encode())
        for done in client.alter_user_scram_credentials([credential], request_timeout=_TIMEOUT_S).values():
            done.result(timeout=_TIMEOUT_S)

    def grant(self, name: str, rights: Iterable[Right]) -> None:
        """Rights for whoever comes in under this name, by whatever login."""
        client = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        bindings = [right.binding(name) for right in rights]
        for done in client.create_acls(bindings, request_timeout=_TIMEOUT_S).values():
            done.result(timeout=_TIMEOUT_S)


@contextmanager
def secured_kafka(jars: Path, folder: Path, reauth_ms: int = 0, provider: Provider | None = None) -> Iterator[Secured]:
    """A broker with listeners for passwords, certificates and, with a provider, tokens; and an authorizer.

    The plain listener's user is the administrator. Whoever has logged in must do so again every `reauth_ms` (0: never).
    """
    authority = make_authority(folder, "authority")
    store = make_keystore(folder, authority)
    trusted = folder / "clients.crt"  # apart from what clients trust, so that a test can change it
    trusted.write_text(authority.certificate.read_text())
    listeners = {LISTENER: "SASL_SSL", CERTIFICATES: "SSL"} | ({TOKENS: "SASL_SSL"} if provider else {})
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "connections.max.reauth.ms": str(reauth_ms),
        **_scram(_prefix(LISTENER)),
        f"{_prefix(CERTIFICATES)}.ssl.client.auth": "required",
        f"{_prefix(CERTIFICATES)}.ssl.truststore.type": "PEM",
        f"{_prefix(CERTIFICATES)}.ssl.truststore.location": str(trusted),
        **(_tokens(_prefix(TOKENS), provider) if provider else {}),
    }
    for listener in listeners:
        properties[f"{_prefix(listener)}.ssl.keystore.type"] = "PEM"
        properties[f"{_prefix(listener)}.ssl.keystore.location"] = str(store)
    broker = JarKafka(jars, folder / "kafka", listeners=listeners, properties=properties)
    with pytest.MonkeyPatch.context() as patch:
        if provider:
            # Since Kafka 4 a broker asks only for keys where its process may.
            patch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.keys_url}")
        try:
            broker.start(_START_S)
            yield Secured(broker, authority)
        finally:
            broker.close()


def _prefix(listener: str) -> str:
    return f"listener.name.{listener.lower()}"


def _scram(own: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {f"{own}.sasl.enabled.mechanisms": "SCRAM-SHA-512", f"{own}.scram-sha-512.sasl.jaas.config": module}


def _tokens(own: str, provider: Provider) -> dict[str, str]:
    room = "org.apache.kafka.common.security.oauthbearer"
    return {
        f"{own}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{own}.oauthbearer.sasl.jaas.config": f"{room}.OAuthBearerLoginModule required;",
        f"{own}.oauthbearer.sasl.server.callback.handler.class": f"{room}.OAuthBearerValidatorCallbackHandler",
        f"{own}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        f"{own}.oauthbearer.sasl.oauthbearer.expected.audience": provider.audience,
        f"{own}.oauthbearer.sasl.oauthbearer.expected.issuer": provider.url,
    }


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
