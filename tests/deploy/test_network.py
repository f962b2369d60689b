"""The network policy lets workers reach names, brokers and a schema registry, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import chart

DNS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]


def egress(bootstrap: str, network: dict[str, Any], tmp_path: Path) -> list[list[dict[str, Any]]]:
    """The ports of each rule of egress."""
    values = yaml.safe_load((chart.VALUES / "minimal.yaml").read_text())
    values["settings"]["kafka"]["bootstrap"] = bootstrap
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump({**values, "networkPolicy": network}))
    policy = chart.the(chart.objects(path), "NetworkPolicy")
    return [rule["ports"] for rule in policy["spec"]["egress"]]


@pytest.mark.parametrize(
    ("bootstrap", "ports"),
    [
        ("kafka:9092", [9092]),
        ("kafka:9094", [9094]),
        ("a:9094, b:9094,c:19094", [9094, 19094]),
        ("kafka", [9092]),
        ("SASL_SSL://kafka.example.org:443", [443]),
        ("[fd00::1]:9095,[fd00::2]", [9095, 9092]),
    ],
)
@pytest.mark.parametrize("network", [{}, {"brokerPorts": []}, {"brokerPorts": None}])
def test_the_ports_of_the_brokers_are_open(
    bootstrap: str, ports: list[int], network: dict[str, Any], tmp_path: Path
) -> None:
    """Egress follows the addresses of the brokers: each of their ports once, and no other."""
    expected = [{"port": port, "protocol": "TCP"} for port in ports]

    assert egress(bootstrap, network, tmp_path) == [DNS, expected]


def test_ports_may_be_given(tmp_path: Path) -> None:
    """Brokers that advertise other ports than those that are asked first are reached by the ports given."""
    assert egress("kafka:9092", {"brokerPorts": [31092]}, tmp_path) == [DNS, [{"port": 31092, "protocol": "TCP"}]]


def test_ports_that_only_the_worker_knows_must_be_given(tmp_path: Path) -> None:
    """An address that is filled in when the worker starts says nothing to a network policy."""
    overrides = ["settings.kafka.bootstrap=${BROKERS}"]

    _, manifests, messages = chart.template(chart.VALUES / "minimal.yaml", overrides)

    assert manifests == ""
    assert "networkPolicy.brokerPorts: missing" in messages
    assert egress("${BROKERS}", {"brokerPorts": [9093]}, tmp_path)[1] == [{"port": 9093, "protocol": "TCP"}]
    assert chart.template(chart.VALUES / "minimal.yaml", [*overrides, "networkPolicy.enabled=false"])[0] == 0


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://registry:8081", 8081),
        ("http://registry/below/it", 80),
        ("https://registry.example.org", 443),
        ("https://[fd00::1]:9443/api", 9443),
    ],
)
def test_the_port_of_the_registry_is_open(url: str, port: int) -> None:
    """Where the settings name a schema registry, its port is open and no other."""
    code, manifests, messages = chart.template(chart.VALUES / "minimal.yaml", [f"settings.events.registry.url={url}"])

    assert code == 0, messages
    (policy,) = [each for each in yaml.safe_load_all(manifests) if each and each["kind"] == "NetworkPolicy"]
    assert policy["spec"]["egress"][2:] == [{"ports": [{"port": port, "protocol": "TCP"}]}]


def test_a_port_of_the_registry_that_only_the_worker_knows() -> None:
    """It cannot be opened, so the address must be in the settings."""
    overrides = ["settings.events.registry.url=${REGISTRY}"]

    _, manifests, messages = chart.template(chart.VALUES / "minimal.yaml", overrides)

    assert manifests == ""
    assert "settings.events.registry.url: write the address itself" in messages
    assert chart.template(chart.VALUES / "minimal.yaml", [*overrides, "networkPolicy.enabled=false"])[0] == 0


@pytest.mark.parametrize(
    ("security", "port"),
    [
        (["mechanism=OAUTHBEARER", "token_url=https://id.example.org/token", "client_id=c"], 443),
        (["mechanism=OAUTHBEARER", "token_url=http://id:8080/token", "client_id=c"], 8080),
        (["mechanism=AWS_MSK_IAM", "aws_region=eu-central-1"], 443),
    ],
)
def test_the_port_of_whoever_gives_tokens_is_open(security: list[str], port: int) -> None:
    """That of the identity provider, or of AWS."""
    secret = ["client_secret=${file:/etc/npstream/secrets/client/secret}"] if "client_id=c" in security else []
    given = [f"settings.kafka.security.{each}" for each in ["protocol=SASL_SSL", *security, *secret]]

    policy = chart.the(chart.objects(chart.VALUES / "minimal.yaml", given), "NetworkPolicy")

    assert policy["spec"]["egress"][2:] == [{"ports": [{"port": port, "protocol": "TCP"}]}]
