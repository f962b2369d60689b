"""The Grafana dashboard: in step with its list of panels, and asking only for what workers export."""

import json
from typing import Any

import pytest

from npstream.observe import METRICS
from tests.deploy import chart
from tests.deploy.queries import complaints, exported, selectors
from tests.deploy.tools import DEPLOY, program, run, said

FOLDER = DEPLOY / "dashboard"
FILE = chart.CHART / "files" / "npstream.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
NOT_SHOWN = {"process_virtual_memory_bytes", "process_start_time_seconds", "process_max_fds"}
"""Exported by the client library; of no use on a dashboard."""


def test_the_file_is_in_step() -> None:
    """npstream.json is what the list of panels makes; run `python deploy/dashboard/build.py` when it is not."""
    done = run(program("python"), "-c", "import build; print(build.text(), end='')", cwd=FOLDER)

    assert done.returncode == 0, said(done)
    assert FILE.read_text() == done.stdout


@pytest.mark.parametrize("query", QUERIES)
def test_panels_ask_only_for_what_workers_export(query: str) -> None:
    """Every metric, label and label value in a panel is in the worker's list."""
    assert list(selectors(query))
    assert list(complaints(query)) == []


def test_every_metric_can_be_looked_at() -> None:
    """Nothing is exported that no panel shows, so that whoever debugs finds it."""
    known = exported()
    shown = {known[selector.name].name for query in QUERIES for selector in selectors(query)}

    assert {metric.name for metric in METRICS} - shown == NOT_SHOWN


def test_the_four_variables_narrow_each_other() -> None:
    """Namespace, group, topic and partition can be chosen, each among those that the former ones leave."""
    queries = {variable["name"]: variable["query"] for variable in DASHBOARD["templating"]["list"]}

    assert list(queries) == ["datasource", "namespace", "group", "topic", "partition"]
    assert 'group=~"$group",topic=~"$topic"' in queries["partition"]["query"]
    assert DASHBOARD["schemaVersion"] == 39


def test_panels_neither_overlap_nor_share_a_number() -> None:
    """Each panel has its own place and identity."""
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_panel_explains_itself(panel: dict[str, Any]) -> None:
    """A panel has a title, a description and a unit."""
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]


def test_the_chart_ships_the_same_dashboard() -> None:
    """The ConfigMap for Grafana's sidecar holds the file as it is."""
    (found,) = [manifest for manifest in chart.rendered("strimzi") if "npstream.json" in manifest.get("data", {})]

    assert json.loads(found["data"]["npstream.json"]) == DASHBOARD
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
