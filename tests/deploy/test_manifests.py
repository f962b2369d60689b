"""Every rendered object is one that a cluster would take."""

import copy
import os
from pathlib import Path

import kubernetes_validate
import pytest

from tests.deploy import chart
from tests.deploy.schemas import CRDS, complaints, operator_schemas
from tests.deploy.tools import ROOT, full_check, run, said

OLDEST, NEWEST = "1.27", "1.37"
KUBECTL_VALIDATE = ROOT / ".cache" / "bin" / "kubectl-validate"


def is_operators(manifest: chart.Manifest) -> bool:
    """Whether an operator's own resource is meant, which Kubernetes itself does not know."""
    return (manifest["apiVersion"], manifest["kind"]) in operator_schemas()


def built_in(name: str) -> list[chart.Manifest]:
    """The objects of a value set that Kubernetes itself knows."""
    return [manifest for manifest in chart.rendered(name) if not is_operators(manifest)]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_kubernetes_knows_every_field(name: str, version: str) -> None:
    """Built-in kinds pass Kubernetes' own schemas without unknown fields, in the oldest and the newest version."""
    manifests = built_in(name)
    assert len(manifests) >= 5
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_the_operators_know_every_field(name: str) -> None:
    """Resources of Strimzi, KEDA and the Prometheus operator pass the schemas those operators install."""
    operators = [manifest for manifest in chart.rendered(name) if is_operators(manifest)]

    assert [complaint for manifest in operators for complaint in complaints(manifest)] == []


def test_every_operator_kind_is_rendered_somewhere() -> None:
    """The value sets between them make each resource that has a schema here, so that none goes unchecked."""
    rendered = {(m["apiVersion"], m["kind"]) for name in chart.VALUE_SETS for m in chart.rendered(name)}

    assert set(operator_schemas()) <= rendered


def test_an_unknown_field_is_found() -> None:
    """The check itself can fail: a misspelt field of an operator's resource, and of a built-in kind, is seen."""
    topic = copy.deepcopy(chart.of_kind(chart.rendered("strimzi"), "KafkaTopic")[0])
    topic["spec"]["partition"] = topic["spec"].pop("partitions")
    budget = copy.deepcopy(chart.the(chart.rendered("minimal"), "PodDisruptionBudget"))
    budget["spec"]["maxUnavailible"] = 1

    assert any("'partition' was unexpected" in complaint for complaint in complaints(topic))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(budget, NEWEST, strict=True)


@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_kubectl_validate_agrees(name: str, tmp_path: Path) -> None:
    """The API server's own validation code, with the operators' definitions and their rules, takes every object."""
    full_check()
    assert os.access(KUBECTL_VALIDATE, os.X_OK), "`make deploy-check` builds it"
    (tmp_path / "manifests.yaml").write_text(chart.rendered_text(name))

    done = run(str(KUBECTL_VALIDATE), str(tmp_path), "--version", "1.35", "--local-crds", str(CRDS))

    assert done.returncode == 0, said(done)


def test_kubectl_validate_finds_a_mistake(tmp_path: Path) -> None:
    """The check itself can fail: a user without the type of its authorization is seen."""
    full_check()
    broken = chart.rendered_text("strimzi").replace("    type: simple\n", "", 1)
    (tmp_path / "manifests.yaml").write_text(broken)

    done = run(str(KUBECTL_VALIDATE), str(tmp_path), "--version", "1.35", "--local-crds", str(CRDS))

    assert done.returncode != 0, said(done)
