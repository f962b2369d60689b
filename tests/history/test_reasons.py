"""Reasons where decisions are looked at again: after crashes, in audit, by explain, and with other settings."""

from pathlib import Path

import orjson
import pytest

from npstream import client
from npstream.errors import SettingsError
from npstream.records import Channel, Record
from npstream.settings import from_mapping
from npstream.testing import Stage
from tests.history.stages import SETTINGS, as_json, mixed, rewrite, stage, tool
from tests.settings.builders import mapping

REASONS = {"decisions": {"reasons": 2}}


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """Crashes, and a change of how many reasons are given, lie behind the decisions."""
    found = stage(tmp_path)
    found.send(mixed(300))
    found.run(crashes=[5, 9])
    found.send(mixed(400, seed=1, first=300))
    assert found.run(crashes=[4, 7, 15], settings=REASONS).crashes == 3
    return found


def alarms(made: Stage) -> list[tuple[Record, client.Decision]]:
    """Those that were published."""
    found = [(record, client.read_decision(record.value)) for record in made.records(Channel.DECISIONS, 0)]
    return [pair for pair in found if pair[1].decision == 1]


def test_audit_proves_reasons_and_finds_an_edited_one(made: Stage, tmp_path: Path) -> None:
    """They are recomputed bit for bit, behind crashes and a change of their number; one bit of one is found."""
    named = [len(decision.reasons) for _, decision in alarms(made)]
    assert {0, 2} == {*named}
    assert tool(tmp_path, "audit").exit_code == 0

    record, decision = next(pair for pair in alarms(made) if pair[1].reasons)
    document = orjson.loads(record.value or b"")
    document["reasons"][1]["contribution"] = -decision.reasons[1].contribution
    rewrite(made, Channel.DECISIONS, record, orjson.dumps(document))
    result = tool(tmp_path, "audit", "--json")
    assert result.exit_code == 1
    difference = as_json(result)["partitions"][0]["difference"]
    assert difference["offset"] == client.input_offset(record.headers)


def test_explain_finds_the_same_features(made: Stage, tmp_path: Path) -> None:
    """What an alarm names is what explaining it finds to have moved the score most."""
    record, decision = alarms(made)[-1]
    at = str(client.input_offset(record.headers))
    found = as_json(tool(tmp_path, "explain", "--partition", "0", "--offset", at, "--json"))

    assert found["published"] is True
    listed = [{"feature": each.feature, "contribution": each.contribution} for each in decision.reasons]
    assert found["decision"]["reasons"] == listed
    named = [{name: part[name] for name in ("feature", "contribution")} for part in found["features"]]
    assert named[:2] == listed


def test_a_score_from_elsewhere_has_no_features_to_name() -> None:
    """The settings say so before anything is connected."""
    with pytest.raises(SettingsError, match=r"decisions\.reasons: preset external"):
        from_mapping(mapping(decisions={"reasons": 3}, model={"preset": "external", "d": 0}))
    assert from_mapping({**SETTINGS, "embedded": {"path": "x"}, **REASONS}).partition_config().reasons == 2
