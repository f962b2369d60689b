"""One decision explained."""

from dataclasses import asdict
from pathlib import Path

import pytest

from npstream import client
from npstream.records import Channel
from npstream.testing import Stage
from tests.history.stages import SETTINGS, as_json, mixed, rewrite, stage, tool


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """Crashes and a change of settings lie behind the decisions."""
    found = stage(tmp_path)
    found.send([*mixed(350), client.event("late", [2.0, 0.5, -0.5], target=True)])
    found.run(crashes=[6, 11])
    found.send(mixed(100, seed=1, first=400))
    found.run(settings={"model": {**SETTINGS["model"], "tau": 0.2}})
    return found


def explained(folder: Path, offset: int) -> dict[str, object]:
    """What the command says of an event."""
    found: dict[str, object] = as_json(tool(folder, "explain", "--partition", "0", "--offset", str(offset), "--json"))
    return found


def test_every_decision_is_the_published_one(made: Stage, tmp_path: Path) -> None:
    """Score, threshold and reason are those in the topic, before and after the change of settings."""
    for record in made.records(Channel.DECISIONS, 0)[:: len(made.records(Channel.DECISIONS, 0)) // 8]:
        offset = client.input_offset(record.headers)
        found = explained(tmp_path, offset)
        wanted = client.read_decision(record.value)
        assert found["published"] is True
        assert found["decision"] == {**asdict(wanted), "reasons": []}


def test_the_features_that_moved_a_score_come_first(made: Stage, tmp_path: Path) -> None:
    """Contributions are sorted by size and name the features' own values."""
    found = explained(tmp_path, 350)
    features = found["features"]
    assert isinstance(features, list)

    assert {part["feature"]: part["value"] for part in features} == {"x[0]": 2.0, "x[1]": 0.5, "x[2]": -0.5}
    sizes = [abs(part["contribution"]) for part in features]
    assert sizes == sorted(sizes, reverse=True)
    text = tool(tmp_path, "explain", "--partition", "0", "--offset", "350").stdout
    for word in ("threshold in force", "moved the score by", "byte for byte"):
        assert word in text


def test_labels_and_bad_events_are_named_as_such(made: Stage, tmp_path: Path) -> None:
    """An event that asks for no decision has none, and a bad one says why."""
    events = made.records(Channel.EVENTS, 0)
    label = next(r for r in events if (r.value or b"").startswith(b'{"id"') and b'"x"' not in (r.value or b""))
    bad = next(r for r in events if (r.value or b"").startswith(b"rubbish"))

    assert explained(tmp_path, label.offset)["kind"] == "label"
    assert explained(tmp_path, label.offset)["decision"] is None
    assert "not_json" in str(explained(tmp_path, bad.offset)["problem"])
    assert "dead-letter" in tool(tmp_path, "explain", "--partition", "0", "--offset", str(bad.offset)).stdout


def test_a_published_decision_that_is_another_is_reported(made: Stage, tmp_path: Path) -> None:
    """Exit code 1 when the topic holds other bytes."""
    record = made.records(Channel.DECISIONS, 0)[5]
    rewrite(made, Channel.DECISIONS, record, (record.value or b"").replace(b'"decision":-1', b'"decision":1'))
    result = tool(tmp_path, "explain", "--partition", "0", "--offset", str(client.input_offset(record.headers)))

    assert result.exit_code == 1
    assert "DIFFERS" in result.stdout


@pytest.mark.parametrize(("offset", "partition"), [("99999", "0"), ("3", "5")])
def test_an_event_that_is_not_there_is_refused(made: Stage, tmp_path: Path, offset: str, partition: str) -> None:
    """No event, no explanation: exit code 2."""
    assert tool(tmp_path, "explain", "--partition", partition, "--offset", offset).exit_code == 2


def test_an_offset_without_an_event_is_refused_with_those_that_have_one(made: Stage, tmp_path: Path) -> None:
    """The last one named can be explained."""
    last = made.records(Channel.EVENTS, 0)[-1].offset
    refused = tool(tmp_path, "explain", "--partition", "0", "--offset", str(last + 1))

    assert f"kept are offsets 0 to {last}" in refused.stderr
    assert tool(tmp_path, "explain", "--partition", "0", "--offset", str(last)).exit_code == 0


@pytest.mark.parametrize("control", ["fpr", "alarm_rate"])
def test_an_alarm_that_was_withheld_is_explained_by_the_control(tmp_path: Path, control: str) -> None:
    """What was too few, and what the budget counts: labelled non-targets, or all observations."""
    found = stage(tmp_path, model={**SETTINGS["model"], "control": control, "budget": 1})
    found.send([*mixed(300), *(client.event(f"t{i}", [4.0, 4.0, 4.0]) for i in range(60))])
    found.run()
    published = [
        (client.input_offset(record.headers), client.read_decision(record.value).reason)
        for record in found.records(Channel.DECISIONS, 0)
    ]
    said = {
        reason: str(explained(tmp_path, next(offset for offset, why in published if why == reason))["why"])
        for reason in {why for _, why in published if why in ("warmup", "budget")}
    }

    assert "warmup" in said
    assert ("observations were decided" if control == "alarm_rate" else "non-targets were labelled") in said["warmup"]
    if control == "alarm_rate":
        assert "budget of alarms" in said["budget"]
