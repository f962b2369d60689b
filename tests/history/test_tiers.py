"""Tiers where decisions are looked at again: inspect, explain, audit, backtest."""

import re
from pathlib import Path

import pytest

from npstream import client
from npstream.records import Channel
from npstream.testing import Stage
from tests.history.stages import SETTINGS, as_json, mixed, stage, tool

MODEL = {name: value for name, value in SETTINGS["model"].items() if name != "tau"}
TIERS = {"block": 0.05, "review": 0.2}


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """Crashes, and a change of one rate, lie behind the decisions."""
    found = stage(tmp_path, model={**MODEL, "tiers": TIERS})
    found.send(mixed(400))
    found.run(crashes=[6, 11])
    found.send(mixed(200, seed=1, first=400))
    found.run(settings={"model": {**MODEL, "tiers": {**TIERS, "block": 0.1}}})
    return found


def test_a_checkpoint_says_what_each_tier_holds(made: Stage, tmp_path: Path) -> None:
    """From strict to wide, with rates and intervals of their own; the wide one is what the checkpoint says itself."""
    card = as_json(tool(tmp_path, "inspect", "--partition", "0", "--json"))
    block, review = card["tiers"]

    assert (block["name"], block["tau"], review["name"], review["tau"]) == ("block", 0.1, "review", 0.2)
    assert block["threshold"] >= review["threshold"] == card["threshold"]
    assert 0 < block["alarms"] < review["alarms"] == card["tally"]["alarms"]
    assert review["fpr"] == card["fpr"]
    assert block["fpr"]["lifetime"] < review["fpr"]["lifetime"]
    assert "tier block: tau 0.1" in tool(tmp_path, "inspect", "--partition", "0").stdout


def test_an_alarm_is_explained_by_every_threshold(made: Stage, tmp_path: Path) -> None:
    """The tier that was reached is the strictest one whose threshold lies below the score."""
    records = made.records(Channel.DECISIONS, 0)
    published = [(client.input_offset(record.headers), client.read_decision(record.value)) for record in records]
    for name in TIERS:
        offset, decision = next(found for found in reversed(published) if found[1].tier == name)
        found = as_json(tool(tmp_path, "explain", "--partition", "0", "--offset", str(offset), "--json"))
        text = tool(tmp_path, "explain", "--partition", "0", "--offset", str(offset)).stdout

        assert found["published"] is True
        assert found["decision"]["tier"] == name
        assert [tier["name"] for tier in found["tiers"]] == ["block", "review"]
        reached = next(tier for tier in found["tiers"] if tier["name"] == name)
        assert decision.score is not None
        assert decision.score > reached["threshold"]
        assert f"tier       {name}: threshold" in text
        assert text.count("the strictest one reached") == 1


def test_audit_reproduces_tiers_and_a_change_of_their_rates(made: Stage, tmp_path: Path) -> None:
    """Every decision, byte for byte; the change is in the history."""
    assert tool(tmp_path, "audit").exit_code == 0
    assert "params.tiers" in tool(tmp_path, "inspect", "--partition", "0", "--history").stdout


def test_a_backtest_shows_every_tier(made: Stage, tmp_path: Path) -> None:
    """Alarms and rates of each, and those of the wide one are those of the run."""
    done = as_json(tool(tmp_path, "backtest", "--json"))[0]
    text = tool(tmp_path, "backtest").stdout

    assert list(done["tiers"]) == ["block", "review"]
    assert done["tiers"]["review"]["fpr"] == done["fpr"]
    assert done["tiers"]["block"]["alarms"] < done["tiers"]["review"]["alarms"] == done["tally"]["alarms"]
    assert re.search(r"block +0\.1 ", text)
