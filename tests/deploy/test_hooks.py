"""What runs before an install, and what `helm test` runs: the worker's own rules, with the worker's own access."""

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from npstream.cli import cli
from tests.cli.lines import npstream
from tests.deploy import chart

CHECKED = ("minimal", "elastic", "production")


def check_job(name: str) -> chart.Manifest:
    """The job that checks the settings before an install."""
    return chart.hook(chart.rendered(name), "pre-install", "Job")


def container(job: chart.Manifest) -> chart.Manifest:
    """The only container of a job."""
    (found,) = job["spec"]["template"]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize("name", CHECKED)
def test_settings_are_checked_before_anything_is_installed_or_changed(name: str) -> None:
    """Job and settings are hooks of the same moments, settings first; the job runs what the worker will run with."""
    manifests = chart.rendered(name)
    job, settings = check_job(name), chart.hook(manifests, "pre-install", "ConfigMap")
    worker = chart.worker(manifests)

    assert chart.hook_moments(job) == chart.hook_moments(settings) == ["pre-install", "pre-upgrade"]
    assert int(settings["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0
    installed = chart.the(chart.installed(manifests), "ConfigMap")
    assert settings["data"] == installed["data"]
    assert container(job)["args"] == ["check", *worker["args"][1:]]
    assert {key: container(job)[key] for key in ("image", "env")} == {key: worker[key] for key in ("image", "env")}
    assert job["spec"]["backoffLimit"] == 0


@pytest.mark.parametrize("name", CHECKED)
def test_a_check_needs_nothing_that_the_release_brings(name: str) -> None:
    """No account and no settings of a release that is not there, and no Secret that it would wait for."""
    manifests = chart.rendered(name)
    pod = check_job(name)["spec"]["template"]["spec"]
    before = {m["metadata"]["name"] for m in manifests if "pre-install" in chart.hook_moments(m)}

    assert pod["serviceAccountName"] == "default"
    for volume in pod["volumes"]:
        if "secret" in volume:
            assert volume["secret"]["optional"] is True
        if volume["name"] == "settings":
            assert volume["configMap"]["name"] in before


def test_workers_wait_for_their_secrets() -> None:
    """Only the check goes on without them: a worker would end over and over."""
    for volume in chart.pod(chart.rendered("production"))["volumes"]:
        assert "optional" not in volume.get("secret", {})


def test_a_user_that_strimzi_makes_is_not_asked_for_before_it_is_there() -> None:
    """Before the first install there is no Secret; before an upgrade there is."""
    values = chart.VALUES / "strimzi.yaml"
    first, upgrade = (chart.objects(values, options=options) for options in ([], ["--is-upgrade"]))

    assert [m for m in first if "pre-install" in chart.hook_moments(m)] == []
    assert container(chart.hook(upgrade, "pre-upgrade", "Job"))["args"][0] == "check"


def test_a_check_can_be_left_out() -> None:
    """Where no pod may run before the release."""
    manifests = chart.objects(chart.VALUES / "minimal.yaml", ["check.enabled=false"])

    assert [m for m in manifests if "pre-install" in chart.hook_moments(m)] == []


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({}, ""),
        ({"options": {"fetch.wait.max": 5}}, 'No such configuration property: "fetch.wait.max"'),
        (
            {
                "security": {
                    "protocol": "SASL_SSL",
                    "mechanism": "PLAIN",
                    "username": "u",
                    "password": "${file:/etc/npstream/secrets/user/password}",
                }
            },
            "kafka.security.password: cannot read /etc/npstream/secrets/user/password",
        ),
    ],
    ids=["fine", "unknown option", "no secret"],
)
def test_what_templates_cannot_know_is_refused_by_the_check(
    settings: dict[str, Any], reported: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's command, run with the job's settings and variables, ends with an error that names the setting."""
    values = yaml.safe_load((chart.VALUES / "minimal.yaml").read_text())
    values["settings"]["kafka"].update(settings)
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    manifests = chart.objects(path)
    file = tmp_path / "settings.yaml"
    file.write_text(chart.hook(manifests, "pre-install", "ConfigMap")["data"]["settings.yaml"])
    command = container(chart.hook(manifests, "pre-install", "Job"))
    for entry in command["env"]:
        monkeypatch.setenv(entry["name"], entry.get("value", "fraud-npstream-check-abcde"))

    done = npstream(*[str(file) if word.endswith(".yaml") else word for word in command["args"]])

    assert (done.code == 0) is (reported == ""), done.err
    assert reported in done.err


@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_helm_test_runs_a_command_with_the_workers_access(name: str) -> None:
    """`helm test` runs a command that exists, as the worker's account, with its settings, under its network policy."""
    manifests = chart.rendered(name)
    pod = chart.hook(manifests, "test", "Pod")
    (test,) = pod["spec"]["containers"]
    command, *arguments = test["args"]
    policy = chart.the(manifests, "NetworkPolicy")["spec"]["podSelector"]
    found = cli.get_command(click.Context(cli), command)
    assert found is not None

    context = found.make_context(command, arguments)

    assert str(context.params["config"]) == "/etc/npstream/settings.yaml"
    worker = chart.pod(manifests)
    assert pod["spec"]["serviceAccountName"] == worker["serviceAccountName"]
    assert pod["spec"]["volumes"] == worker["volumes"]
    labels = pod["metadata"]["labels"]
    assert policy["matchLabels"].items() <= labels.items()
    assert labels["app.kubernetes.io/name"] in policy["matchExpressions"][0]["values"]
    selector = chart.workload(manifests)["spec"]["selector"]["matchLabels"]
    assert not selector.items() <= labels.items()
