"""The two sections of which a settings file has one: a Kafka cluster, or an embedded file."""

from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import Field, PrivateAttr, SecretStr, field_validator, model_validator

from npstream.kafka import msk
from npstream.kafka.config import SECRETS, SECURITY, KafkaConfig, Option, SecurityAndOptions, option_problems
from npstream.records import Topics
from npstream.secrets import Secrets
from npstream.settings.login_source import LoginSource
from npstream.settings.section import Section, refuse

_PLAIN = KafkaConfig("host:9092", "group", "worker", Topics("", "", "", ""))
"""For its defaults."""


class Login(NamedTuple):
    """What a way to log in needs, and what else it may have."""

    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()


_PASSWORD = Login(("username", "password"))
LOGINS = {
    "PLAIN": _PASSWORD,
    "SCRAM-SHA-256": _PASSWORD,
    "SCRAM-SHA-512": _PASSWORD,
    "OAUTHBEARER": Login(("token_url", "client_id", "client_secret"), ("scope", "token_ca_file")),
    msk.MECHANISM: Login(("aws_region",)),
}
"""The settings of each mechanism; those of another have no effect."""
_OF_LOGINS = tuple(dict.fromkeys(name for login in LOGINS.values() for name in (*login.needs, *login.takes)))


class SecuritySection(Section):
    """Encryption and identity. Give secrets as `${file:/path}`, which is read again after a rotation, not as text."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How to talk to the brokers."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"] | None = None
    """How to log in, with a SASL protocol."""
    username: str | None = None
    """User to log in as."""
    password: SecretStr | None = None
    """Password of that user."""
    ca_file: str | None = None
    """PEM file of the authority that signed the brokers' certificates; the system's own by default."""
    cert_file: str | None = None
    """PEM file of this client's certificate, when brokers ask for one."""
    key_file: str | None = None
    """PEM file of that certificate's key."""
    key_password: SecretStr | None = None
    """Password of that key."""
    token_url: str | None = None
    """With OAUTHBEARER: the token endpoint of the identity provider (OpenID Connect, client credentials)."""
    client_id: str | None = None
    """With OAUTHBEARER: the client to get a token for."""
    client_secret: SecretStr | None = None
    """With OAUTHBEARER: the secret of that client."""
    scope: str | None = None
    """With OAUTHBEARER: the scope to ask for, where the provider wants one."""
    token_ca_file: str | None = None
    """With OAUTHBEARER: PEM file of the authority behind the provider's certificate; the system's own by default."""
    aws_region: str | None = None
    """With AWS_MSK_IAM: the region of the cluster. Needs the extra `msk`; credentials come by AWS's default chain."""

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        found = self._login_problems()
        files = ("ca_file", "cert_file", "key_file")
        if not self.protocol.endswith("SSL"):
            found += [f"{name}: needs protocol SSL or SASL_SSL" for name in self._set(files)]
        if (self.cert_file is None) != (self.key_file is None):
            found.append("cert_file and key_file: one without the other; a client certificate needs its key")
        refuse(found)
        return self

    def _login_problems(self) -> list[str]:
        """What the way to log in lacks, and what belongs to another one."""
        if not self.protocol.startswith("SASL"):
            given = self._set(("mechanism", *_OF_LOGINS))
            return [f"{name}: needs protocol SASL_SSL or SASL_PLAINTEXT" for name in given]
        if self.mechanism is None:
            return [f"mechanism: missing; protocol {self.protocol} needs it"]
        login = LOGINS[self.mechanism]
        others = tuple(name for name in _OF_LOGINS if name not in (*login.needs, *login.takes))
        found = [f"{name}: missing; mechanism {self.mechanism} needs it" for name in self._unset(login.needs)]
        found += [f"{name}: has no effect with mechanism {self.mechanism}" for name in self._set(others)]
        if self.mechanism == msk.MECHANISM and self.protocol != "SASL_SSL":
            found.append(f"protocol: mechanism {self.mechanism} needs SASL_SSL")
        return found

    def _set(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if getattr(self, name) is not None]

    def _unset(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if getattr(self, name) is None]

    def values(self) -> dict[str, str]:
        """The values that are set, in the clear."""
        found = {name: getattr(self, name) for name in self._set((*SECURITY, "aws_region"))}
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in found.items()
        }


