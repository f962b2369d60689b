"""What the worker would refuse at its start, the chart refuses before anything is installed; and no more than that."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from npstream.kafka.config import REFUSED
from npstream.settings import Settings, from_mapping
from tests.deploy import chart
from tests.settings import test_problems
from tests.settings.builders import mapping, problems
from tests.settings.test_sizes import largest_buffer

# The mistakes that the settings' own tests make, so that a rule which is new there is missed here.
(_MISTAKES,) = (mark.args[1] for mark in getattr(test_problems.test_each_mistake_is_named_by_its_path, "pytestmark"))  # noqa: B009
OF_THE_SETTINGS: list[tuple[dict[str, Any], str]] = _MISTAKES
OF_THE_MODEL: list[tuple[dict[str, Any], str]] = [
    ({"model": {"tau": 2}}, "model.tau"),
    ({"model": {"tau": 0}}, "model.tau"),
    ({"model": {"d": 0}}, "model.d"),
    ({"model": {"d": 10_001}}, "model.d"),
    ({"model": {"D": 0}}, "model.D"),
    ({"model": {"seed": -1}}, "model.seed"),
    ({"model": {"eta": 0}}, "model.eta"),
    ({"model": {"beta": 1.5}}, "model.beta"),
    ({"model": {"budget": 0}}, "model.budget"),
    ({"model": {"input": "raw"}}, "model.input"),
    ({"model": {"gamma_update": "stochastic"}}, "model.gamma_update"),
    ({"model": {"lam": 0.01}}, "model.lam"),
    ({"model": {"preset": "paper", "budget": 5}}, "model.budget"),
    ({"model": {"preset": "paper", "charge": "issue"}}, "model.charge"),
    ({"model": {"preset": "external", "d": 0, "one_class": True}}, "model.one_class"),
    ({"model": {"d": 29}, "labels": {"buffer_max": 9_000_000}}, "labels.buffer_max"),
    ({"model": {"d": 10_000, "D": 3_000}}, "model.D"),
    ({"start": "2026-13-01T00:00:00Z"}, "start"),
]
OPTIONS = sorted({*REFUSED, "error_cb"})


def values(tmp_path: Path, settings: dict[str, Any]) -> Path:
    """A values file with these settings; workers are named after their pods."""
    kafka = settings.get("kafka")
    if isinstance(kafka, dict):
        settings = {**settings, "kafka": {name: value for name, value in kafka.items() if name != "worker_name"}}
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump({"partitions": 3, "settings": settings}))
    return path


@pytest.mark.parametrize(("sections", "expected"), OF_THE_SETTINGS + OF_THE_MODEL)
def test_what_the_worker_refuses_the_chart_refuses(sections: dict[str, Any], expected: str, tmp_path: Path) -> None:
    """Each mistake is refused by both, and both name the setting."""
    raw = mapping(**sections)
    (name, *_) = expected.partition(":")[0].split(" ")

    code, manifests, messages = chart.template(values(tmp_path, raw))

    assert any(problem.startswith(name) or expected in problem for problem in problems(raw))
    assert (code, manifests) == (1, "")
    # A section that is missing or too much is named without a path.
    assert f"settings.{name}" in messages or all(section in messages for section in sections)


@pytest.mark.parametrize("option", OPTIONS)
def test_options_that_correctness_rests_on_are_refused(option: str, tmp_path: Path) -> None:
    """Exactly-once cannot be switched off through the chart either, and the reason is the worker's."""
    raw = mapping(kafka={"options": {option: "false"}})

    code, _, messages = chart.template(values(tmp_path, raw))

    assert code == 1
    assert [f"settings.{problem}" in messages for problem in problems(raw)] == [True]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_a_worker_that_only_its_pod_can_reach_is_refused(host: str) -> None:
    """Probes come from outside the pod: a worker that listens on loopback would be restarted forever."""
    code, _, messages = chart.template(chart.VALUES / "minimal.yaml", [f"settings.http.host={host}"])

    assert code == 1
    assert f"settings.http.host: {host}" in messages


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"events": {"features": ["a", "b", "c"]}},
        {"model": {"preset": "external", "d": 0}},
        {"model": {"preset": "paper", "input": "raw", "lam": 0.1, "gamma_update": "stochastic"}},
        {"model": {"tau": 1e-9, "beta": 0, "budget": 1e9}},
        {"model": {"one_class": True, "input": "zscore"}},
        {"start": "2026-05-01T00:00:00.5+02:00"},
        {"start": "2026-02-28 23:59Z"},
        {"kafka": {"options": {"linger.ms": 1, "statistics.interval.ms": 0}}},
        {"kafka": {"security": {"protocol": "SASL_SSL", "mechanism": "AWS_MSK_IAM", "aws_region": "eu-central-1"}}},
        {"kafka": {"security": {"protocol": "SSL", "ca_file": "ca", "cert_file": None, "key_file": None}}},
        {"events": {"format": "f32", "max_bytes": 12}},
        {"model": {"d": 29}, "labels": {"buffer_max": largest_buffer()}},
        {"labels": {"expire_events": None, "expire_seconds": 0.5}},
    ],
    ids=json.dumps,
)
def test_what_the_worker_accepts_the_chart_accepts(sections: dict[str, Any], tmp_path: Path) -> None:
    """No rule of the chart is stricter than the worker's own; what it renders loads as what was given."""
    raw = mapping(**sections)

    manifests = chart.objects(values(tmp_path, raw))

    assert loaded(manifests) == from_mapping(raw)


