"""Three days: a new tau, a rollback, a promotion, kills, then retention. What can be proven is, the rest is named."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from npstream.records import Channel, Record
from npstream.testing import FIRST_MS, Stage
from tests.history.stages import SETTINGS, as_json, mixed, rewrite, stage, tamper, tool
from tests.history.test_audit_coverage import causes, offsets, one, published_between, trim

DAY, DAYS = 300, 3
"""Events of a day, and days."""
STEP_MS = 86_400_000 // DAY
SECOND = {**SETTINGS["model"], "tau": 0.3}
PROMOTED = 2 * DAY + 120


def send_day(made: Stage, day: int, first: int = 0, end: int = DAY) -> None:
    """One day's events, or some of them."""
    found = mixed(DAY, seed=day, first=day * DAY)
    made.send(
        [replace(found[i], timestamp_ms=FIRST_MS + (day * DAY + i) * STEP_MS) for i in range(first, end)],
        partition=0,
    )


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """The three days; waiting observations outlast the ring."""
    found = stage(tmp_path, labels={"buffer_max": 200, "expire_events": 500}, decisions={"reasons": 2})
    send_day(found, 0)
    assert found.run(crashes=[4, 9, 17]).crashes == 3
    send_day(found, 1)
    found.configure(model=SECOND, challenger={"D": 12})
    assert found.run(crashes=[3, 8]).crashes == 2
    assert tool(tmp_path, "rollback", "--to", "450", "--why", "wrong labels", "--execute").exit_code == 0
    send_day(found, 2, end=PROMOTED - 2 * DAY)
    assert found.run(crashes=[2, 6]).crashes == 2
    found.configure(model={**SECOND, "D": 12}, challenger=None)
    assert tool(tmp_path, "promote", "--execute").exit_code == 0
    send_day(found, 2, first=PROMOTED - 2 * DAY)
    assert found.run(crashes=[4]).crashes == 1
    return found


def archived(folder: Path) -> list[int]:
    """The offsets of archived checkpoints."""
    found = as_json(tool(folder, "inspect", "--partition", "0", "--history", "--json"))
    return [each["next_offset"] for each in found["snapshots"] if each["archived"]]


def test_audit_reaches_back_to_the_archived_checkpoint_before_the_oldest_events(made: Stage, tmp_path: Path) -> None:
    """All is covered at first; then what retention leaves without a checkpoint is a gap, up to a day and no more."""
    whole = tool(tmp_path, "audit", "--json")
    assert (whole.exit_code, one(whole)["complete"]) == (0, True)
    assert one(whole)["changes"] == 3  # of tau, by the rollback, by the promotion
    assert one(whole)["superseded"][0]["reset"]["why"] == "wrong labels"
    first = archived(tmp_path)[0]
    assert DAY <= first < 450

    trim(made, Channel.EVENTS, first - 50)
    result = tool(tmp_path, "audit", "--json")
    found = one(result)
    assert (result.exit_code, found["holds"], found["begin"], found["end"]) == (1, True, first, DAY * DAYS)
    assert causes(found) == [
        ("events", 0, first - 50, published_between(made, 0, first - 50)),
        ("checkpoints", first - 50, first, published_between(made, first - 50, first)),
    ]
    assert (found["state_proven"], found["reproduced"] > 0) == (True, True)
    assert tool(tmp_path, "audit", "--allow-partial").exit_code == 0
    assert tool(tmp_path, "audit", "--from", str(first)).exit_code == 0


def test_a_flipped_byte_is_found_on_each_day(made: Stage, tmp_path: Path) -> None:
    """Each decision of any day is compared, also behind the rollback and behind what retention took."""
    first = archived(tmp_path)[0]
    for record, offset in one_of_each_day(made, Channel.DECISIONS):
        if offset >= DAY:
            trim(made, Channel.EVENTS, first)
        value = record.value or b""
        rewrite(made, Channel.DECISIONS, record, value[:9] + bytes([value[9] ^ 1]) + value[10:])
        result = tool(tmp_path, "audit", "--allow-partial", "--json")
        assert (result.exit_code, one(result)["difference"]["offset"]) == (1, offset)
        rewrite(made, Channel.DECISIONS, record, value)
    assert tool(tmp_path, "audit", "--allow-partial").exit_code == 0


