"""Client settings: what npstream needs from librdkafka, and what a user may not change.

Every value that correctness rests on is spelled out here, even where it equals
the library's default, so that a new version cannot change it in silence.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from npstream.kafka import msk
from npstream.records import Topics

Option = str | int | float | bool
ClientSettings = dict[str, Any]
SecurityAndOptions = tuple[Mapping[str, str], Mapping[str, Option]]
"""Security settings and further options, in the clear."""

RECORD_MAX_BYTES = 1_000_000
"""The client's own limit for what a worker writes: below it lies every output, above it every topic's default."""
METADATA_REFRESH_S = 10.0
"""How old a member's view of the topic may be: the leader of a group assigns new partitions by its own view, and the
client's default is five minutes."""
TOOL_RECORD_MAX_BYTES = 16_000_000
"""For tools that write events: how large one may be is the topic's to say."""

SECURITY = {
    "protocol": "security.protocol",
    "mechanism": "sasl.mechanism",
    "username": "sasl.username",
    "password": "sasl.password",
    "ca_file": "ssl.ca.location",
    "cert_file": "ssl.certificate.location",
    "key_file": "ssl.key.location",
    "key_password": "ssl.key.password",
    "token_url": "sasl.oauthbearer.token.endpoint.url",
    "client_id": "sasl.oauthbearer.client.id",
    "client_secret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
    "token_ca_file": "https.ca.location",
}
"""Our names for the security settings, and librdkafka's."""
SECRETS = ("password", "key_password", "client_secret")

_EXACTLY_ONCE = "exactly-once rests on it"
_OWN_SETTING = "it has its own setting"
_ASSIGNMENT = "partitions are handed over one by one, which only the classic cooperative protocol does"

REFUSED = {
    "bootstrap.servers": f"{_OWN_SETTING}, kafka.bootstrap",
    "metadata.broker.list": f"{_OWN_SETTING}, kafka.bootstrap",
    "group.id": f"{_OWN_SETTING}, kafka.group",
    "group.instance.id": f"{_OWN_SETTING}, kafka.worker_name",
    "transactional.id": "it is kafka.group and kafka.worker_name, so that a restarted worker fences its former self",
    "transaction.timeout.ms": f"{_OWN_SETTING}, kafka.transaction_timeout_ms",
    "session.timeout.ms": f"{_OWN_SETTING}, kafka.session_timeout_ms",
    "max.poll.interval.ms": f"{_OWN_SETTING}, kafka.max_poll_interval_ms",
    "message.timeout.ms": "it follows the transaction timeout",
    "delivery.timeout.ms": "it follows the transaction timeout",
    "isolation.level": f"{_EXACTLY_ONCE}: read_uncommitted would not wait for undecided transactions",
    "enable.auto.commit": f"{_EXACTLY_ONCE}: offsets are committed inside the transaction only",
    "auto.commit.enable": f"{_EXACTLY_ONCE}: offsets are committed inside the transaction only",
    "auto.commit.interval.ms": f"{_EXACTLY_ONCE}: offsets are committed inside the transaction only",
    "enable.auto.offset.store": f"{_EXACTLY_ONCE}: offsets are committed inside the transaction only",
    "auto.offset.reset": "deleted input must stop a partition, not be skipped; use `start` for the first start",
    "enable.idempotence": _EXACTLY_ONCE,
    "enable.gapless.guarantee": _EXACTLY_ONCE,
    "acks": f"{_EXACTLY_ONCE}: transactions need all replicas",
    "request.required.acks": f"{_EXACTLY_ONCE}: transactions need all replicas",
    "max.in.flight": f"{_EXACTLY_ONCE}: order is lost above 5",
    "max.in.flight.requests.per.connection": f"{_EXACTLY_ONCE}: order is lost above 5",
    "retries": f"{_EXACTLY_ONCE}: the client must retry until the transaction times out",
    "message.send.max.retries": f"{_EXACTLY_ONCE}: the client must retry until the transaction times out",
    "delivery.report.only.error": "a snapshot's place in the log comes from its delivery report",
    "partition.assignment.strategy": _ASSIGNMENT,
    "group.protocol": _ASSIGNMENT,
    "group.remote.assignor": _ASSIGNMENT,
    "client.rack": "it causes rebalance storms with cooperative-sticky assignment",
    "enable.partition.eof": "each reader sets it for itself",
    "allow.auto.create.topics": "a missing topic must be noticed; `npstream init` creates topics as they must be",
    "default.topic.config": "give the options themselves",
    "plugin.library.paths": "a plug-in could change any of the above",
    "test.mock.num.brokers": "the mock cluster has no transactions",
}
"""Options that cannot be passed through, and why. Callbacks are refused by their ending, `_cb`."""


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """How one worker reaches its cluster. `worker_name` is stable, such as the name of a StatefulSet's pod."""

    bootstrap: str
    group: str
    worker_name: str
    topics: Topics
    static_membership: bool = True
    session_timeout_ms: int = 45_000
    transaction_timeout_ms: int = 15_000
    max_poll_interval_ms: int = 300_000
    connect_timeout_ms: int = 10_000
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, Option] = field(default_factory=dict, repr=False)
    read_login: Callable[[], SecurityAndOptions] | None = field(default=None, repr=False, compare=False)
    """Reads `security` and `options` again where files hold parts of them. Raises `Retryable` when one cannot be."""

    def renewed(self) -> "KafkaConfig":
        """The same with what its files hold now. Raises `Retryable` when one cannot be read."""
        if self.read_login is None:
            return self
        security, options = self.read_login()
        return replace(self, security=security, options=options)

    @property
    def transactional_id(self) -> str:
        """One per worker and stable over restarts: a new life ends what the former one left open."""
        return f"{self.group}.{self.worker_name}"

    @property
    def stable_wait_s(self) -> float:
        """How long an undecided transaction may keep us waiting: its timeout, the broker's
        check interval of 10 s, and a margin for the markers."""
        return self.transaction_timeout_ms / 1000 + 10 + 5


