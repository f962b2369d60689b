"""The chart, rendered: manifests as Helm would send them to a cluster."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.tools import DEPLOY, program, run, said

CHART = DEPLOY / "helm" / "npstream"
VALUES = Path(__file__).with_name("values")
VALUE_SETS = ("minimal", "strimzi", "elastic", "everything", "production")
HOOK = "helm.sh/hook"
RELEASE, NAMESPACE = "fraud", "fraud"

Manifest = dict[str, Any]


def template(values: Path, overrides: Sequence[str] = (), options: Sequence[str] = ()) -> tuple[int, str, str]:
    """(exit code, manifests, messages) of `helm template`; `overrides` as in --set, `options` as they are."""
    assignments = [part for override in overrides for part in ("--set", override)]
    command = [program("helm"), "template", RELEASE, str(CHART), "--namespace", NAMESPACE, "-f", str(values)]
    done = run(*command, *assignments, *options)
    return done.returncode, done.stdout, done.stderr


def objects(values: Path, overrides: Sequence[str] = (), options: Sequence[str] = ()) -> list[Manifest]:
    """What values that can be used make, one object after another."""
    code, manifests, messages = template(values, overrides, options)
    assert (code, messages) == (0, ""), messages
    return [document for document in yaml.safe_load_all(manifests) if document]


@cache
def rendered_text(name: str) -> str:
    """What one of the value sets makes, as one YAML stream."""
    code, manifests, messages = template(VALUES / f"{name}.yaml")
    assert (code, messages) == (0, ""), messages
    return manifests


def rendered(name: str) -> list[Manifest]:
    """What one of the value sets makes, one object after another."""
    return [document for document in yaml.safe_load_all(rendered_text(name)) if document]


def of_kind(manifests: Sequence[Manifest], *kinds: str) -> list[Manifest]:
    """The objects of these kinds."""
    return [manifest for manifest in manifests if manifest["kind"] in kinds]


def the(manifests: Sequence[Manifest], *kinds: str) -> Manifest:
    """The only object of these kinds."""
    (found,) = of_kind(manifests, *kinds)
    return found


def installed(manifests: Sequence[Manifest]) -> list[Manifest]:
    """What stays: no hooks, which run before an install or for a test of it."""
    return [manifest for manifest in manifests if HOOK not in manifest["metadata"].get("annotations", {})]


def hook(manifests: Sequence[Manifest], moment: str, kind: str) -> Manifest:
    """The only object of this kind that is there for this moment of a release."""
    hooks = [manifest for manifest in manifests if moment in hook_moments(manifest)]
    return the(hooks, kind)


def hook_moments(manifest: Manifest) -> list[str]:
    """When Helm makes the object, if it is a hook."""
    found: str = manifest["metadata"].get("annotations", {}).get(HOOK, "")
    return found.split(",")


def workload(manifests: Sequence[Manifest]) -> Manifest:
    """The StatefulSet or the Deployment."""
    return the(manifests, "StatefulSet", "Deployment")


def pod(manifests: Sequence[Manifest]) -> Manifest:
    """The spec of a worker's pod."""
    spec: Manifest = workload(manifests)["spec"]["template"]["spec"]
    return spec


def pods(manifests: Sequence[Manifest]) -> list[Manifest]:
    """The templates of all pods: the workers', those of jobs, and the pod of `helm test`."""
    made = [manifest["spec"]["template"] for manifest in of_kind(manifests, "StatefulSet", "Deployment", "Job")]
    return made + of_kind(manifests, "Pod")


def worker(manifests: Sequence[Manifest]) -> Manifest:
    """The container that is the worker."""
    (found,) = [container for container in containers(pod(manifests)) if container["name"] == "worker"]
    return found


def containers(pod: Manifest) -> list[Manifest]:
    """All containers of a pod's spec."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


def lint(values: Path) -> tuple[int, str]:
    """(exit code, all that was said) of `helm lint --strict`."""
    done = run(program("helm"), "lint", "--strict", str(CHART), "-f", str(values))
    return done.returncode, said(done)
