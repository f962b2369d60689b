"""What a careful reviewer would look for in the rendered manifests."""

from collections.abc import Iterator

import click
import pytest

from npstream.cli import cli
from npstream.kafka.topics import Create, Wishes, plan
from npstream.records import Topics
from tests.deploy import chart

every_value_set = pytest.mark.parametrize("name", chart.VALUE_SETS)


def selectors(manifests: list[chart.Manifest]) -> Iterator[tuple[str, dict[str, str]]]:
    """(where, labels) of everything that is meant to find the workers' pods."""
    for manifest in manifests:
        spec = manifest.get("spec", {})
        match manifest["kind"]:
            case "Service":
                yield "Service", spec["selector"]
            case "NetworkPolicy":
                (names,) = spec["podSelector"]["matchExpressions"]
                workers, _ = names["values"]
                yield "NetworkPolicy", {**spec["podSelector"]["matchLabels"], names["key"]: workers}
            case "StatefulSet" | "Deployment" | "PodDisruptionBudget" | "PodMonitor" | "ServiceMonitor":
                yield manifest["kind"], spec["selector"]["matchLabels"]
    for constraint in chart.pod(manifests)["topologySpreadConstraints"]:
        yield "topologySpreadConstraints", constraint["labelSelector"]["matchLabels"]


@every_value_set
def test_no_selector_dangles(name: str) -> None:
    """Everything that selects pods selects the workers: a policy or budget for nobody protects nobody."""
    manifests = chart.rendered(name)
    labels = chart.workload(manifests)["spec"]["template"]["metadata"]["labels"]
    found = list(selectors(manifests))

    assert {"NetworkPolicy", "PodDisruptionBudget"} <= {where for where, _ in found}
    assert [(where, wanted) for where, wanted in found if not wanted.items() <= labels.items()] == []


@every_value_set
def test_names_refer_to_what_is_there(name: str) -> None:
    """Volumes, the service of a StatefulSet, the account and the scaling target are objects of the same release."""
    manifests = chart.rendered(name)
    names = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    pod, spec = chart.pod(manifests), chart.workload(manifests)["spec"]

    mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    own = [volume["configMap"]["name"] for volume in pod["volumes"] if volume["name"] == "settings"]
    assert [("ConfigMap", map_name) in names for map_name in own] == [True]
    if "serviceName" in spec:
        assert ("Service", spec["serviceName"]) in names
    if name != "everything":  # which brings an account of its own
        assert ("ServiceAccount", pod["serviceAccountName"]) in names
    for scaled in chart.of_kind(manifests, "ScaledObject"):
        assert ("Deployment", scaled["spec"]["scaleTargetRef"]["name"]) in names


def test_a_job_is_no_worker_and_yet_under_the_policy() -> None:
    """A command beside the workers is not counted as one of them, and may reach no more than they do."""
    manifests = chart.rendered("everything")
    labels = chart.the(manifests, "Job")["spec"]["template"]["metadata"]["labels"]
    policy = chart.the(manifests, "NetworkPolicy")["spec"]["podSelector"]

    found = [where for where, wanted in selectors(manifests) if wanted.items() <= labels.items()]
    assert found == []
    assert labels["app.kubernetes.io/name"] in policy["matchExpressions"][0]["values"]
    assert policy["matchLabels"].items() <= labels.items()


def test_a_job_runs_a_command_that_exists() -> None:
    """The job's command takes its options and the settings that the chart appends."""
    job = chart.the(chart.rendered("everything"), "Job")["spec"]["template"]["spec"]["containers"][0]
    name, *arguments = job["args"]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None

    context = command.make_context(name, arguments)

    assert str(context.params["config"]) == "/etc/npstream/settings.yaml"
    assert context.params["execute"] is True