def test_an_edited_event_is_found_on_each_day(made: Stage, tmp_path: Path) -> None:
    """An event that reads otherwise than when it was decided leads to another decision on it."""
    first, decided = archived(tmp_path)[0], {*offsets(made, Channel.DECISIONS)}
    for day in range(DAYS):
        if day:
            trim(made, Channel.EVENTS, first)
        record = next(r for r in made.records(Channel.EVENTS, 0) if r.offset > day * DAY + 200 and r.offset in decided)
        document: dict[str, Any] = orjson.loads(record.value or b"")
        document["x"][0] += 1e-3
        rewrite(made, Channel.EVENTS, record, orjson.dumps(document))
        result = tool(tmp_path, "audit", "--allow-partial", "--json")
        assert (result.exit_code, one(result)["difference"]["offset"]) == (1, record.offset)
        rewrite(made, Channel.EVENTS, record, record.value or b"")


def one_of_each_day(made: Stage, channel: Channel) -> Iterator[tuple[Record, int]]:
    """The last record for an event of each day, with the event's offset."""
    for day in range(DAYS):
        pairs = [*zip(made.records(channel, 0), offsets(made, channel), strict=True)]
        yield [pair for pair in pairs if day * DAY <= pair[1] < (day + 1) * DAY][-1]


def test_explain_and_rollback_reach_back_as_far(made: Stage, tmp_path: Path) -> None:
    """A decision of the second day is explained and its state returned to, though the ring begins on the third."""
    first = archived(tmp_path)[0]
    trim(made, Channel.EVENTS, first)
    at = next(offset for offset in offsets(made, Channel.DECISIONS) if offset > first)
    explained = as_json(tool(tmp_path, "explain", "--partition", "0", "--offset", str(at), "--json"))
    assert (explained["published"], explained["recomputed_from"]) == (True, first)

    assert tool(tmp_path, "inspect", "--partition", "0", "--at", str(first)).exit_code == 0
    assert tool(tmp_path, "rollback", "--to", str(first + 10), "--execute").exit_code == 0
    assert tool(tmp_path, "promote", "--execute").exit_code == 0  # the settings are those of after the promotion
    made.run()
    assert archived(tmp_path)[0] == first
    assert tool(tmp_path, "audit", "--from", str(first)).exit_code == 0


def test_a_worker_goes_on_from_an_archived_checkpoint_when_the_ring_is_lost(made: Stage, tmp_path: Path) -> None:
    """It replays a day or more, proves it, and knows which checkpoints are archived."""
    before = archived(tmp_path)
    for place in range(4):
        tamper(
            made,
            "DELETE FROM records WHERE partition = 0 AND topic = (SELECT topic FROM topics WHERE name = "
            "'events-checkpoints') AND key = ? AND offset = (SELECT max(offset) FROM records AS r WHERE r.key = ?)",
            *(b"g/events/0/%d/0" % place,) * 2,
        )
    send_day(made, 3)
    made.run()

    assert archived(tmp_path)[: len(before)] == before
    assert one(tool(tmp_path, "audit", "--json"))["state_proven"] is True


def test_the_oldest_archived_checkpoints_go(tmp_path: Path) -> None:
    """No more than archive_keep stay, and their segments go with them."""
    rules = {**SETTINGS["checkpoint"], "archive_seconds": 3 * 3600, "archive_keep": 2}
    made = stage(tmp_path, checkpoint=rules, labels={"buffer_max": 200, "expire_events": 300})
    for day in range(2):
        send_day(made, day)
        made.run(crashes=[3 + day])

    found = archived(tmp_path)
    assert (len(found), found[0] > DAY) == (2, True)
    newest = {record.key: record.value for record in made.records(Channel.CHECKPOINTS, 0)}
    assert sum(b"/archive-" in (key or b"") for key, value in newest.items() if value) == 2
