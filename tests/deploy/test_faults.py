"""Alert rules on data recorded from a worker while something went wrong with it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.queries import selectors
from tests.deploy.test_alerts import RULES, alerts
from tests.deploy.tools import promtool, run, said
from tests.monitor.builders import Sample, events, handled
from tests.stage.watched import Watched

RUBBISH = b"not an event"
SICK_MINUTES, PAUSED_MINUTES = 30, 10


def test_alerts_fire_on_a_recorded_fault(tmp_path: Path) -> None:
    """Bad events, then so many that a partition pauses, then a dead worker: three alerts, each in its time."""
    recording = record_fault(tmp_path / "log")
    dead = SICK_MINUTES + PAUSED_MINUTES
    expected = [
        expect(SICK_MINUTES - 1, "NpstreamDeadLetters", {"severity": "warning"}),
        expect(SICK_MINUTES - 1, "NpstreamPartitionPaused"),
        expect(SICK_MINUTES - 1, "NpstreamPartitionStalled"),
        expect(dead - 1, "NpstreamPartitionPaused", {"severity": "critical", "partition": "1"}),
        expect(dead - 1, "NpstreamPartitionUnowned"),
        expect(
            dead + 15,
            "NpstreamPartitionUnowned",
            {"severity": "critical", "partition": "0"},
            {"severity": "critical", "partition": "1"},
        ),
    ]

    judge(tmp_path, recording, expected)


def record_fault(path: Path) -> list[dict[Sample, float]]:
    """One scrape for each minute: healthy but for every tenth event of partition 1, then paused."""
    recording = []
    with Watched(path, partitions=2) as stage:
        for minute in range(1, SICK_MINUTES + 1):
            stage.send(events(20, seed=minute), partition=0)
            stage.send([*events(18, seed=minute), RUBBISH, RUBBISH], partition=1)
            stage.wait_for(handled(20 * minute, 20 * minute))
            recording.append(stage.metrics())
        stage.send([RUBBISH] * 1000, partition=1)
        stage.wait_for(lambda status: status["partitions"][1]["phase"] == "paused")
        recording += [stage.metrics() for _ in range(PAUSED_MINUTES)]
    return recording


def expect(minute: int, alert: str, *labels: dict[str, str]) -> dict[str, Any]:
    """A check of the rules' tests: these alerts of the name, and no others, fire at that minute."""
    found = [{"exp_labels": {"group": "g", "topic": "events", **own}} for own in labels]
    return {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": found}


def judge(folder: Path, recording: Sequence[dict[Sample, float]], expected: Sequence[dict[str, Any]]) -> None:
    """Let Prometheus evaluate the rules over the recording, one scrape a minute."""
    (folder / "rules.yaml").write_text(yaml.safe_dump(without_texts()))
    test = {"interval": "1m", "input_series": series(recording), "alert_rule_test": list(expected)}
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(document))

    done = run(promtool(), "test", "rules", "test.yaml", cwd=folder)

    assert done.returncode == 0, said(done)


def without_texts() -> dict[str, Any]:
    """The rules without what people read, so that the expectations can do without it too."""
    rules: dict[str, Any] = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]
    return rules


def series(recording: Sequence[dict[Sample, float]]) -> list[dict[str, str]]:
    """Every recorded series that a rule looks at, as the rules' tests write it; `_` where a scrape lacks it."""
    looked_at = {selector.name for rule in alerts() for selector in selectors(rule["expr"])}
    samples = sorted({key for scrape in recording for key in scrape if key[0] in looked_at}, key=str)
    return [
        {"series": written(key), "values": " ".join(str(scrape.get(key, "_")) for scrape in recording)}
        for key in samples
    ]


def written(key: Sample) -> str:
    """A series by name and labels, with the two labels that all share."""
    name, labels = key
    pairs = {"group": "g", "topic": "events", **dict(labels)}
    reported = ",".join(f'{label}="{value}"' for label, value in sorted(pairs.items()))
    return f"{name}{{{reported}}}"
