"""The tools on a group whose labels have a topic of their own: all of them follow the recorded merge."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import yaml

from npstream import client
from npstream.backend import backend_of
from npstream.codec.envelope import LABELS_HEADER
from npstream.errors import Fatal
from npstream.records import Channel
from npstream.testing import FIRST_MS, Stage
from tests.embedded import retention
from tests.history.stages import SETTINGS, as_json, stage, tamper, tool
from tests.stage.stage import D, run_cli

LABELS = {
    "buffer_max": 300,
    "expire_events": 400,
    "topic": "chargebacks",
    "id": "payment.id",
    "label": {"path": "fraud"},
}


def send(made: Stage, count: int, first: int = 0) -> None:
    """Observations, one of ten bad; for most a label 5 to 60 events later, one of forty bad."""
    rng = np.random.default_rng(first)
    labels: list[tuple[int, bytes]] = []
    events = []
    for i in range(first, first + count):
        target = rng.random() < 0.3
        x = [round(float(v), 4) for v in rng.normal(1.0 if target else 0.0, 1.0, D)]
        event = client.event(f"e{i}", x) if i % 10 else client.Message(b"k", b"rubbish")
        events.append(replace(event, timestamp_ms=FIRST_MS + 10 * i))
        value = orjson.dumps({"payment": {"id": f"e{i}"}, "fraud": int(target)}) if i % 40 else b"[]"
        labels.append((FIRST_MS + 10 * (i + int(rng.integers(5, 60))), value))
    made.send(events, partition=0)
    with closing(made.log()) as log:
        log.append(Channel.LABELS, 0, [(b"k", value, (), at) for at, value in sorted(labels)])


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """600 events decided through crashes, checkpoints at several offsets."""
    found = stage(tmp_path, labels=LABELS)
    send(found, 600)
    found.run(crashes=[5, 9, 20, 33])
    return found


def marks(made: Stage) -> list[int]:
    """The label offset that each decision names."""
    return [int(dict(record.headers)[LABELS_HEADER] or b"") for record in made.records(Channel.DECISIONS, 0)]


def assert_proven(folder: Path, made: Stage) -> None:
    """Audit reproduces everything and the committed state."""
    found = as_json(tool(folder, "audit", "--json"))
    assert found["holds"], found["partitions"]
    assert [part["state_proven"] for part in found["partitions"]] == [True]


def test_audit_proves_every_decision_and_dead_letter(made: Stage, tmp_path: Path) -> None:
    """From the first event on, and from a kept checkpoint."""
    assert len(set(marks(made))) > 5
    found = as_json(tool(tmp_path, "audit", "--json"))
    published = len(made.records(Channel.DECISIONS, 0)) + len(made.records(Channel.DEAD_LETTERS, 0))
    assert (found["holds"], found["reproduced"]) == (True, published)
    assert tool(tmp_path, "audit", "--from", "450").exit_code == 0
    assert_proven(tmp_path, made)


def test_audit_notices_a_label_that_was_changed(made: Stage, tmp_path: Path) -> None:
    """What was learned from it shows in the decisions, or in the committed state."""
    learned = [r for r in made.records(Channel.LABELS, 0)[100:] if b'0"}' not in (r.value or b"")]
    label = next(r for r in learned if b'"fraud":1' in (r.value or b""))
    tamper(
        made,
        "UPDATE records SET value = ? WHERE partition = 0 AND offset = ? "
        "AND topic = (SELECT topic FROM topics WHERE name = 'chargebacks')",
        *((label.value or b"").replace(b'"fraud":1', b'"fraud":0'), label.offset),
    )

    assert tool(tmp_path, "audit").exit_code == 1


def test_a_backtest_as_decided_has_the_digest_of_the_live_group(made: Stage, tmp_path: Path) -> None:
    """By time it merges otherwise, and the same each time."""
    with closing(backend_of(made.settings).open_state()) as state:
        position = state.committed(0)
    assert position is not None
    (followed,) = as_json(tool(tmp_path, "backtest", "--as-decided", "--json"))
    by_time = [as_json(tool(tmp_path, "backtest", "--json"))[0]["digest"] for _ in range(2)]

    assert followed["partitions"][0]["chain"] == position.proof.chain
    assert by_time[0] == by_time[1] != followed["digest"]


def test_settings_are_compared_along_the_recorded_merge(made: Stage, tmp_path: Path) -> None:
    """
    The live group, with tiers, by alarm rate, with a challenger: the labels each learns are those of the decisions;
    settings without the topic have labels with their events, here none. Where nothing can be followed nothing runs.
    """
    wanted: dict[str, dict[str, Any]] = {
        "tiers": {"model": {**SETTINGS["model"], "tiers": {"block": 0.05, "review": 0.1}}},
        "alarms": {"model": {**SETTINGS["model"], "control": "alarm_rate"}, "challenger": {"D": 4}},
        "without": {"labels": {"buffer_max": 300}},
    }
    wanted["tiers"]["model"].pop("tau")
    files = [argument for name in wanted for argument in ("--config", str(tmp_path / f"{name}.yaml"))]
    for name, sections in wanted.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({**made.mapping, **sections}))
    runs = {run["name"]: run for run in as_json(tool(tmp_path, "backtest", *files, "--as-decided", "--json"))}
    (live,) = as_json(tool(tmp_path, "backtest", "--as-decided", "--json"))
    refused = run_cli("backtest", "--as-decided", "--config", str(tmp_path / "without.yaml"))

    assert runs.keys() == {"settings", "tiers", "alarms", "alarms challenger", "without"}
    assert runs["settings"]["digest"] == live["digest"]
    learned = {name: (run["negatives"], run["positives"]) for name, run in runs.items()}
    assert {name: counts for name, counts in learned.items() if counts != learned["settings"]} == {"without": (0, 0)}
    assert (refused.exit_code, "labels.topic" in refused.stderr) == (2, True)


def test_an_export_of_the_events_is_replayed_with_a_word_on_its_labels(made: Stage, tmp_path: Path) -> None:
    """They are on the other topic: nothing is learned, and it is said why."""
    path = str(tmp_path / "events.jsonl")
    assert tool(tmp_path, "export", path).exit_code == 0
    replayed = tool(tmp_path, "backtest", path)

    assert "no labels" in replayed.stdout
    assert "events.jsonl: without the labels of chargebacks" in replayed.stderr


def test_explain_recomputes_a_decision_with_what_its_model_knew(made: Stage, tmp_path: Path) -> None:
    """It is the published one, byte for byte, also in the middle of a merge."""
    for offset in (1, 203, 204, 407, 599):
        found = as_json(tool(tmp_path, "explain", "--partition", "0", "--offset", str(offset), "--json"))
        assert (found["kind"], found["published"]) == ("observation", True)


def test_a_rollback_takes_the_labels_back_too(made: Stage, tmp_path: Path) -> None:
    """Events are decided again with labels from where they were then; everything is proven afterwards."""
    before = marks(made)
    result = tool(tmp_path, "rollback", "--to", "300", "--why", "test", "--execute")
    assert result.exit_code == 0, result.stderr
    send(made, 100, first=600)
    made.run()

    again = marks(made)[len(before) :]
    assert again[0] <= before[-1]
    assert_proven(tmp_path, made)


def test_lost_offsets_are_recovered_from_what_was_published(made: Stage, tmp_path: Path) -> None:
    """The position, its label offset included, is computed again; the next run goes on from there."""
    tamper(made, "DELETE FROM positions")
    assert tool(tmp_path, "recover", "--execute").exit_code == 0
    send(made, 100, first=600)
    made.run()

    assert_proven(tmp_path, made)


def test_a_damaged_checkpoint_is_recovered_by_the_decisions(tmp_path: Path) -> None:
    """A worker does not know how labels were merged since an older one, and names the command that does."""
    made = stage(tmp_path, labels=LABELS)
    send(made, 600)
    made.run()
    newest = max(record.offset for record in made.records(Channel.CHECKPOINTS, 0))
    tamper(
        made,
        "UPDATE records SET value = x'00' WHERE partition = 0 AND offset = ? "
        "AND topic = (SELECT topic FROM topics WHERE name = 'events-checkpoints')",
        newest,
    )
    send(made, 100, first=600)
    with pytest.raises(Fatal, match=r"only the decisions say how the labels of 'chargebacks' were merged.*recover"):
        made.run()

    result = tool(tmp_path, "recover", "--execute")
    assert result.exit_code == 0, result.stderr
    made.run()
    assert_proven(tmp_path, made)


def test_labels_that_are_gone_are_given_up_by_a_reset(made: Stage, tmp_path: Path) -> None:
    """The partition is paused; with the command of the message it goes on with the model and the labels left."""
    send(made, 100, first=600)
    with closing(made.log()) as log:
        retention.trim(log, Channel.LABELS, 0, 650)
    with pytest.raises(Fatal, match="npstream reset"):
        made.run()

    command = ("reset", "--partition", "0", "--to", "600", "--keep-model", "--why", "test", "--execute")
    result = tool(tmp_path, *command)
    assert result.exit_code == 0, result.stderr
    made.run()
    assert marks(made)[-1] == 700
    assert tool(tmp_path, "audit", "--from", "600").exit_code == 0


def test_a_bad_label_goes_back_to_the_labels_topic(made: Stage, tmp_path: Path) -> None:
    """Redrive sends events to the events topic and labels to theirs."""
    bad = [record for record in made.records(Channel.DEAD_LETTERS, 0) if record.value == b"[]"]
    assert bad
    result = tool(tmp_path, "dlq", "redrive", "--reason", "not_object")

    assert result.exit_code == 0, result.stderr
    assert [record.value for record in made.records(Channel.LABELS, 0)[600:]] == [b"[]"] * len(bad)
    assert len(made.records(Channel.EVENTS, 0)) == 600
