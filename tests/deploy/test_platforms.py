"""The chart on the clusters that companies have: OpenShift, clusters without an operator, and their own additions."""

import pytest

from tests.deploy import chart

CLUSTER = "apiregistration.k8s.io/v1"
"""What every cluster has, and what Helm does not assume without one."""
OPENSHIFT = "security.openshift.io/v1"
OPERATORS = {
    "monitoring.podMonitor=true": "monitoring.coreos.com/v1/PodMonitor",
    "monitoring.serviceMonitor=true": "monitoring.coreos.com/v1/ServiceMonitor",
    "monitoring.prometheusRule=true": "monitoring.coreos.com/v1/PrometheusRule",
    "autoscaling.enabled=true": "keda.sh/v1alpha1/ScaledObject",
    "strimzi.enabled=true": "kafka.strimzi.io/v1/KafkaTopic",
}


def on_a_cluster_with(*apis: str) -> list[str]:
    """Options that make Helm see a cluster with these APIs."""
    return [part for api in (CLUSTER, *apis) for part in ("--api-versions", api)]


@pytest.mark.parametrize(("override", "api"), OPERATORS.items())
def test_a_missing_operator_is_named_before_anything_is_installed(override: str, api: str) -> None:
    """Instead of Helm's message about a kind without a match, halfway; without a cluster nothing is assumed."""
    name = {"autoscaling": "elastic", "strimzi": "strimzi"}.get(override.split(".", maxsplit=1)[0], "minimal")
    values, others = chart.VALUES / f"{name}.yaml", [other for other in OPERATORS.values() if other != api]
    quiet = ["monitoring.podMonitor=false"] if name == "elastic" else []

    refused = chart.template(values, [*quiet, override], on_a_cluster_with(*others))
    taken = [
        chart.template(values, [*quiet, override], options) for options in ([], on_a_cluster_with(*OPERATORS.values()))
    ]

    assert refused[0] == 1
    assert f"{override.partition('=')[0]}: this cluster has no {api}; install " in refused[2]
    assert [(code, messages) for code, _, messages in taken] == [(0, ""), (0, "")]


def test_what_is_not_asked_for_is_not_looked_for() -> None:
    """A cluster without any operator takes the smallest values."""
    assert chart.template(chart.VALUES / "minimal.yaml", options=on_a_cluster_with())[0] == 0


def test_openshift_chooses_users_and_groups() -> None:
    """Its default constraint refuses pods that name their own; all other rules stay."""
    here, there = (
        [
            template["spec"]["securityContext"]
            for template in chart.pods(chart.objects(chart.VALUES / "minimal.yaml", options=options))
        ]
        for options in ([], on_a_cluster_with(OPENSHIFT))
    )
    chosen = {"runAsUser", "runAsGroup", "fsGroup"}

    assert len(here) == 3
    assert all(chosen <= set(context) for context in here)
    assert there == [{key: value for key, value in context.items() if key not in chosen} for context in here]


def test_null_leaves_a_part_of_the_context_out() -> None:
    """Elsewhere than on OpenShift, values can leave users and groups to the platform as well, or add to them."""
    for template in chart.pods(chart.rendered("production")):
        context = template["spec"]["securityContext"]
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & set(context)
        assert context["supplementalGroups"] == [5000]
        assert context["runAsNonRoot"] is True


def test_additions_are_where_they_belong() -> None:
    """Volumes, mounts, variables and init containers are in every pod, further containers beside workers only."""
    manifests = chart.rendered("production")
    every = [template["spec"] for template in chart.pods(manifests)]

    assert len(every) == 3
    for pod in every:
        (own,) = [container for container in pod["containers"] if container["name"] in ("worker", "check", "lag")]
        assert {"platform", "cache"} <= {volume["name"] for volume in pod["volumes"]}
        assert {"name": "platform", "mountPath": "/etc/ssl/platform", "readOnly": True} in own["volumeMounts"]
        assert own["envFrom"] == [{"configMapRef": {"name": "proxy-settings"}}]
        assert [container["name"] for container in pod["initContainers"]] == ["wait-for-proxy"]
    beside = [[c["name"] for c in pod["containers"] if c["name"] == "audit-shipper"] for pod in every]
    assert sorted(beside) == [[], [], ["audit-shipper"]]
    assert chart.containers(chart.pod(manifests))[1] == chart.worker(manifests)


def test_the_workload_has_annotations_of_its_own() -> None:
    """Tools that watch workloads are addressed by annotations of the workload, not of its pods."""
    workload = chart.workload(chart.rendered("production"))

    assert workload["metadata"]["annotations"] == {"reloader.example.org/auto": "true"}
    assert "reloader.example.org/auto" not in workload["spec"]["template"]["metadata"]["annotations"]


def test_probes_have_the_numbers_of_the_values() -> None:
    """Each probe its own; the start has the time of `startSeconds`."""
    worker = chart.worker(chart.rendered("production"))
    found = {
        probe: [worker[probe][key] for key in ("periodSeconds", "timeoutSeconds", "failureThreshold")]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }

    assert found == {"startupProbe": [5, 5, 120], "livenessProbe": [20, 5, 6], "readinessProbe": [10, 5, 3]}


@pytest.mark.parametrize("name", ["minimal", "elastic"])
def test_a_service_monitor_has_a_service(name: str) -> None:
    """Also where no StatefulSet needs one: the monitor selects it by its labels and names its port."""
    switch = ["monitoring.podMonitor=false", "monitoring.serviceMonitor=true"]
    manifests = chart.objects(chart.VALUES / f"{name}.yaml", switch)
    service, monitor = chart.the(manifests, "Service"), chart.the(manifests, "ServiceMonitor")["spec"]

    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [endpoint["port"] for endpoint in monitor["endpoints"]] == [
        port["name"] for port in service["spec"]["ports"]
    ]


def test_a_drain_can_be_left_to_others() -> None:
    """Where the platform brings budgets of its own."""
    manifests = chart.objects(chart.VALUES / "minimal.yaml", ["podDisruptionBudget.enabled=false"])

    assert chart.of_kind(manifests, "PodDisruptionBudget") == []