@pytest.mark.parametrize(
    ("given", "path", "expected"),
    [
        ("settings.model.tau=0.02", "model.tau", 0.02),
        ("settings.model.tau=2e-3", "model.tau", 0.002),
        ("settings.model.D=200", "model.D", 200),
        ("settings.worker.drain_seconds=2.5", "worker.drain_seconds", 2.5),
        ("settings.labels.expire_seconds=86400.5", "labels.expire_seconds", 86400.5),
    ],
)
@pytest.mark.parametrize("how", ["--set", "--set-string"])
def test_a_number_may_come_as_text(given: str, path: str, expected: float, how: str) -> None:
    """Helm makes text of every number with a point of the command line; the worker's file has the number."""
    manifests = chart.objects(chart.VALUES / "minimal.yaml", options=[how, given])
    section, name = path.split(".")

    assert settings_of(manifests)[section][name] == expected
    loaded(manifests)


def test_a_scaling_threshold_may_come_as_text() -> None:
    """So it is with the chart's own number."""
    manifests = chart.objects(chart.VALUES / "elastic.yaml", ["autoscaling.lagSeconds=2.5"])

    (trigger,) = chart.the(manifests, "ScaledObject")["spec"]["triggers"]
    assert trigger["metadata"]["threshold"] == "2.5"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("settings.model.tau=2.5", "settings.model.tau: 2.5 must be below 1"),
        ("settings.model.tau=0.0", "settings.model.tau: 0.0 must be above 0"),
        ("settings.model.beta=1.5", "settings.model.beta: 1.5 must be at most 1"),
        ("settings.worker.drain_seconds=-0.5", "settings.worker.drain_seconds: -0.5 must be above 0"),
        ("settings.model.D=1.5", "settings.model.D: Does not match pattern"),
        ("settings.model.tau=1.2.3", "settings.model.tau: Does not match pattern"),
        ("autoscaling.lagSeconds=-0.5", "autoscaling.lagSeconds: -0.5 must be above 0"),
    ],
)
def test_a_number_as_text_has_the_same_bounds(override: str, message: str) -> None:
    """What is out of range as a number is out of range as text."""
    code, _, messages = chart.template(chart.VALUES / "elastic.yaml", [override])

    assert code == 1
    assert message in messages


@pytest.mark.parametrize(("seed", "expected"), [(2**53 - 1, 2**53 - 1), (str(2**63 - 1), 2**63 - 1), (2**53 + 1, None)])
def test_a_large_seed_is_exact_or_refused(seed: int | str, expected: int | None, tmp_path: Path) -> None:
    """Helm reads numbers of a file as floating point: one that it cannot hold must be in quotes, not be another."""
    path = values(tmp_path, mapping(model={"seed": seed}))
    if expected is None:
        assert "settings.model.seed: put it in quotes" in chart.template(path)[2]
    else:
        assert loaded(chart.objects(path)).model.seed == expected


def settings_of(manifests: list[chart.Manifest]) -> dict[str, Any]:
    """The settings in the rendered ConfigMap."""
    (found,) = [m for m in chart.of_kind(chart.installed(manifests), "ConfigMap") if "settings.yaml" in m["data"]]
    settings: dict[str, Any] = yaml.safe_load(found["data"]["settings.yaml"])
    return settings


def loaded(manifests: list[chart.Manifest]) -> Settings:
    """What the worker makes of them."""
    return from_mapping(settings_of(manifests), {"HOSTNAME": "w-0"})
