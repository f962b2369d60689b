"""What outlives a release, and what a release must not undo when it is changed."""

from pathlib import Path

import pytest

from tests.deploy import chart, cluster
from tests.deploy.tools import DEPLOY

README = (DEPLOY / "README.md").read_text()
KEEP = "helm.sh/resource-policy"


@pytest.mark.parametrize("name", ["strimzi", "everything"])
def test_topics_and_user_outlive_the_release(name: str) -> None:
    """Helm leaves every topic and the user alone when the release or `strimzi.enabled` goes: they are the data."""
    owned = chart.of_kind(chart.rendered(name), "KafkaTopic", "KafkaUser")

    assert {manifest["kind"] for manifest in owned} == {"KafkaTopic", "KafkaUser"}
    assert [m["metadata"]["name"] for m in owned if m["metadata"].get("annotations", {}).get(KEEP) != "keep"] == []


def test_nothing_else_outlives_the_release() -> None:
    """All that a new install makes again is removed with the release."""
    others = [m for m in chart.rendered("everything") if m["kind"] not in ("KafkaTopic", "KafkaUser")]

    assert [m["kind"] for m in others if KEEP in m["metadata"].get("annotations", {})] == []


def test_the_readme_says_how_to_delete_what_is_kept() -> None:
    """The commands that delete topics and user on purpose select them by labels that they have."""
    (command,) = [line for line in README.splitlines() if "delete kafkatopic,kafkauser" in line]
    selector = dict(pair.split("=") for pair in command.split(" -l ")[1].split()[0].split(","))

    for manifest in chart.of_kind(chart.rendered("strimzi"), "KafkaTopic", "KafkaUser"):
        assert selector.items() <= manifest["metadata"]["labels"].items()


@pytest.mark.parametrize(("overrides", "replicas"), [([], 3), (["replicas=1"], 2), (["replicas=50"], 20)])
def test_an_autoscaled_group_starts_with_its_replicas(overrides: list[str], replicas: int) -> None:
    """Where no workers run yet, as many start as the values say, within the bounds of the autoscaler."""
    assert workers("elastic", overrides) == replicas


@pytest.mark.parametrize("running", [0, 6, 30])
def test_an_upgrade_of_an_autoscaled_group_moves_no_partition(running: int, tmp_path: Path) -> None:
    """As many workers as are running go on, whoever chose the number: the values are only where it starts."""
    deployments = {(chart.NAMESPACE, "fraud-npstream"): {"replicas": running}}
    with cluster.holding(deployments, tmp_path) as kubeconfig:
        upgrade = ["--is-upgrade", "--dry-run=server", "--kubeconfig", str(kubeconfig)]

        assert workers("elastic", ["autoscaling.enabled=true"], upgrade) == running
        assert workers("elastic", ["autoscaling.enabled=false"], upgrade) == 3


def test_a_first_install_asks_the_cluster_in_vain(tmp_path: Path) -> None:
    """A cluster without the workload is no error: the values say where it starts."""
    with cluster.holding({("other", "fraud-npstream"): {"replicas": 6}}, tmp_path) as kubeconfig:
        assert workers("elastic", [], ["--dry-run=server", "--kubeconfig", str(kubeconfig)]) == 3


def test_replicas_can_be_left_to_the_autoscaler() -> None:
    """Who applies rendered manifests again and again leaves the number out, so that it is not set back each time."""
    assert workers("elastic", ["replicas=null"]) is None


def workers(name: str, overrides: list[str], options: list[str] | None = None) -> int | None:
    """The replicas of the rendered workload."""
    manifests = chart.objects(chart.VALUES / f"{name}.yaml", overrides, options or [])
    found: int | None = chart.workload(manifests)["spec"].get("replicas")
    return found
