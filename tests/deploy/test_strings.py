"""Strings stay strings, every object says its namespace, and the chart is complete wherever it is copied to."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy import chart
from tests.deploy.schemas import complaints, operator_schemas
from tests.deploy.tools import program, run, said

ODD = ("4711", "2024", "0x1f", "1e3", "y", "no", "off", "null", "0123", "1.5")
"""Names that YAML takes for something else when they are not quoted."""


def odd_values(name: str, odd: str) -> dict[str, Any]:
    """One of the value sets with an odd word for every name that a user chooses."""
    values: dict[str, Any] = yaml.safe_load((chart.VALUES / f"{name}.yaml").read_text())
    values["settings"]["topics"] = {"events": odd, "decisions": f"{odd}0"}
    values["settings"]["kafka"]["group"] = odd
    values["secrets"] = [{"name": "0", "secretName": odd}]
    values["files"] = [{"name": "1", "configMapName": odd}]
    values["image"] = {"repository": odd, "tag": odd}
    values["imagePullSecrets"] = [{"name": odd}]
    values["priorityClassName"] = odd
    values["podLabels"] = values["podAnnotations"] = values["nodeSelector"] = {"example.org/it": odd}
    values["env"] = [{"name": "IT", "value": odd}]
    values["serviceAccount"] = {"name": odd if name == "everything" else "", "annotations": {"it": odd}}
    values["monitoring"] = {"podMonitor": True, "prometheusRule": True, "labels": {"it": odd}, "interval": "30s"}
    values["dashboard"] = {"enabled": True, "labels": {"it": odd}}
    values["nameOverride"] = odd
    values["job"] = {"args": [odd]}
    if name == "elastic":
        values["autoscaling"]["authenticationRef"] = odd
    if name in ("strimzi", "everything"):
        values["strimzi"] = {**values["strimzi"], "cluster": odd, "namespace": odd}
    return values


def lower_label(odd: str) -> str:
    """The word as a name of a release: letters, digits and hyphens."""
    return odd.replace(".", "-")


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_every_string_is_a_string(name: str, odd: str, tmp_path: Path) -> None:
    """Whatever a release, a namespace, a topic or a secret is called, Kubernetes and the operators read it as text."""
    path = tmp_path / "values.yaml"
    path.write_text(json.dumps(odd_values(name, odd)))
    release = lower_label(odd)

    done = run(program("helm"), "template", release, str(chart.CHART), "--namespace", release, "-f", str(path))

    assert done.returncode == 0, said(done)
    # Python's reader takes fewer words for something else than that of Kubernetes, so the text itself is looked at.
    assert re.findall(rf"^.*(?::|-|\[|,) {re.escape(odd)}(?=$|,|\]).*$", done.stdout, re.MULTILINE) == []
    for manifest in filter(None, yaml.safe_load_all(done.stdout)):
        if (manifest["apiVersion"], manifest["kind"]) in operator_schemas():
            assert complaints(manifest) == []
        else:
            kubernetes_validate.validate(manifest, "1.31", strict=True)
        assert [place for place, value in metadata(manifest) if not isinstance(value, str)] == []


def metadata(manifest: chart.Manifest) -> Iterator[tuple[str, Any]]:
    """(where, value) of everything that must be text in any object: names, labels, annotations."""
    found = manifest["metadata"]
    yield from ((key, found[key]) for key in ("name", "namespace"))
    for key in ("labels", "annotations"):
        yield from ((f"{key}.{name}", value) for name, value in found.get(key, {}).items())


@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_every_object_says_its_namespace(name: str) -> None:
    """Rendered manifests go where the release is, whatever namespace kubectl is set to; Strimzi's go to Strimzi."""
    values = yaml.safe_load((chart.VALUES / f"{name}.yaml").read_text())
    strimzi = values.get("strimzi", {}).get("namespace", chart.NAMESPACE)

    for manifest in chart.rendered(name):
        expected = strimzi if manifest["kind"].startswith("Kafka") else chart.NAMESPACE
        assert manifest["metadata"].get("namespace") == expected, manifest["kind"]


@pytest.mark.parametrize("release", ["4711", "fraud", "a" * 53, "1" + "a" * 52])
def test_the_service_has_a_name_that_services_may_have(release: str) -> None:
    """A Service begins with a letter, whatever the release begins with; the StatefulSet asks for that Service."""
    values = str(chart.VALUES / "minimal.yaml")
    done = run(program("helm"), "template", release, str(chart.CHART), "-f", values)
    assert done.returncode == 0, said(done)
    manifests = [document for document in yaml.safe_load_all(done.stdout) if document]

    name = chart.the(manifests, "Service")["metadata"]["name"]

    assert name[0].isalpha()
    assert len(name) <= 63
    assert chart.workload(manifests)["spec"]["serviceName"] == name


def test_a_copy_without_links_is_the_same_chart(tmp_path: Path) -> None:
    """Copied by a tool that does not follow links, the chart still has its dashboard and its rules."""
    copy = tmp_path / "npstream"
    shutil.copytree(chart.CHART, copy, symlinks=True)
    values = str(chart.VALUES / "strimzi.yaml")

    done = run(program("helm"), "template", chart.RELEASE, str(copy), "--namespace", chart.NAMESPACE, "-f", values)

    assert (done.returncode, done.stderr) == (0, ""), said(done)
    assert done.stdout == chart.rendered_text("strimzi")
    assert [path for path in chart.CHART.rglob("*") if path.is_symlink()] == []
