"""The chart as a whole: it lints, it renders what was agreed, and its settings are the worker's."""

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from npstream import __version__
from npstream.settings import from_mapping
from tests.deploy import chart
from tests.deploy.tools import DEPLOY, program, run, said

GOLDEN = Path(__file__).with_name("golden")
UPDATE_VARIABLE = "NPSTREAM_UPDATE_GOLDEN"
LINKS = (DEPLOY / "dashboard" / "npstream.json", DEPLOY / "alerts" / "npstream.rules.yaml")


@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_the_chart_lints(name: str) -> None:
    """Helm's own strict lint has nothing to say against any of the value sets."""
    code, text = chart.lint(chart.VALUES / f"{name}.yaml")

    assert code == 0, text
    assert "[WARNING]" not in text


@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_the_render_is_as_agreed(name: str) -> None:
    """A change of the templates shows as a change of the manifests kept beside the tests."""
    golden = GOLDEN / f"{name}.yaml"
    actual = yaml.safe_dump_all(map(shortened, chart.rendered(name)), sort_keys=True, width=120)
    if os.environ.get(UPDATE_VARIABLE) == "1":
        golden.write_text(actual)

    assert golden.read_text() == actual, f"if this is meant, run the test with {UPDATE_VARIABLE}=1 and look at the diff"


def shortened(manifest: chart.Manifest) -> chart.Manifest:
    """The manifest without the two long files, which have tests of their own."""
    if manifest["kind"] == "PrometheusRule":
        return {**manifest, "spec": "the rules"}
    if "npstream.json" in manifest.get("data", {}):
        return {**manifest, "data": "the dashboard"}
    return manifest


@pytest.mark.parametrize("name", chart.VALUE_SETS)
def test_the_worker_accepts_what_the_chart_gives_it(name: str) -> None:
    """The settings file and environment of a rendered pod load as the settings that were asked for."""
    manifests = chart.rendered(name)
    given = yaml.safe_load((chart.VALUES / f"{name}.yaml").read_text())["settings"]
    file = yaml.safe_load(settings_file(manifests))
    env = {entry["name"]: entry.get("value", "fraud-npstream-0") for entry in chart.worker(manifests)["env"]}

    assert file == given
    settings = from_mapping(without_files(file), env)
    assert settings.kafka is not None
    assert settings.kafka.worker_name == "fraud-npstream-0"
    assert settings.http is not None
    assert settings.http.host in ("0.0.0.0", "::")
    assert settings.http.port == chart.worker(manifests)["ports"][0]["containerPort"]


def settings_file(manifests: list[chart.Manifest]) -> str:
    """The settings file that the pod mounts."""
    (mount,) = [mount for mount in chart.worker(manifests)["volumeMounts"] if mount["name"] == "settings"]
    (volume,) = [volume for volume in chart.pod(manifests)["volumes"] if volume["name"] == "settings"]
    (found,) = [
        manifest
        for manifest in chart.of_kind(manifests, "ConfigMap")
        if manifest["metadata"]["name"] == volume["configMap"]["name"]
    ]
    assert chart.worker(manifests)["args"] == ["run", "--config", mount["mountPath"]]
    text: str = found["data"][mount["subPath"]]
    return text


def without_files(value: Any) -> Any:
    """The value with references to mounted secrets replaced: the files exist only in a pod."""
    if isinstance(value, dict):
        return {key: without_files(item) for key, item in value.items()}
    return "from a file" if isinstance(value, str) and value.startswith("${file:") else value


def test_what_the_chart_knows_of_the_settings_is_in_step() -> None:
    """Schema and rules are what the settings model makes them; run `python deploy/helm/schema.py` when they are not."""
    script = "import json, schema; print(json.dumps({str(path): text for path, text in schema.texts().items()}))"
    done = run(program("python"), "-c", script, cwd=DEPLOY / "helm")

    assert done.returncode == 0, said(done)
    for path, expected in json.loads(done.stdout).items():
        assert Path(path).read_text() == expected


def test_every_value_has_a_schema() -> None:
    """No value of values.yaml is unknown to the schema, and none the schema knows is left out of it."""
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    schema = yaml.safe_load((chart.CHART / "values.schema.json").read_text())

    # `global` is Helm's own.
    assert sorted(values) == sorted(set(schema["properties"]) - {"global"})


def test_the_chart_has_the_version_of_the_program() -> None:
    """The image that is installed by default is the one this chart was tested with."""
    described = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())

    assert (described["version"], described["appVersion"]) == (__version__, __version__)


def test_a_packaged_chart_holds_its_files(tmp_path: Path) -> None:
    """Rules, dashboard and what is known of the settings travel inside the package, byte for byte."""
    done = run(program("helm"), "package", str(chart.CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, said(done)

    (package,) = tmp_path.glob("*.tgz")
    with tarfile.open(package) as archive:
        for path in (chart.CHART / "files").iterdir():
            member = archive.extractfile(f"npstream/files/{path.name}")
            assert member is not None
            assert member.read() == path.read_bytes()


def test_rules_and_dashboard_are_found_where_they_are_looked_for() -> None:
    """The folders of rules and dashboard lead to the chart's files: there is one of each."""
    assert [path.resolve() for path in LINKS] == [chart.CHART / "files" / path.name for path in LINKS]


def test_no_manifest_is_left_behind() -> None:
    """Every golden file belongs to a value set, and every value set has one."""
    assert sorted(path.stem for path in GOLDEN.glob("*.yaml")) == sorted(chart.VALUE_SETS)
    assert sorted(path.stem for path in chart.VALUES.glob("*.yaml")) == sorted(chart.VALUE_SETS)
