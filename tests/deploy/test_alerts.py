"""The alert rules: they load, they fire when they should, and each leads to a runbook."""

import re
from pathlib import Path
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
    """The PrometheusRule holds the rules as tested, but for where the runbooks are, when no number is given."""
    groups = chart.the(chart.rendered(name), "PrometheusRule")["spec"]["groups"]
    expected = yaml.safe_load(RULES.read_text().replace("deploy/README.md#", f"{runbooks}#"))["groups"]

    assert groups == expected


DEFAULTS = yaml.safe_load((chart.CHART / "values.yaml").read_text())["monitoring"]["thresholds"]
GIVEN = yaml.safe_load((chart.VALUES / "production.yaml").read_text())["monitoring"]["thresholds"]
ALERT_OF = {
    "lateCriticalSeconds": ("NpstreamLate", "critical"),
    "lateWarningSeconds": ("NpstreamLate", "warning"),
    "checkpointAgeSeconds": ("NpstreamCheckpointOld", "warning"),
    "abortShare": ("NpstreamAborts", "warning"),
    "rebalancesPerHour": ("NpstreamRebalances", "warning"),
    "fprStandardDeviations": ("NpstreamFprAboveTarget", "critical"),
    "withheldShare": ("NpstreamAlarmsWithheld", "warning"),
    "hoursWithoutLabels": ("NpstreamNoLabels", "warning"),
    "labelsLostShare": ("NpstreamLabelsLost", "warning"),
    "deadLetterShare": ("NpstreamDeadLetters", "warning"),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_number_of_the_values_is_that_of_its_alert_alone(name: str) -> None:
    """Another number changes one rule, there the number alone, and what the rule says of it."""
    override = [f"monitoring.thresholds.{name}={GIVEN[name]}"]
    manifests = chart.objects(chart.VALUES / "minimal.yaml", ["monitoring.prometheusRule=true", *override])
    groups = chart.the(manifests, "PrometheusRule")["spec"]["groups"]
    changed = [
        (before, after)
        for before, after in zip(alerts(), (rule for group in groups for rule in group["rules"]), strict=True)
        if before != after
    ]

    ((before, after),) = changed
    assert (before["alert"], before["labels"]["severity"]) == ALERT_OF[name]
    assert after["expr"] == with_number(before["expr"], name)
    assert {"alert", "for"} <= {key for key in before if before[key] == after[key]}


def with_number(expression: str, name: str) -> str:
    """The expression with the given number for the default: the end of a line, or the hours of a range."""
    before, after = DEFAULTS[name], GIVEN[name]
    if name == "hoursWithoutLabels":
        return expression.replace(f"{before}h", f"{after}h")
    return re.sub(rf"> {before}$", f"> {after}", expression, count=1, flags=re.MULTILINE)


def test_what_an_alert_says_of_its_number_is_right() -> None:
    """The label and the description of a rule follow its number."""
    groups = chart.the(chart.rendered("production"), "PrometheusRule")["spec"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]

    assert [rule["labels"]["threshold"] for rule in rules if rule["alert"] == "NpstreamLate"] == ["45s", "15s"]
    (labels,) = [rule["annotations"] for rule in rules if rule["alert"] == "NpstreamNoLabels"]
    assert "no label was learned for 24 hours" in labels["description"]


def test_prometheus_loads_rules_with_other_numbers(tmp_path: Path) -> None:
    """What the chart writes is what Prometheus' own check accepts."""
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(chart.the(chart.rendered("production"), "PrometheusRule")["spec"]))

    done = run(promtool(), "check", "rules", str(path))

    assert done.returncode == 0, said(done)
    assert f"{len(alerts())} rules found" in done.stdout + done.stderr
