"""The chart refuses what cannot work, before anything reaches a cluster, and says what to do."""

import pytest

from tests.deploy import chart

ELASTIC = "elastic"
PAIRS = [
    pytest.param(
        "minimal",
        ["autoscaling.enabled=true", "autoscaling.prometheusAddress=http://p:9090"],
        "autoscaling: not with static membership",
        id="static-and-autoscaled",
    ),
    pytest.param(
        ELASTIC,
        ["autoscaling.prometheusAddress="],
        "autoscaling.prometheusAddress: missing",
        id="scaled-by-nothing",
    ),
    pytest.param(
        ELASTIC, ["autoscaling.maxReplicas=61"], "autoscaling.maxReplicas: 61 workers for 60", id="too-many-scaled"
    ),
    pytest.param(
        ELASTIC, ["autoscaling.minReplicas=21"], "minReplicas: 21 is above maxReplicas 20", id="min-above-max"
    ),
    pytest.param(
        "minimal", ["replicas=13"], "replicas: 13 workers for 12 partitions", id="more-workers-than-partitions"
    ),
    pytest.param("minimal", ["replicas=null"], "replicas: missing", id="workers-unknown"),
    pytest.param("minimal", ["partitions=0"], "partitions: say how many", id="partitions-unknown"),
    pytest.param(
        "minimal",
        ["terminationGracePeriodSeconds=15"],
        "must be longer than settings.kafka.transaction_timeout_ms (15000)",
        id="grace-within-transaction",
    ),
    pytest.param(
        "minimal",
        ["settings.worker.drain_seconds=36"],
        "must be 5 s longer than settings.worker.drain_seconds (36000 ms)",
        id="grace-within-drain",
    ),
    pytest.param(
        "minimal",
        ["terminationGracePeriodSeconds=45"],
        "must be shorter than settings.kafka.session_timeout_ms (45000)",
        id="grace-beyond-session",
    ),
    pytest.param(
        ELASTIC,
        ["settings.kafka.session_timeout_ms=400000"],
        "max_poll_interval_ms must hold, found 15000, 400000, 300000",
        id="session-beyond-poll",
    ),
    pytest.param(
        "minimal",
        ["settings.kafka.transaction_timeout_ms=50000", "terminationGracePeriodSeconds=60"],
        "must hold, found 50000, 45000, 300000",
        id="transaction-beyond-session",
    ),
    pytest.param("minimal", ["settings.http.port=0"], "settings.http.port: 0 takes any free port", id="any-port"),
    pytest.param(
        "minimal",
        ["settings.kafka.worker_name=a"],
        "settings.kafka.worker_name: every worker needs its own",
        id="one-name",
    ),
    pytest.param(
        "strimzi",
        ["settings.kafka.security.password=hunter2"],
        "settings.kafka.security.password: a secret in a ConfigMap",
        id="password-in-values",
    ),
    pytest.param(
        "strimzi",
        ["settings.kafka.security.password=${PASSWORD}"],
        "settings.kafka.security.password: a secret in a ConfigMap",
        id="password-in-environment",
    ),
    pytest.param(
        "strimzi",
        ["settings.kafka.options.ssl\\.keystore\\.password=hunter2"],
        "settings.kafka.options.ssl.keystore.password: a secret in a ConfigMap",
        id="password-in-options",
    ),
    pytest.param(
        "minimal",
        [
            "settings.events.registry.url=http://registry:8081",
            "settings.events.registry.username=reader",
            "settings.events.registry.password=hunter2",
        ],
        "settings.events.registry.password: a secret in a ConfigMap",
        id="password-of-the-registry",
    ),
    pytest.param(
        "minimal",
        ["settings.events.registry.url=http://ada:hunter2@registry:8081"],
        "settings.events.registry.url: write no login",
        id="login-in-the-registry-address",
    ),
    pytest.param(
        "minimal",
        ["resources.memory=64Mi"],
        "resources.memory: 64Mi is less than a worker takes",
        id="too-little-memory",
    ),
    pytest.param(
        "minimal", ["resources.memory=0.2G"], "resources.memory: 0.2G is less", id="too-little-in-other-units"
    ),
    pytest.param(
        "minimal",
        ["monitoring.podMonitor=true", "monitoring.serviceMonitor=true"],
        "would scrape every worker twice",
        id="scraped-twice",
    ),
    pytest.param(
        "minimal",
        ["monitoring.thresholds.abortShare=1.5"],
        "monitoring.thresholds.abortShare: 1.5 must be below 1",
        id="more-aborts-than-all",
    ),
    pytest.param("strimzi", ["strimzi.cluster="], "strimzi.cluster: missing", id="no-cluster"),
    pytest.param(
        "strimzi",
        ["settings.kafka.security.mechanism=SCRAM-SHA-256"],
        "scram-sha-512 needs settings.kafka.security.mechanism: SCRAM-SHA-512",
        id="wrong-mechanism",
    ),
    pytest.param(
        "strimzi",
        ["strimzi.user.authentication=tls"],
        "tls needs settings.kafka.security.cert_file",
        id="no-certificate",
    ),
]
WRONG_VALUES = [
    pytest.param("settings.model.taw=0.1", "taw", id="unknown-parameter"),
    pytest.param("settings.kafka.transaction_timeout_ms=soon", "transaction_timeout_ms", id="not-a-number"),
    pytest.param("settings.labels.on_expiry=positive", "on_expiry", id="not-a-choice"),
    pytest.param("settings.embedded.path=a.db", "embedded", id="no-broker"),
    pytest.param("settings.http=false", "http", id="no-probes"),
    pytest.param("autoscaling.minReplicas=0", "minReplicas", id="scaled-to-zero"),
    pytest.param("replica=3", "replica", id="unknown-value"),
    pytest.param("resources.memory=lots", "resources.memory", id="no-quantity"),
    pytest.param("resources.cpu=0", "resources.cpu", id="no-processor"),
    pytest.param("podDisruptionBudget.maxUnavailable=0", "maxUnavailable", id="never-drained"),
    pytest.param("podDisruptionBudget.maxUnavailable=120%", "maxUnavailable", id="more-than-all"),
    pytest.param("probes.timeoutSeconds=1", "timeoutSeconds", id="no-time-for-a-probe"),
    pytest.param("monitoring.thresholds.lateSeconds=5", "lateSeconds", id="unknown-threshold"),
    pytest.param("monitoring.thresholds.hoursWithoutLabels=0", "hoursWithoutLabels", id="no-hours"),
    pytest.param("extraVolumes[0].emptyDir.sizeLimit=1Mi", "name", id="volume-without-a-name"),
]


