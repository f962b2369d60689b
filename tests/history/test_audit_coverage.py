"""Audit says what it covers: what is published, what of it can be recomputed, what is in the way, what was given up."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from npstream.history.published import event_offset
from npstream.records import Channel
from npstream.testing import Stage
from tests.embedded import retention
from tests.history.stages import SETTINGS, as_json, mixed, rewrite, stage, tamper, tool
from tests.history.test_labels_topic import LABELS, send

OUTPUTS = (Channel.DECISIONS, Channel.DEAD_LETTERS)


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """700 events through crashes and a change of tau; checkpoints are kept at four offsets above 300."""
    found = stage(tmp_path)
    found.send(mixed(400))
    found.run(crashes=[5, 14])
    found.send(mixed(300, seed=1, first=400))
    found.run(crashes=[3, 8], settings={"model": {**SETTINGS["model"], "tau": 0.3}})
    return found


def trim(made: Stage, channel: Channel, before: int) -> None:
    """Retention takes records below a log offset."""
    with closing(made.log()) as log:
        retention.trim(log, channel, 0, before)


def offsets(made: Stage, channel: Channel) -> list[int]:
    """The input offsets of what is published, in the order of the log."""
    return [event_offset(record.headers) for record in made.records(channel, 0)]


def published_between(made: Stage, begin: int, end: int) -> int:
    """How many outputs there are for a range."""
    return sum(begin <= offset < end for channel in OUTPUTS for offset in offsets(made, channel))


def one(result: Result) -> dict[str, Any]:
    """The only partition's verdict."""
    assert result.stdout, result.stderr
    found: dict[str, Any] = as_json(result)["partitions"][0]
    return found


