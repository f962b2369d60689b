"""Write npstream.json, the Grafana dashboard, from the list in panels.py.

python deploy/dashboard/build.py

Grafana's JSON is long and mostly the same for every panel; this is that part.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from panels import ROWS, Panel

TARGET = Path(__file__).parents[1] / "helm" / "npstream" / "files" / "npstream.json"
"""In the chart, which must be complete wherever it is copied to; here is a link to it."""
WIDTH = 24


def dashboard() -> dict[str, Any]:
    """The whole as Grafana reads it."""
    return {
        "uid": "npstream",
        "title": "npstream",
        "description": "Exactly-once online Neyman-Pearson classification on Kafka streams.",
        "tags": ["npstream", "kafka"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [_datasource(), *_variables()]},
        "panels": list(_panels()),
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, y = 1, 0
    for title, panels in ROWS:
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "panels": []} | _place(0, y, WIDTH, 1)
        number, y, x, height = number + 1, y + 1, 0, 0
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            yield {"id": number, **_panel(panel), **_place(x, y, panel.width, panel.height)}
            number, x, height = number + 1, x + panel.width, max(height, panel.height)
        y += height


def _place(x: int, y: int, width: int, height: int) -> dict[str, Any]:
    return {"gridPos": {"x": x, "y": y, "w": width, "h": height}}


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "type": panel.form,
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "targets": [
            {"refId": chr(ord("A") + i), "expr": query, "legendFormat": legend, "datasource": _SOURCE}
            for i, (query, legend) in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": _overrides(panel)},
        "options": _OPTIONS[panel.form],
    }


def _overrides(panel: Panel) -> list[dict[str, Any]]:
    """Bounds of an interval are dashed, tau is thick: they differ without colour."""
    names = {legend.rsplit(" ", 1)[-1] for _, legend in panel.queries}
    found = []
    if "lower" in names:
        found.append(_style("/ (lower|upper)$/", "custom.lineStyle", {"fill": "dash", "dash": [4, 4]}))
    if "tau" in names:
        found.append(_style("/^tau$/", "custom.lineWidth", 3))
    return found


def _style(pattern: str, name: str, value: Any) -> dict[str, Any]:
    return {"matcher": {"id": "byRegexp", "options": pattern}, "properties": [{"id": name, "value": value}]}


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}


def _variables() -> Iterator[dict[str, Any]]:
    narrowing = ""
    for name in ("namespace", "group", "topic", "partition"):
        query = f"label_values(npstream_events_total{{{narrowing}}}, {name})"
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "sort": 3,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        }
        narrowing = f'{narrowing}{"," if narrowing else ""}{name}=~"${name}"'


_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "colorMode": "none",
        "graphMode": "area",
        "justifyMode": "auto",
        "textMode": "value",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    },
}


def text() -> str:
    """The file's content."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
