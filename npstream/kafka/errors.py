"""The client's errors, translated into our tree in one table.

Only what a new connection would not cure is `Fatal`. What comes and goes with
brokers, networks and groups is `Retryable`: drop everything and restore. What
is refused for the sake of a record is `Refused`, and so, after it has come back
some times, is whatever is not listed.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from npstream.errors import Fatal, NpstreamError, Refused, Retryable
from npstream.kafka.config import KafkaConfig
from npstream.kafka.msk import MECHANISM

_TWIN = (
    "another worker of group {group!r} runs under the name {worker_name!r} and has taken over: "
    "give each worker its own kafka.worker_name, or stop one of them"
)
_LOGIN = "brokers at {bootstrap} refused the login: check kafka.security (protocol, mechanism, username, password)"
_CERTIFICATE = (
    "brokers at {bootstrap} refused this client's certificate: check that kafka.security.cert_file and key_file are "
    "given, that the certificate has not expired, and that the brokers trust who signed it"
)
_NO_TOKEN = (
    "no usable token from {token_url}: check that it can be reached, kafka.security.client_id, client_secret, scope "
    "and token_ca_file, and the clocks"
)
_TOKEN = (
    "brokers at {bootstrap} refused the token from {token_url}: compare its issuer, audience, scope, lifetime and "
    "signing key with what their listener expects (sasl.oauthbearer.*), and kafka.security.scope"
)
_MSK_TOKEN = (
    "brokers at {bootstrap} refused the token: check kafka.security.aws_region, and that the AWS role of this process "
    "may kafka-cluster:Connect to the cluster"
)
_INTERCEPTED = (
    "the brokers refuse a record: compare the settings of {decisions!r}, {dead_letters!r} and {checkpoints!r} with "
    "what `npstream init --dry-run` wants, lift what forbids it (a policy, a schema check), then restart"
)
_INIT = "run `npstream init`, or correct topics"

_FATAL = {
    KafkaError.FENCED_INSTANCE_ID: _TWIN,
    KafkaError.UNRELEASED_INSTANCE_ID: _TWIN,
    KafkaError._FENCED: _TWIN,
    KafkaError.PRODUCER_FENCED: _TWIN,
    KafkaError.INVALID_PRODUCER_EPOCH: _TWIN,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: (
        "a topic right is missing: grant READ and DESCRIBE on {events!r} and {checkpoints!r}, "
        "WRITE and DESCRIBE on {decisions!r}, {dead_letters!r} and {checkpoints!r}"
    ),
    KafkaError.GROUP_AUTHORIZATION_FAILED: "a group right is missing: grant READ on group {group!r}",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "a transaction right is missing: grant WRITE and DESCRIBE on transactional id {transactional_id!r}"
    ),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: (
        "a cluster right is missing: grant IDEMPOTENT_WRITE (and CREATE for `npstream init`) on the cluster"
    ),
    KafkaError.INVALID_TRANSACTION_TIMEOUT: (
        "the brokers allow shorter transactions only: lower kafka.transaction_timeout_ms below their "
        "transaction.max.timeout.ms"
    ),
    KafkaError.INVALID_SESSION_TIMEOUT: (
        "the brokers refuse the session timeout: set kafka.session_timeout_ms between their "
        "group.min.session.timeout.ms and group.max.session.timeout.ms"
    ),
    KafkaError.UNSUPPORTED_VERSION: "the brokers are too old for group transactions: use Kafka 2.5 or newer",
    KafkaError._UNSUPPORTED_FEATURE: "the brokers are too old for transactions: use Kafka 2.5 or newer",
    KafkaError._INVALID_ARG: "the client refuses its settings: correct kafka.options",
}

_REFUSED = {
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "a record is larger than its topic allows: raise max.message.bytes of {decisions!r}, {dead_letters!r} and "
        "{checkpoints!r} to 1048588 or more (`npstream init` does), then restart"
    ),
    KafkaError.INVALID_TIMESTAMP: (
        "a topic refuses the events' timestamps: lift message.timestamp.before.max.ms and "
        "message.timestamp.after.max.ms on {decisions!r} and {dead_letters!r} (`npstream init` does), then restart"
    ),
    KafkaError.INVALID_MSG_SIZE: _INTERCEPTED,
    KafkaError.RECORD_LIST_TOO_LARGE: _INTERCEPTED,
    KafkaError.INVALID_RECORD: _INTERCEPTED,
    KafkaError.POLICY_VIOLATION: _INTERCEPTED,
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: _INTERCEPTED,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: _INTERCEPTED,
    KafkaError.OFFSET_METADATA_TOO_LARGE: (
        "the brokers allow too little metadata beside an offset: raise their offset.metadata.max.bytes to 4096, "
        "then restart"
    ),
}
"""Refused for the sake of what was sent: it would be refused again."""

_RETRYABLE = {
    # A worker that was connected has time until files of its login are renewed; one that was not ends at once.
    KafkaError._AUTHENTICATION: _LOGIN,
    KafkaError.SASL_AUTHENTICATION_FAILED: _LOGIN,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _LOGIN,
    KafkaError.ILLEGAL_SASL_STATE: _LOGIN,
    KafkaError._SSL: "TLS with brokers at {bootstrap} failed: check kafka.security (ca_file, cert_file, key_file)",
    KafkaError._TRANSPORT: "brokers at {bootstrap} cannot be reached: check that they run and that the network is up",
    KafkaError._ALL_BROKERS_DOWN: "all brokers at {bootstrap} are down: check that they run",
    KafkaError._RESOLVE: "the broker name in {bootstrap} cannot be resolved: check kafka.bootstrap and DNS",
    KafkaError._TIMED_OUT: "brokers at {bootstrap} did not respond in time",
    # A static member may go on believing that it owns its partitions, so everything must go.
    KafkaError._MAX_POLL_EXCEEDED: (
        "the worker was busy for longer than max_poll_interval_ms and has left the group: raise "
        "kafka.max_poll_interval_ms or lower worker.batch_max"
    ),
    KafkaError.UNKNOWN_TOPIC_OR_PART: f"a topic or partition is gone: {_INIT}",
    KafkaError._UNKNOWN_TOPIC: f"a topic is gone: {_INIT}",
    KafkaError._UNKNOWN_PARTITION: f"a partition is gone: {_INIT}",
    KafkaError._NOENT: f"a partition is not there: {_INIT}",
    KafkaError.UNKNOWN_MEMBER_ID: "the group has moved on without this worker",
    KafkaError.ILLEGAL_GENERATION: "the group has moved on without this worker",
    KafkaError.REBALANCE_IN_PROGRESS: "the group is rebalancing",
}

PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""What a consumer may report while it reconnects by itself, its place in the log unharmed."""