def causes(found: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    """Why not more, where."""
    return [(gap["cause"], gap["begin"], gap["end"], gap["records"]) for gap in found["gaps"]]


def test_everything_covered_is_complete(made: Stage, tmp_path: Path) -> None:
    """Nothing is gone, so the published range is the recomputed one."""
    result = tool(tmp_path, "audit", "--json")
    found = one(result)
    assert (result.exit_code, found["complete"], found["gaps"], found["superseded"]) == (0, True, [], [])
    assert found["published"] == [found["begin"], found["end"]] == [0, 700]


def test_trimmed_events_and_replaced_checkpoints_are_different_gaps(made: Stage, tmp_path: Path) -> None:
    """What retention took and what only lacks a checkpoint are named apart, with how many records each has."""
    trim(made, Channel.EVENTS, 250)
    result = tool(tmp_path, "audit", "--json")
    found = one(result)

    begin = found["begin"]
    assert 250 < begin < 700
    assert causes(found) == [
        ("events", 0, 250, published_between(made, 0, 250)),
        ("checkpoints", 250, begin, published_between(made, 250, begin)),
    ]
    assert found["reproduced"] == published_between(made, begin, 700) > 0
    assert (result.exit_code, found["holds"], found["complete"]) == (1, True, False)
    assert tool(tmp_path, "audit", "--allow-partial").exit_code == 0


def test_partial_coverage_in_words(made: Stage, tmp_path: Path) -> None:
    """The last line says how much is missing, lines before it why."""
    trim(made, Channel.EVENTS, 250)
    text = tool(tmp_path, "audit").stdout
    missed = as_json(tool(tmp_path, "audit", "--json"))["not_covered"]

    assert text.splitlines()[-1].startswith(f"NOT COMPLETE: {missed} published records")
    assert "not covered: offsets 0 to 249" in text
    assert "the events are gone: those from offset 250 on are kept" in text
    assert "the events are there, no checkpoint that leads to them is" in text


def test_a_range_that_can_be_recomputed_is_complete_though_others_cannot(made: Stage, tmp_path: Path) -> None:
    """Only what was asked for counts."""
    trim(made, Channel.EVENTS, 250)
    begin = one(tool(tmp_path, "audit", "--json"))["begin"]

    assert tool(tmp_path, "audit", "--from", str(begin)).exit_code == 0
    assert tool(tmp_path, "audit", "--from", str(begin - 1), "--to", str(begin)).exit_code == 1


def test_when_every_decided_event_is_gone_that_is_the_reason(made: Stage, tmp_path: Path) -> None:
    """It is not said that the group has decided nothing, and nothing proven is no success."""
    trim(made, Channel.EVENTS, 700)
    result = tool(tmp_path, "audit", "--allow-partial", "--json")
    found = one(result)

    assert (result.exit_code, found["recomputed_from"]) == (1, None)
    assert causes(found) == [("events", 0, 700, published_between(made, 0, 700))]
    assert "nothing of it can be recomputed" in tool(tmp_path, "audit").stdout


def test_a_difference_counts_though_partial_coverage_is_accepted(made: Stage, tmp_path: Path) -> None:
    """What can be recomputed must still be right."""
    trim(made, Channel.EVENTS, 250)
    last = made.records(Channel.DECISIONS, 0)[-1]
    tamper(
        made,
        "UPDATE records SET ts = ts + 1 WHERE partition = 0 AND offset = ? AND topic = "
        "(SELECT topic FROM topics WHERE name = 'events-decisions')",
        last.offset,
    )
    assert tool(tmp_path, "audit", "--allow-partial").exit_code == 1


def test_checkpoints_that_are_lost_are_named(made: Stage, tmp_path: Path) -> None:
    """A damaged record of the checkpoint topic is part of the reason."""
    trim(made, Channel.EVENTS, 250)
    begin = one(tool(tmp_path, "audit", "--json"))["begin"]
    records = {record.key: record for record in made.records(Channel.CHECKPOINTS, 0)}
    lost = next(
        r
        for r in records.values()
        if b'"next_offset":%d,' % begin in (r.value or b"") and b"/change/" not in (r.key or b"")
    )
    rewrite(made, Channel.CHECKPOINTS, lost, (lost.value or b"")[:-1] + b"?")

    found = one(tool(tmp_path, "audit", "--json"))
    assert found["begin"] > begin
    assert "damaged in the checkpoint topic: g/events/0/" in found["gaps"][-1]["why"]


def test_decisions_that_retention_took_are_no_difference(made: Stage, tmp_path: Path) -> None:
    """What is published is what is kept; who asks for more hears what became of it."""
    trim(made, Channel.DECISIONS, 100)
    first = offsets(made, Channel.DECISIONS)[0]
    found = one(tool(tmp_path, "audit", "--json"))
    assert (found["holds"], found["complete"], found["kept_from"]["decisions"]) == (True, True, first)
    assert found["decisions"] == len(made.records(Channel.DECISIONS, 0))

    asked = tool(tmp_path, "audit", "--from", "20", "--json")
    assert asked.exit_code == 1
    assert causes(one(asked)) == [("decisions", 20, first, 0)]


def test_dead_letters_that_retention_took_are_not_compared_and_that_is_said(made: Stage, tmp_path: Path) -> None:
    """Their topic may be kept for a shorter time than the decisions."""
    trim(made, Channel.DEAD_LETTERS, 6)
    result = tool(tmp_path, "audit")
    assert result.exit_code == 0
    assert "not compared: dead letters before offset" in result.stdout

    trim(made, Channel.DEAD_LETTERS, 10_000)
    found = one(tool(tmp_path, "audit", "--json"))
    assert (found["holds"], found["dead_letters"]) == (True, 0)


def test_decisions_that_somebody_deleted_are_a_difference_with_a_cause(made: Stage, tmp_path: Path) -> None:
    """Records missing where retention has taken nothing are named with where the next one is."""
    kept = offsets(made, Channel.DECISIONS)
    with closing(made.log()) as log:
        retention.delete(log, Channel.DECISIONS, 0, 30, 40)
    result = tool(tmp_path, "audit")

    assert result.exit_code == 1
    assert f"for input offset {kept[30]} of partition 0 is missing; the next one is for {kept[40]}" in result.stdout
    assert "Retention has not taken it" in result.stdout


def test_superseded_decisions_after_a_rollback_are_named(made: Stage, tmp_path: Path) -> None:
    """How many, for which offsets, and by which rollback."""
    before = {channel: offsets(made, channel) for channel in OUTPUTS}
    assert tool(tmp_path, "rollback", "--to", "500", "--why", "bad labels", "--execute").exit_code == 0
    made.run()
    result = tool(tmp_path, "audit", "--json")
    found = one(result)

    decisions, dead_letters = ([offset for offset in before[channel] if offset >= 500] for channel in OUTPUTS)
    assert (result.exit_code, found["complete"]) == (0, True)
    (given_up,) = found["superseded"]
    assert (given_up["decisions"], given_up["dead_letters"]) == (len(decisions), len(dead_letters))
    assert (given_up["first"], given_up["last"]) == (min(decisions + dead_letters), max(decisions + dead_letters))
    assert (given_up["reset"]["how"], given_up["reset"]["why"]) == ("rollback", "bad labels")
    assert "by the rollback from 700 to 500 of" in tool(tmp_path, "audit").stdout


def test_what_led_to_a_reset_is_a_gap(made: Stage, tmp_path: Path) -> None:
    """Decisions before it still count and cannot be recomputed; those after it that were replaced are superseded."""
    assert tool(tmp_path, "reset", "--to", "600", "--why", "start over", "--execute").exit_code == 0
    made.run()
    result = tool(tmp_path, "audit", "--json")
    found = one(result)

    assert result.exit_code == 1
    assert causes(found) == [("reset", 0, 600, published_between(made, 0, 600))]
    assert found["superseded"][0]["reset"]["how"] == "fresh"
    assert tool(tmp_path, "audit", "--allow-partial").exit_code == 0


def test_labels_whose_merge_is_not_on_record_any_more_are_a_gap(tmp_path: Path) -> None:
    """With a labels topic, the decisions say how it was merged: without the first ones, nothing leads to the next."""
    made = stage(tmp_path, labels=LABELS)
    send(made, 600)
    made.run(crashes=[5, 9])
    trim(made, Channel.DECISIONS, 50)
    first = offsets(made, Channel.DECISIONS)[0]
    found = one(tool(tmp_path, "audit", "--json"))

    assert found["holds"]
    assert (found["published"][0], found["gaps"][0]["cause"]) == (min(first, 0), "labels")
    assert f"those from input offset {first} on are kept" in found["gaps"][0]["why"]
    assert found["begin"] == found["gaps"][0]["end"] > first


def test_labels_that_retention_took_are_a_gap(tmp_path: Path) -> None:
    """A checkpoint whose labels are gone leads nowhere, a later one does."""
    made = stage(tmp_path, labels=LABELS)
    send(made, 600)
    made.run(crashes=[5, 9])
    last = max(int(dict(r.headers)["npstream-labels"] or b"") for r in made.records(Channel.DECISIONS, 0))
    trim(made, Channel.LABELS, last - 5)
    found = one(tool(tmp_path, "audit", "--json"))

    assert [gap["cause"] for gap in found["gaps"]] == ["labels"]
    assert "the labels that were learned are gone" in found["gaps"][0]["why"]
    assert found["begin"] > 300