@pytest.mark.parametrize(("name", "overrides", "message"), PAIRS)
def test_values_that_cannot_work_together_are_refused(name: str, overrides: list[str], message: str) -> None:
    """Nothing is rendered, and the message says which values and what to do."""
    code, manifests, messages = chart.template(chart.VALUES / f"{name}.yaml", overrides)

    assert code != 0
    assert manifests == ""
    assert message in messages


def test_all_refusals_are_reported_at_once() -> None:
    """Two independent mistakes are both in the message, so that they can be fixed together."""
    mistakes = ["replicas=13", "terminationGracePeriodSeconds=10"]

    _, _, messages = chart.template(chart.VALUES / "minimal.yaml", mistakes)

    assert "replicas: 13" in messages
    assert "terminationGracePeriodSeconds: 10" in messages


@pytest.mark.parametrize(("override", "key"), WRONG_VALUES)
def test_the_schema_refuses_wrong_values(override: str, key: str) -> None:
    """A key or value that the worker would refuse is refused by Helm, which names it."""
    code, manifests, messages = chart.template(chart.VALUES / "minimal.yaml", [override])

    assert code != 0
    assert manifests == ""
    assert "don't meet the specifications of the schema" in messages
    assert key in messages


def test_cluster_and_topics_must_be_given() -> None:
    """Without settings Helm says which are missing instead of rendering a worker that cannot start."""
    code, _, messages = chart.template(chart.CHART / "values.yaml")

    assert code != 0
    for missing in ("kafka", "topics", "model"):
        assert f"{missing} is required" in messages
