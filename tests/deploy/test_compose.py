"""compose.yaml: everything it mounts is there, and what it starts would start."""

import shutil
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from npstream.cli import cli
from npstream.settings import load
from tests.deploy.tools import DEPLOY, promtool, run, said

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SETTINGS = DEPLOY / "compose" / "settings.yaml"


def mounts(service: str) -> dict[str, Path]:
    """Files of this folder by the path they have inside a service."""
    pairs = [volume.split(":") for volume in SERVICES[service].get("volumes", ())]
    return {pair[1]: DEPLOY / pair[0] for pair in pairs if pair[0].startswith(".")}


@pytest.mark.parametrize("service", SERVICES)
def test_everything_mounted_is_there_and_read_only(service: str) -> None:
    """An engine would make an empty folder of a missing file, and go on."""
    assert [str(path) for path in mounts(service).values() if not path.is_file()] == []
    assert [
        volume for volume in SERVICES[service].get("volumes", ()) if volume[0] == "." and volume[-3:] != ":ro"
    ] == []


@pytest.mark.parametrize("service", SERVICES)
def test_images_are_pinned_and_ports_are_local(service: str) -> None:
    """Nothing moves by itself, and nothing without a password is open to the network."""
    image = SERVICES[service]["image"]

    assert image == "npstream" or image.rpartition(":")[2] not in ("", "latest", image)
    assert [port for port in SERVICES[service].get("ports", ()) if not port.startswith("127.0.0.1:")] == []


def test_the_worker_accepts_its_settings() -> None:
    """The settings file loads; workers reach the broker of the same file and are scraped where they listen."""
    settings = load(SETTINGS, {"HOSTNAME": "worker-1"})

    assert settings.kafka is not None
    assert settings.kafka.bootstrap == "kafka:9092"
    assert settings.http is not None
    assert (settings.http.host, settings.http.port) == ("0.0.0.0", 8080)
    assert settings.worker.drain_seconds < float(SERVICES["worker"]["stop_grace_period"].removesuffix("s"))


@pytest.mark.parametrize("service", ["init", "worker"])
def test_the_commands_exist(service: str) -> None:
    """What compose starts is a command of the program, with options it has."""
    name, *arguments = SERVICES[service]["command"]
    inside = mounts(service)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None

    context = command.make_context(name, [str(inside.get(argument, argument)) for argument in arguments])

    assert context.params["config"] == SETTINGS


def test_the_worker_runs_as_it_does_in_the_chart() -> None:
    """Read-only root, no rights kept, a small writable /tmp."""
    worker = SERVICES["worker"]

    assert worker["read_only"] is True
    assert worker["tmpfs"] == ["/tmp"]
    assert worker["cap_drop"] == ["ALL"]


def test_prometheus_accepts_its_settings(tmp_path: Path) -> None:
    """Prometheus' own check takes the settings together with the rules, as they lie in the container."""
    for inside, path in mounts("prometheus").items():
        shutil.copy(path, tmp_path / Path(inside).name)

    done = run(promtool(), "check", "config", "prometheus.yaml", cwd=tmp_path)

    assert done.returncode == 0, said(done)
    assert "npstream.rules.yaml" in done.stdout


def test_grafana_finds_its_dashboard() -> None:
    """The folder that Grafana reads is the one that the dashboard is mounted into."""
    inside = mounts("grafana")
    provider = yaml.safe_load(inside["/etc/grafana/provisioning/dashboards/npstream.yaml"].read_text())["providers"][0]
    (dashboard,) = [path for path, source in inside.items() if source.name == "npstream.json"]

    assert str(Path(dashboard).parent) == provider["options"]["path"]
    assert SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == dashboard
