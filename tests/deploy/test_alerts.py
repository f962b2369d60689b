"""The alert rules: they load, they fire when they should, and each leads to a runbook."""

import re
from typing import Any

import pytest
import yaml

from tests.deploy import chart
from tests.deploy.queries import complaints, selectors
from tests.deploy.tools import DEPLOY, promtool, run, said

RULES = chart.CHART / "files" / "npstream.rules.yaml"
TESTS = DEPLOY / "alerts" / "npstream.test.yaml"
README = DEPLOY / "README.md"


def alerts() -> list[dict[str, Any]]:
    """Every alert rule, in the order of the file."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_prometheus_loads_the_rules() -> None:
    """Prometheus' own check accepts the file."""
    done = run(promtool(), "check", "rules", str(RULES))

    assert done.returncode == 0, said(done)
    assert f"{len(alerts())} rules found" in done.stdout + done.stderr


def test_the_alerts_fire_when_they_should_and_only_then() -> None:
    """The unit tests of the rules pass in Prometheus' own evaluation."""
    done = run(promtool(), "test", "rules", TESTS.name, cwd=TESTS.parent)

    assert done.returncode == 0, said(done)


def test_every_alert_has_a_story() -> None:
    """No rule is without a case in which it fires, with just its labels."""
    cases = [case for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test["alert_rule_test"]]
    fired = {(case["alertname"], tuple(sorted(static(alert)))) for case in cases for alert in case["exp_alerts"]}

    assert {(rule["alert"], tuple(sorted(rule["labels"].items()))) for rule in alerts()} == fired


def static(alert: dict[str, Any]) -> set[tuple[str, str]]:
    """The labels of an expected alert that come from its rule, not from its series."""
    own = ("severity", "threshold", "scope")
    return {(name, value) for name, value in alert["exp_labels"].items() if name in own}


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_rules_name_only_what_workers_export(rule: dict[str, Any]) -> None:
    """Every metric, label and label value in a rule is in the worker's list: a rule on anything else never fires."""
    assert list(selectors(rule["expr"]))
    assert list(complaints(rule["expr"])) == []


def test_a_wrong_name_is_found() -> None:
    """The check itself can fail: a metric, a label and a value that no worker exports are seen."""
    query = 'npstream_lags + npstream_gamma{phase="live"} + npstream_partition_phase{phase="dead"}'

    assert list(complaints(query)) == [
        "npstream_lags is not exported",
        "npstream_gamma has no label phase",
        "no metric is ever phase=dead",
    ]


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_every_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    """Whoever is woken finds a summary, a description, a severity, and a runbook section of the alert's name."""
    headings = re.findall(r"^### (\w+)$", README.read_text(), re.MULTILINE)

    assert rule["annotations"]["runbook_url"] == f"deploy/README.md#{rule['alert'].lower()}"
    assert rule["alert"] in headings
    assert {"summary", "description"} <= set(rule["annotations"])
    assert rule["labels"]["severity"] in ("critical", "warning")


def test_no_runbook_is_left_behind() -> None:
    """Every runbook section belongs to an alert."""
    headings = re.findall(r"^### (Npstream\w+)$", README.read_text(), re.MULTILINE)

    assert sorted(headings) == sorted({rule["alert"] for rule in alerts()})


@pytest.mark.parametrize(
    ("name", "runbooks"), [("strimzi", "https://runbooks.example.org/npstream"), ("everything", "deploy/README.md")]
)
def test_the_chart_ships_the_same_rules(name: str, runbooks: str) -> None:
    """The PrometheusRule holds the rules as tested, but for where the runbooks are."""
    groups = chart.the(chart.rendered(name), "PrometheusRule")["spec"]["groups"]
    expected = yaml.safe_load(RULES.read_text().replace("deploy/README.md#", f"{runbooks}#"))["groups"]

    assert groups == expected