class KafkaSection(Section):
    """A Kafka cluster."""

    bootstrap: str = Field(min_length=1)
    """Brokers to ask first: host:port, several separated by commas."""
    group: str = Field(min_length=1, max_length=200)
    """Consumer group. Workers with one group share the partitions; another group learns from its own start."""
    worker_name: str = Field(min_length=1, max_length=200)
    """Name of this worker, unique in the group and the same after a restart; by default the variable HOSTNAME."""
    static_membership: bool = _PLAIN.static_membership
    """Keep partitions through a restart. Turn off when workers come and go with the load."""
    session_timeout_ms: int = Field(default=_PLAIN.session_timeout_ms, ge=6_000, le=1_800_000)
    """How long a silent worker keeps its partitions: longer than a restart takes, when membership is static."""
    transaction_timeout_ms: int = Field(default=_PLAIN.transaction_timeout_ms, ge=1_000, le=900_000)
    """How long a dead worker's open transaction may hold back readers."""
    max_poll_interval_ms: int = Field(default=_PLAIN.max_poll_interval_ms, ge=10_000, le=86_400_000)
    """How long a worker may be busy, restoring for instance, before it loses its partitions."""
    connect_timeout_ms: int = Field(default=_PLAIN.connect_timeout_ms, ge=1_000, le=30_000)
    """How long to try to reach the brokers at the start before giving up."""
    security: SecuritySection = SecuritySection()
    """Encryption and identity."""
    options: dict[str, Option] = Field(default_factory=dict, repr=False)
    """Further librdkafka options for all clients; those that exactly-once rests on are refused."""
    _source: LoginSource = PrivateAttr(default_factory=LoginSource)
    """Where security and options came from, to read their files again."""

    @field_validator("bootstrap")
    @classmethod
    def _has_no_login(cls, bootstrap: str) -> str:
        if "@" in bootstrap:  # not repeated: what is before it may be a password
            refuse(
                [
                    "must be host:port without a login, because it is printed in messages and logs; "
                    "give the login as kafka.security.username and kafka.security.password"
                ]
            )
        return bootstrap

    @field_validator("options")
    @classmethod
    def _may_be_passed(cls, options: dict[str, Option]) -> dict[str, Option]:
        refuse(option_problems(options))
        return options

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        refuse(
            [
                f"{name}: {getattr(self, name)} is longer than kafka.max_poll_interval_ms {self.max_poll_interval_ms}; "
                "a worker that is still waiting would be taken for a stuck one"
                for name in ("session_timeout_ms", "transaction_timeout_ms")
                if getattr(self, name) > self.max_poll_interval_ms
            ]
        )
        return self

    def config(self, topics: Topics) -> KafkaConfig:
        """What the clients need."""
        read = {"security": self.security.values(), "read_login": self._read_login if self._source else None}
        return KafkaConfig(**dict(self) | read | {"topics": topics})

    def came_from(self, source: LoginSource) -> None:
        """Remember what the login was read from."""
        self._source = source

    def secrets(self) -> Secrets:
        """What must not be shown of this login; those that are read later join them."""
        self._source.secrets.add(_secrets(self.security.values()))
        return self._source.secrets

    def _read_login(self) -> SecurityAndOptions:
        read = self._source.read()
        security = SecuritySection.model_validate(read["security"]).values()
        self._source.secrets.add(_secrets(security))
        return security, read["options"]


def _secrets(security: dict[str, str]) -> list[str]:
    return [value for name, value in security.items() if name in SECRETS]


class EmbeddedSection(Section):
    """A log in one file, for a single process without Kafka."""

    path: Path
    """The SQLite file; created by `npstream init`."""
    partitions: int = Field(default=1, ge=1, le=1000)
    """Partitions of each topic when the file is created: one model learns in each."""
    group: str = Field(default="npstream", min_length=1, max_length=200)
    """Name the state is kept under; another one learns from its own start."""