def option_problems(options: Collection[str]) -> list[str]:
    """The options that must not reach a client, each with its reason."""
    callbacks = {name: "npstream sets the callbacks itself" for name in options if name.endswith("_cb")}
    refused = REFUSED | callbacks
    return [f"{name}: cannot be changed: {refused[name]}" for name in options if name in refused]


def common_settings(config: KafkaConfig) -> ClientSettings:
    """What every client of ours shares. The user's options come first, ours win."""
    return {
        "socket.keepalive.enable": True,
        "log.connection.close": False,
        **config.options,
        **_security(config.security),
        "bootstrap.servers": config.bootstrap,
        "allow.auto.create.topics": False,
    }


def _security(given: Mapping[str, str]) -> ClientSettings:
    """The settings of the login in librdkafka's terms; tokens come from an endpoint, or from a function."""
    named: ClientSettings = {SECURITY[name]: value for name, value in given.items() if name in SECURITY}
    if given.get("mechanism") == msk.MECHANISM:
        return named | {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": msk.MskTokens(given["aws_region"])}
    if "token_url" in given:
        return named | {"sasl.oauthbearer.method": "oidc"}
    return named


def producer_settings(config: KafkaConfig) -> ClientSettings:
    """The transactional producer of a worker."""
    return {
        "linger.ms": 5,
        "batch.num.messages": 10_000,
        "compression.type": "lz4",
        # Back-to-back transactions meet CONCURRENT_TRANSACTIONS and sleep this long: 100 ms would be the p99.
        "retry.backoff.ms": 10,
        "queue.buffering.max.messages": 200_000,
        "queue.buffering.max.kbytes": 131_072,
        **common_settings(config),
        "client.id": config.transactional_id,
        "transactional.id": config.transactional_id,
        "transaction.timeout.ms": config.transaction_timeout_ms,
        "message.timeout.ms": config.transaction_timeout_ms,
        "message.max.bytes": RECORD_MAX_BYTES,
        "enable.idempotence": True,
        "acks": "all",
    }


def reader_settings(config: KafkaConfig) -> ClientSettings:
    """A consumer that never joins the group: restore, tools. It sees committed records only.

    It names the group because the stable committed offset is fetched through it.
    """
    return {
        "queued.max.messages.kbytes": 16_384,
        "fetch.wait.max.ms": 50,
        "fetch.queue.backoff.ms": 20,
        **common_settings(config),
        "client.id": f"{config.transactional_id}.reader",
        "group.id": config.group,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
    }


def member_settings(config: KafkaConfig) -> ClientSettings:
    """The consumer that joins the group and reads the events."""
    static: ClientSettings = {"group.instance.id": config.worker_name} if config.static_membership else {}
    return {
        "heartbeat.interval.ms": min(3_000, config.session_timeout_ms // 3),
        "topic.metadata.refresh.interval.ms": int(METADATA_REFRESH_S * 1000),
        **reader_settings(config),
        **static,
        "client.id": config.transactional_id,
        "group.protocol": "classic",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": config.session_timeout_ms,
        "max.poll.interval.ms": config.max_poll_interval_ms,
        "enable.partition.eof": False,
    }
