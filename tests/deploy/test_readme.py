"""deploy/README.md and its neighbours: what they name exists, what they compute is right, what they show works."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from npstream.cli import cli
from npstream.cli.exits import FATAL, SETTINGS, STATE
from npstream.monitor.watchdog import EXIT_STUCK
from npstream.settings import from_mapping, sizes
from tests.deploy import chart
from tests.deploy.queries import complaints
from tests.deploy.tools import DEPLOY, program, run, said

TEXT = (DEPLOY / "README.md").read_text()
SECURITY = (DEPLOY / "SECURITY.md").read_text()
EXAMPLE = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def code() -> list[str]:
    """Everything set as code: blocks and words."""
    blocks = re.findall(r"```\w*\n(.*?)```", TEXT, re.DOTALL)
    return blocks + re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))


def test_it_names_only_metrics_that_exist() -> None:
    """Every metric in the text is one that workers export."""
    assert [complaint for piece in code() for complaint in complaints(piece)] == []
    assert "npstream_lag_seconds" in TEXT


def test_it_names_only_commands_that_exist() -> None:
    """Every `npstream ...` in the text is a command of the program."""
    named = {found for piece in code() for found in re.findall(r"(?:^|\n)npstream ([a-z]+)", piece)}

    assert {"init", "doctor", "check"} <= named
    assert named <= set(cli.list_commands(click.Context(cli)))


def test_the_files_it_lists_are_there() -> None:
    """The table at the top names what is in the folder, and nothing that is not."""
    listed = re.findall(r"^\| `([^`]+)` \|", TEXT.split("## Install")[0], re.MULTILINE)

    assert "Dockerfile" in listed
    assert [name for name in listed if not list(DEPLOY.glob(name))] == []


def test_its_example_can_be_installed(tmp_path: Path) -> None:
    """The values it shows render, and the settings in them load."""
    (example,) = EXAMPLE
    path = tmp_path / "fraud.yaml"
    path.write_text(example)

    exit_code, manifests, messages = chart.template(path)

    assert (exit_code, messages) == (0, "")
    kinds = {document["kind"] for document in yaml.safe_load_all(manifests) if document}
    assert {"StatefulSet", "PodMonitor", "PrometheusRule"} <= kinds


def helm_commands() -> list[list[str]]:
    """Every command of the text that gives values to Helm, up to a pipe."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)).replace("\\\n", " ")
    lines = [line for line in blocks.splitlines() if re.match("helm (install|upgrade|template) ", line)]
    return [shlex.split(line.partition(" | ")[0]) for line in lines]


@pytest.mark.parametrize("command", helm_commands(), ids=" ".join)
def test_its_helm_commands_work(command: list[str], tmp_path: Path) -> None:
    """What it says to type renders with the values it shows, and each `--set` arrives at the worker."""
    (example,) = EXAMPLE
    (tmp_path / "fraud.yaml").write_text(example)
    _, _, *arguments = (str(tmp_path / word) if word == "fraud.yaml" else word for word in command)

    done = run(program("helm"), "template", *(word for word in arguments if word != "--create-namespace"))

    assert done.returncode == 0, said(done)
    manifests = [document for document in yaml.safe_load_all(done.stdout) if document]
    for path, value in re.findall(r"settings\.([\w.]+)=(\S+)", " ".join(arguments)):
        found = [m["data"]["settings.yaml"] for m in manifests if "settings.yaml" in m.get("data", {})]
        section, key = path.split(".")
        assert [yaml.safe_load(settings)[section][key] for settings in found] == [yaml.safe_load(value)] * 2


def test_its_runbook_says_how_to_lower_tau() -> None:
    """To stop alarms is urgent: the command is there to be copied."""
    runbook = TEXT.partition("### NpstreamFprAboveTarget")[2].partition("###")[0]

    assert "--set settings.model.tau=" in runbook


@pytest.mark.parametrize(("d", "buffer_max"), [(1, 1), (8, 10_000), (29, 12_345)])
def test_its_formula_of_the_label_buffer_is_right(d: int, buffer_max: int) -> None:
    """The size it says to expect is the size that the settings compute."""
    assert "labels.buffer_max x (33 + 4 d)" in TEXT
    settings = from_mapping(
        {
            "kafka": {"bootstrap": "b", "group": "g", "worker_name": "s"},
            "topics": {"events": "e"},
            "model": {"d": d},
            "labels": {"buffer_max": buffer_max},
        }
    )

    assert sizes(settings).buffer == buffer_max * (33 + 4 * d)


def test_its_rights_are_those_of_the_chart() -> None:
    """The table of rights says what the KafkaUser of the chart has."""
    acls = chart.the(chart.rendered("strimzi"), "KafkaUser")["spec"]["authorization"]["acls"]
    rows = re.findall(r"^\| ((?:topics?|group|transactional id)[^|]*?) \| ([A-Z][\w, ]+) \|$", SECURITY, re.MULTILINE)
    reported = dict(rows)

    assert sorted(", ".join(acl["operations"]) for acl in acls) == sorted(
        operations for place, operations in reported.items() for _ in range(2 if place.startswith("topics:") else 1)
    )


def test_it_copies_the_secrets_that_pods_mount() -> None:
    """Where Strimzi is in another namespace, the loop copies just the Secrets that its example mounts."""
    (copied,) = re.findall(r"^for secret in (.*); do$", TEXT, re.MULTILINE)
    volumes = chart.pod(chart.rendered("strimzi"))["volumes"]

    assert copied.split() == [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]


def test_its_exit_codes_are_right() -> None:
    """Whoever reads a pod's exit code finds its meaning."""
    words = f"{SETTINGS} settings, {FATAL} brokers or rights, {STATE} state, {EXIT_STUCK} a loop that hung"

    assert words in " ".join(TEXT.split())
