"""A challenger compared, promoted, looked back at: by the commands, on a group that has crashed on the way."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from npstream import client
from npstream.errors import SettingsError
from npstream.records import Channel
from tests.history.stages import SETTINGS, as_json, mixed, stage
from tests.stage.stage import Stage

MODEL: dict[str, Any] = SETTINGS["model"]
BETTER = {**MODEL, "D": 24, "tau": 0.2}


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """A challenger came after the first events, and crashes lie behind both."""
    found = stage(tmp_path)
    found.send(mixed(200))
    found.run()
    found.configure(challenger={"D": 24, "tau": 0.2})
    found.send(mixed(600, seed=1, first=200))
    found.run(crashes=[4, 9])
    return found


def promote(made: Stage, **challenger: Any) -> None:
    """As an operator does it: the settings first, with another challenger where one is given."""
    made.configure(model=BETTER, challenger=challenger or None)
    assert made.tool("promote", "--execute").exit_code == 0


def test_it_is_compared_on_the_same_labelled_events(made: Stage) -> None:
    """The rates of `compare` are of one set of events; those of `inspect` and of a backtest of its own are alike."""
    found = as_json(made.tool("compare", "--json"))
    card = as_json(made.tool("inspect", "--partition", "0", "--json"))
    text = made.tool("compare").stdout

    (partition,) = found["partitions"]
    assert partition["tau"] == {"champion": 0.1, "challenger": 0.2}
    assert partition["from"] == card["challenger"]["began"] == 200
    for kind in ("non_targets", "targets"):
        table = found[kind]
        names = ("neither", "challenger_alone", "champion_alone", "both")
        assert sum(table[name] for name in names) == table["labelled"] > 50
        assert table["champion"]["rate"] == (table["champion_alone"] + table["both"]) / table["labelled"]
    assert found["targets"]["p"] < 0.05 < found["targets"]["challenger"]["rate"]
    assert "McNemar" in text
    assert "challenger since offset 200" in made.tool("inspect", "--partition", "0").stdout
    made.configure(challenger=None)
    made.send(mixed(10, seed=2, first=5000))
    made.run()
    assert made.tool("compare").exit_code == 2


def test_a_difference_is_said_to_be_chance_or_more(made: Stage) -> None:
    """By the exact test at 0.05; before a label has come for both nothing is said to be equal."""
    found = as_json(made.tool("compare", "--json"))
    said = made.tool("compare").stdout.splitlines()
    made.configure(challenger={"D": 12, "tau": 0.2})
    made.send([client.event("last", [0.0, 0.0, 0.0])])
    made.run()
    fresh = made.tool("compare").stdout

    for what, kind in (("false alarms", "non_targets"), ("detections", "targets")):
        (line,) = [line for line in said if line.startswith(f"{what}: ")]
        assert ("more than chance" in line) is (found[kind]["p"] < 0.05)
        assert ("may be chance" in line) is (found[kind]["p"] >= 0.05)
        assert f"{what}: not known yet" in fresh
    assert "no difference" not in fresh


def test_under_alarm_rate_the_rate_that_is_held_is_shown(tmp_path: Path) -> None:
    """Of the challenger and of each tier, in `inspect` and before a promotion."""
    model = {name: value for name, value in MODEL.items() if name != "tau"}
    found = stage(tmp_path, model={**model, "control": "alarm_rate", "tiers": {"block": 0.05, "review": 0.1}})
    found.configure(challenger={"D": 24})
    found.send(mixed(500))
    found.run()
    card = as_json(found.tool("inspect", "--partition", "0", "--json"))
    text = found.tool("inspect", "--partition", "0").stdout
    overview = found.tool("inspect").stdout
    found.configure(model={**found.mapping["model"], "D": 24}, challenger=None)
    planned = found.tool("promote").stdout

    assert card["challenger"]["control"] == "alarm_rate"
    assert "not published: tau 0.1 of alarms among all observations" in text
    for shown in (card, card["challenger"], *card["tiers"]):
        assert f"{shown['alarm_rate']['lifetime']:.4f} since warm-up" in text
    assert f"{card['alarm_rate']['lifetime']:.4f}" in overview
    assert f"challenger alarm rate {card['challenger']['alarm_rate']['lifetime']:.4f}" in planned


def test_a_backtest_has_both_side_by_side(made: Stage) -> None:
    """A run of its own for each, as if it were alone."""
    runs = as_json(made.tool("backtest", "--json"))

    assert [run["name"] for run in runs] == ["run", "challenger"]
    assert runs[0]["digest"] != runs[1]["digest"]


def test_promotion_says_what_is_in_the_way(made: Stage, tmp_path: Path) -> None:
    """Settings that are not the challenger's, a worker with those settings before it, and no challenger at all."""
    refused = made.tool("promote")
    assert refused.exit_code == 2
    assert "model.D is 8, the challenger has 24" in refused.stderr
    made.configure(model=BETTER, challenger=None)
    with pytest.raises(SettingsError, match="npstream promote"):
        made.run()
    dry = made.tool("promote")
    assert (dry.exit_code, "dry run" in dry.stdout) == (0, True)

    other = stage(tmp_path / "other")
    other.send(mixed(50))
    other.run()
    assert "nothing to do" in other.tool("promote").stdout
    other.configure(model=BETTER)
    assert "has no challenger" in other.tool("promote").stderr