@every_value_set
def test_pods_meet_the_restricted_standard(name: str) -> None:
    """Every rule of the Pod Security Standard `restricted` holds, and the root file system is read-only."""
    for template in chart.pods(chart.rendered(name)):
        pod = template["spec"]

        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"].get("runAsUser", 1) > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in chart.containers(pod):
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert "privileged" not in own
            assert all("hostPort" not in port for port in container.get("ports", ()))
        kinds = {next(key for key in volume if key != "name") for volume in pod["volumes"]}
        assert kinds <= {"configMap", "secret", "emptyDir"}
        assert pod["automountServiceAccountToken"] is False


@every_value_set
def test_only_a_small_tmp_can_be_written(name: str) -> None:
    """The one writable place is bounded; settings and secrets are read-only."""
    manifests = chart.rendered(name)
    empty = {volume["name"]: volume["emptyDir"] for volume in chart.pod(manifests)["volumes"] if "emptyDir" in volume}
    writable = [mount for mount in chart.worker(manifests)["volumeMounts"] if not mount.get("readOnly")]

    assert [(mount["name"], mount["mountPath"]) for mount in writable] == [("tmp", "/tmp")]
    assert all("sizeLimit" in volume for volume in empty.values())


@every_value_set
def test_no_secret_is_in_the_environment(name: str) -> None:
    """Secrets come as files, which are not inherited, printed or dumped as variables are."""
    for template in chart.pods(chart.rendered(name)):
        for container in chart.containers(template["spec"]):
            assert [source for source in container.get("envFrom", ()) if "secretRef" in source] == []
            entries = container.get("env", ())
            assert [entry["name"] for entry in entries if "secretKeyRef" in entry.get("valueFrom", {})] == []


@every_value_set
def test_resources_are_bounded_where_it_helps(name: str) -> None:
    """Memory is reserved in full; the processor is reserved and never throttled."""
    resources = chart.worker(chart.rendered(name))["resources"]

    assert resources["limits"] == {"memory": resources["requests"]["memory"]}
    assert "cpu" in resources["requests"]


@every_value_set
def test_probes_ask_the_right_questions(name: str) -> None:
    """Liveness looks at the loop alone, with time for a busy process to respond, and only once the loop has turned."""
    container = chart.worker(chart.rendered(name))
    paths = {
        probe: container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }

    assert paths == {"startupProbe": "/startz", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    assert all(container[probe]["timeoutSeconds"] >= 3 for probe in paths)


@pytest.mark.parametrize(("overrides", "seconds"), [([], 600), (["startSeconds=901"], 905)])
def test_a_start_has_the_time_that_the_values_say(overrides: list[str], seconds: int) -> None:
    """A worker that compiles for minutes is left alone, and its rollout has not failed before."""
    for name in ("minimal", "elastic"):
        manifests = chart.objects(chart.VALUES / f"{name}.yaml", overrides)
        startup, spec = chart.worker(manifests)["startupProbe"], chart.workload(manifests)["spec"]

        assert startup["periodSeconds"] * startup["failureThreshold"] == seconds
        if chart.workload(manifests)["kind"] == "Deployment":
            assert spec["progressDeadlineSeconds"] > seconds + spec["minReadySeconds"]


@every_value_set
def test_a_drain_never_waits_for_a_broken_worker(name: str) -> None:
    """One worker may be away, or as many as the values say, and one that cannot start does not block a node."""
    budget = chart.the(chart.rendered(name), "PodDisruptionBudget")["spec"]

    assert budget["maxUnavailable"] == ("25%" if name == "production" else 1)
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@every_value_set
def test_one_port_everywhere(name: str) -> None:
    """The port that the worker listens on is the one that is probed, scraped and let through."""
    manifests = chart.rendered(name)
    (port,) = chart.worker(manifests)["ports"]
    for rule in chart.the(manifests, "NetworkPolicy")["spec"]["ingress"]:
        assert [allowed["port"] for allowed in rule["ports"]] == [port["containerPort"]]
    for monitor in chart.of_kind(manifests, "PodMonitor"):
        assert [endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]] == [port["name"]]


@every_value_set
def test_the_image_is_pinned(name: str) -> None:
    """A tag that moves, or none, would let two workers of a group run different programs."""
    image = chart.worker(chart.rendered(name))["image"]

    assert "@sha256:" in image or image.rpartition(":")[2] not in ("", "latest", image)