WEATHER = PASSING | {
    KafkaError.UNKNOWN,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
    KafkaError.STALE_CTRL_EPOCH,
    KafkaError.STALE_BROKER_EPOCH,
    KafkaError.NOT_CONTROLLER,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.CONCURRENT_TRANSACTIONS,
    KafkaError.INVALID_TXN_STATE,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.DUPLICATE_SEQUENCE_NUMBER,
    KafkaError.UNKNOWN_PRODUCER_ID,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.TRANSACTION_COORDINATOR_FENCED,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.TRANSACTION_ABORTABLE,
    KafkaError.MEMBER_ID_REQUIRED,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.GROUP_ID_NOT_FOUND,
    KafkaError.GROUP_MAX_SIZE_REACHED,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.INCONSISTENT_TOPIC_ID,
    KafkaError.REBOOTSTRAP_REQUIRED,
    KafkaError.FETCH_SESSION_ID_NOT_FOUND,
    KafkaError.INVALID_FETCH_SESSION_EPOCH,
    KafkaError._INCONSISTENT,
    KafkaError._DESTROY,
    KafkaError._DESTROY_BROKER,
    KafkaError._UNKNOWN_BROKER,
    KafkaError._UNKNOWN_GROUP,
    KafkaError._NODE_UPDATE,
    KafkaError._ISR_INSUFF,
    KafkaError._CRIT_SYS_RESOURCE,
    KafkaError._INTR,
    KafkaError._FAIL,
    KafkaError._FATAL,
    KafkaError._RETRY,
    KafkaError._OUTDATED,
    KafkaError._CONFLICT,
    KafkaError._IN_PROGRESS,
    KafkaError._PREV_IN_PROGRESS,
    KafkaError._WAIT_CACHE,
    KafkaError._QUEUE_FULL,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._REVOKE_PARTITIONS,
    KafkaError._ASSIGN_PARTITIONS,
    KafkaError._NO_OFFSET,
    KafkaError._GAPLESS_GUARANTEE,
}
"""What comes and goes with brokers, networks, groups and transactions, whatever the records hold."""

