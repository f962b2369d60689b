"""The two sections of which a settings file has one: a Kafka cluster, or an embedded file."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from npstream.kafka.config import SECURITY, KafkaConfig, Option, option_problems
from npstream.records import Topics
from npstream.settings.section import Section, refuse

_PLAIN = KafkaConfig("host:9092", "group", "worker", Topics("", "", "", ""))
"""For its defaults."""


class SecuritySection(Section):
    """Encryption and identity. Give secrets as `${file:/path}` or `${VARIABLE}`, not as text."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How to talk to the brokers."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
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

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        login = ("mechanism", "username", "password")
        files = ("ca_file", "cert_file", "key_file")
        found = []
        if self.protocol.startswith("SASL"):
            found += [f"{name}: missing; protocol {self.protocol} needs it" for name in self._unset(login)]
        else:
            found += [f"{name}: needs protocol SASL_SSL or SASL_PLAINTEXT" for name in self._set(login)]
        if not self.protocol.endswith("SSL"):
            found += [f"{name}: needs protocol SSL or SASL_SSL" for name in self._set(files)]
        if (self.cert_file is None) != (self.key_file is None):
            found.append("cert_file and key_file: one without the other; a client certificate needs its key")
        refuse(found)
        return self

    def _set(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if getattr(self, name) is not None]

    def _unset(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if getattr(self, name) is None]

    def values(self) -> dict[str, str]:
        """The values that are set, in the clear, by the names of `kafka.config.SECURITY`."""
        found = {name: getattr(self, name) for name in self._set(tuple(SECURITY))}
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
        return KafkaConfig(**dict(self) | {"topics": topics, "security": self.security.values()})


class EmbeddedSection(Section):
    """A log in one file, for a single process without Kafka."""

    path: Path
    """The SQLite file; created by `npstream init`."""
    partitions: int = Field(default=1, ge=1, le=1000)
    """Partitions of each topic when the file is created: one model learns in each."""
    group: str = Field(default="npstream", min_length=1, max_length=200)
    """Name the state is kept under; another one learns from its own start."""