def test_history_goes_on_through_a_promotion(made: Stage) -> None:
    """
    Promoted, with the next challenger from the same offset on, crashed, promoted again: audit reproduces every
    decision and proves the state, history names both, and no decision was published twice.
    """
    promote(made, D=4)
    made.send(mixed(400, seed=3, first=1000))
    made.run(crashes=[3, 7])
    made.configure(model={**BETTER, "D": 4}, challenger=None)
    assert made.tool("promote", "--execute").exit_code == 0
    made.send(mixed(200, seed=4, first=2000))
    made.run(crashes=[2])
    audit = made.tool("audit")
    changes = as_json(made.tool("inspect", "--partition", "0", "--history", "--json"))["changes"]

    listed = made.tool("inspect", "--partition", "0", "--history").stdout

    assert audit.exit_code == 0, audit.output
    assert "final state proven" in audit.stdout
    assert "offset          200  challenger none -> (params.D 24, params.tau 0.2)\n" in listed
    assert "offset         1200  promoted: challenger (params.D 4) -> none, params.D 24 -> 4" in listed
    assert [(change["offset"], change["promoted"]) for change in changes] == [
        (0, False),
        (200, False),
        (800, True),
        (800, False),
        (1200, True),
    ]
    offsets = [dict(record.headers)["npstream-offset"] for record in made.records(Channel.DECISIONS, 0)]
    assert len(set(offsets)) == len(offsets)
    models = {decision["model"] for decision in _decisions(made)}
    assert len(models) == 3
    assert as_json(made.tool("explain", "--partition", "0", "--offset", "900", "--json"))["published"]


def test_a_rollback_crosses_a_promotion(made: Stage) -> None:
    """Back before it, and promoted again; back to the very offset of it: audit knows what counts."""
    promote(made)
    made.send(mixed(300, seed=3, first=1000))
    made.run()
    assert made.tool("rollback", "--to", "800", "--execute").exit_code == 0
    made.run()
    assert made.tool("audit").exit_code == 0, made.tool("audit").output
    assert made.tool("rollback", "--to", "600", "--execute").exit_code == 0
    with pytest.raises(SettingsError, match="npstream promote"):
        made.run()
    assert made.tool("promote", "--execute").exit_code == 0
    made.run(crashes=[3])
    audit = made.tool("audit")

    assert audit.exit_code == 0, audit.output
    (last,) = [
        change["offset"]
        for change in as_json(made.tool("inspect", "--partition", "0", "--history", "--json"))["changes"]
        if change["promoted"]
    ]
    assert last == 600


def test_an_audit_that_begins_before_a_promotion_goes_through_it(made: Stage) -> None:
    """From a kept checkpoint of before on."""
    promote(made)
    made.send(mixed(100, seed=3, first=1000))
    made.run()
    snapshots = as_json(made.tool("inspect", "--partition", "0", "--history", "--json"))["snapshots"]
    begin = max(kept["next_offset"] for kept in snapshots if kept["next_offset"] < 800)
    found = made.tool("audit", "--from", str(begin))

    assert found.exit_code == 0, found.output
    assert f"starting at {begin}, through 1 change" in found.stdout


def _decisions(made: Stage) -> list[dict[str, Any]]:
    return [orjson.loads(record.value or b"") for record in made.records(Channel.DECISIONS, 0)]