NEVER = sys.maxsize
"""Strikes for what only follows from another error, such as handing a record to a transaction that has failed: what
that was shows when partitions are published one by one, for then little is handed over after it."""
STRIKES = 3
"""An error without a name must come back this often for one partition alone before its records are held to be why."""

_ALERT = "SSL alert number"
_NO_TOKEN_MADE = "Failed to acquire SASL OAUTHBEARER token"

FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
LOGIN = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError._SSL,
    }
)


def kafka_error(error: BaseException) -> KafkaError | None:
    """The client's own error inside an exception, or inside what caused it.

    A fatal error that meets a running callback comes out as `SystemError`.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KafkaException) and seen.args and isinstance(seen.args[0], KafkaError):
            return seen.args[0]
        seen = seen.__cause__ or seen.__context__
    return None


def translate(
    error: BaseException | KafkaError, doing: str, config: KafkaConfig, partition: int | None = None
) -> NpstreamError:
    """Our error for the client's, saying what was being done, in which partition if in one, and what to do next."""
    found = error if isinstance(error, KafkaError) else kafka_error(error)
    if found is None:
        cause = f"{doing}: {type(error).__name__}: {error}"
        return Retryable(cause) if partition is None else Refused(cause, partition, STRIKES)
    code = _underlying(found)
    advice = _login_advice(found, config) or _FATAL.get(code) or _REFUSED.get(code) or _RETRYABLE.get(code)
    cause = f"{found.name()}: {found.str()}"
    text = f"{doing}: {advice.format_map(_words(config))} ({cause})" if advice else f"{doing}: {cause}"
    named: NpstreamError
    if code in _FATAL:
        named = Fatal(text)
    elif code in _REFUSED:
        named = Refused(text, partition)
    elif code in _RETRYABLE or code in WEATHER or found.retriable():
        named = Retryable(text)
    elif code == KafkaError._STATE:
        named = Refused(text, None, NEVER)
    else:
        named = Refused(text, partition, STRIKES)
    named.cause = found.name()
    return named


def refuses_login(error: KafkaError) -> bool:
    """Whether this client may not come in: a login, a token, a certificate on either side."""
    return error.code() in LOGIN or _refuses_certificate(error)


def _refuses_certificate(error: KafkaError) -> bool:
    """Brokers that do not want a certificate just hang up; what they said before is in the text."""
    return error.code() == KafkaError._TRANSPORT and _ALERT in error.str()


def _login_advice(error: KafkaError, config: KafkaConfig) -> str | None:
    """What to do about a refusal whose code alone does not say who refused what."""
    if _refuses_certificate(error):
        return _CERTIFICATE
    if error.code() not in LOGIN - {KafkaError._SSL}:
        return None
    if _NO_TOKEN_MADE in error.str():
        return _NO_TOKEN
    return {"OAUTHBEARER": _TOKEN, MECHANISM: _MSK_TOKEN}.get(config.security.get("mechanism", ""))


@contextmanager
def translated(doing: str, config: KafkaConfig) -> Iterator[None]:
    """Raise ours for what a client raises: a closed or broken one has RuntimeError and SystemError too."""
    try:
        yield
    except (KafkaException, SystemError, RuntimeError) as error:
        raise translate(error, doing, config) from error


def _underlying(error: KafkaError) -> int:
    """The code of an error; of a fatal one the code of its cause, which the library gives in words only."""
    if error.code() != KafkaError._FATAL:
        return error.code()
    named = (code for code in _FATAL if KafkaError(code).str() in error.str())
    return next(named, KafkaError._FATAL)


def _words(config: KafkaConfig) -> dict[str, str]:
    topics = config.topics
    return {
        "bootstrap": config.bootstrap,
        "token_url": config.security.get("token_url", "its endpoint"),
        "group": config.group,
        "worker_name": config.worker_name,
        "transactional_id": config.transactional_id,
        "events": topics.events,
        "decisions": topics.decisions,
        "dead_letters": topics.dead_letters,
        "checkpoints": topics.checkpoints,
    }
