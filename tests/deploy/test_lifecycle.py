"""What outlives a release, and what a release must not undo when it is changed."""

import pytest

from tests.deploy import chart
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