def test_static_members_keep_their_name_and_start_together() -> None:
    """The workload of static members is a StatefulSet whose pods need not wait for each other."""
    workload = chart.workload(chart.rendered("minimal"))

    assert workload["kind"] == "StatefulSet"
    assert workload["spec"]["podManagementPolicy"] == "Parallel"


def test_dynamic_members_are_scaled_by_lateness_and_never_to_zero() -> None:
    """The workload of dynamic members is a Deployment that KEDA scales within its bounds."""
    manifests = chart.rendered("elastic")
    scaled = chart.the(manifests, "ScaledObject")["spec"]

    assert chart.workload(manifests)["kind"] == "Deployment"
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (2, 20)
    assert [trigger["type"] for trigger in scaled["triggers"]] == ["prometheus"]
    assert 'npstream_lag_seconds{namespace="fraud",group="fraud"}' in scaled["triggers"][0]["metadata"]["query"]


def test_a_change_of_settings_restarts_the_workers() -> None:
    """Another tau gives another annotation on the pods; another label on the dashboard does not."""
    values = chart.VALUES / "minimal.yaml"

    before, other_tau, other_label = (
        checksum(chart.template(values, overrides)[1])
        for overrides in ([], ["settings.model.tau=0.02"], ["dashboard.labels.team=fraud"])
    )

    assert other_tau != before
    assert other_label == before


def checksum(manifests: str) -> str:
    """The annotation that follows the settings."""
    (line,) = [line for line in manifests.splitlines() if "checksum/config:" in line]
    return line


@pytest.mark.parametrize(
    ("name", "topics", "wishes"),
    [
        (
            "strimzi",
            Topics("transactions", "fraud.decisions", "transactions-dead-letters", "transactions-checkpoints"),
            Wishes(partitions=24, replication=3),
        ),
        (
            "everything",
            Topics("transactions", "transactions-decisions", "transactions-dead-letters", "transactions-checkpoints"),
            Wishes(partitions=6, replication=1, retention_ms=31_536_000_000),
        ),
    ],
)
def test_topics_are_those_that_init_would_create(name: str, topics: Topics, wishes: Wishes) -> None:
    """Whether Strimzi or `npstream init` makes the topics, they are the same."""
    created = {
        action.topic: (action.partitions, action.replication, dict(action.config))
        for action in plan(topics, {}, set(), wishes)
        if isinstance(action, Create)
    }
    rendered = {
        spec["topicName"]: (spec["partitions"], spec["replicas"], spec["config"])
        for spec in (topic["spec"] for topic in chart.of_kind(chart.rendered(name), "KafkaTopic"))
    }

    assert len(rendered) == (4 if name == "everything" else 3)
    assert rendered == {topic: created[topic] for topic in rendered}


@pytest.mark.parametrize("name", ["strimzi", "everything"])
def test_the_user_has_the_least_rights_that_work(name: str) -> None:
    """The worker may read its input, write its outputs, keep its state and commit; it may create and change nothing."""
    manifests = chart.rendered(name)
    decisions = "fraud.decisions" if name == "strimzi" else "transactions-decisions"
    acls = chart.the(manifests, "KafkaUser")["spec"]["authorization"]["acls"]
    rights = {
        (acl["resource"]["type"], acl["resource"]["name"], acl["resource"]["patternType"]): set(acl["operations"])
        for acl in acls
    }

    labels = {("topic", "chargebacks", "literal"): {"Read", "Describe"}} if name == "strimzi" else {}
    assert rights == {
        **labels,
        ("topic", "transactions", "literal"): {"Read", "Describe"},
        ("topic", decisions, "literal"): {"Write", "Describe"},
        ("topic", "transactions-dead-letters", "literal"): {"Write", "Describe"},
        ("topic", "transactions-checkpoints", "literal"): {"Read", "Write", "Describe"},
        ("group", "fraud", "literal"): {"Read"},
        ("transactionalId", "fraud.", "prefix"): {"Write", "Describe"},
    }
