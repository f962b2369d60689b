"""Audit: everything is reproduced after crashes, changes and rollbacks, and one changed byte is found."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from npstream import client
from npstream.history import published
from npstream.records import Channel, Record
from npstream.testing import Stage
from tests.history.stages import SETTINGS, as_json, mixed, rewrite, stage, tamper, tool

CHANGED = {"model": {**SETTINGS["model"], "tau": 0.3}}


def eventful(folder: Path, partitions: int = 1) -> Stage:
    """Crashes, a change of tau, more crashes."""
    made = stage(folder, partitions)
    made.send(mixed(400))
    assert made.run(crashes=[5, 9, 14, 20]).crashes == 4
    made.send(mixed(300, seed=1, first=400))
    assert made.run(crashes=[3, 8, 13], settings=CHANGED).crashes == 3
    return made


def test_everything_is_reproduced_after_failovers_and_a_change_of_tau(tmp_path: Path) -> None:
    """All decisions and dead letters of all partitions, from the first event on, and the final state too."""
    made = eventful(tmp_path, partitions=2)
    result = tool(tmp_path, "audit", "--json")

    found = as_json(result)
    counts = {
        channel: sum(len(made.records(channel, p)) for p in range(2))
        for channel in made.settings.topic_names().channels()
    }
    assert result.exit_code == 0
    assert (found["holds"], found["decisions"]) == (True, counts[Channel.DECISIONS])
    assert found["reproduced"] == counts[Channel.DECISIONS] + counts[Channel.DEAD_LETTERS]
    assert [part["state_proven"] for part in found["partitions"]] == [True, True]
    assert [part["changes"] for part in found["partitions"]] == [1, 1]
    assert [part["recomputed_from"] for part in found["partitions"]] == [0, 0]


def test_the_verdict_in_words(tmp_path: Path) -> None:
    """The last line says how many of how many."""
    made = eventful(tmp_path)
    decisions, dead_letters = (len(made.records(channel, 0)) for channel in (Channel.DECISIONS, Channel.DEAD_LETTERS))

    result = tool(tmp_path, "audit")

    assert result.stdout.splitlines()[-1] == (
        f"{decisions} of {decisions} decisions and {dead_letters} of {dead_letters} dead letters reproduced bit for bit"
    )


def test_a_range_is_recomputed_from_the_kept_checkpoint_before_it(tmp_path: Path) -> None:
    """Only the decisions for the range are counted, and the replay is short."""
    made = eventful(tmp_path)
    found = as_json(tool(tmp_path, "audit", "--from", "620", "--to", "680", "--json"))["partitions"][0]

    decided = [int(dict(r.headers)["npstream-offset"] or b"") for r in made.records(Channel.DECISIONS, 0)]
    assert found["decisions"] == sum(620 <= offset < 680 for offset in decided)
    assert 500 < found["recomputed_from"] <= 620
    assert found["state_proven"] is None


def test_a_long_topic_is_searched_by_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few records a search may read at once, the same decisions are found for every range."""
    eventful(tmp_path)
    ranges = [("0", "700"), ("333", "334"), ("501", "650"), ("690", "700")]
    whole = [as_json(tool(tmp_path, "audit", "--from", a, "--to", b, "--json")) for a, b in ranges]
    monkeypatch.setattr(published, "_BISECT_FROM", 3)

    assert [as_json(tool(tmp_path, "audit", "--from", a, "--to", b, "--json")) for a, b in ranges] == whole
    assert all(found["holds"] for found in whole)


def flip(value: bytes, at: int) -> bytes:
    """One bit of one byte."""
    return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]


@pytest.mark.parametrize("part", ["value", "key", "headers", "ts"])
@pytest.mark.parametrize("channel", [Channel.DECISIONS, Channel.DEAD_LETTERS])
def test_one_flipped_byte_is_found_and_both_records_are_shown(tmp_path: Path, part: str, channel: Channel) -> None:
    """Whatever is changed in one output, the audit names its event, shows both sides and exits 1."""
    made = eventful(tmp_path)
    record = made.records(channel, 0)[11]
    name = made.settings.topic_names().names()[channel]
    changes: dict[str, Any] = {
        "value": flip(record.value or b"", 7),
        "key": flip(record.key or b"", 0),
        "headers": None,
        "ts": record.timestamp_ms + 1,
    }
    tamper(
        made,
        f"UPDATE records SET {part} = ? WHERE partition = 0 AND offset = ? AND topic = "
        "(SELECT topic FROM topics WHERE name = ?)",
        *(changes[part], record.offset, name),
    )

    result = tool(tmp_path, "audit", "--json")
    difference = as_json(result)["partitions"][0]["difference"]
    assert result.exit_code == 1
    assert difference["topic"] == channel.name.lower()
    if part != "headers":
        decided = [content for header, content in record.headers if header == "npstream-offset"][-1]
        assert difference["offset"] == int(decided or b"")
        assert difference["expected"] != difference["published"]
        assert difference["what"] == f"has another {'timestamp' if part == 'ts' else part}"
    assert "first difference" in tool(tmp_path, "audit").stdout


def labelled_event(made: Stage, *, with_label: bool) -> tuple[Record, dict[str, Any]]:
    """An event in the middle, with x; its document."""
    for record in made.records(Channel.EVENTS, 0)[300:]:
        try:
            document = orjson.loads(record.value or b"")
        except orjson.JSONDecodeError:
            continue
        if "x" in document and ("y" in document) == with_label:
            return record, document
    raise AssertionError("no such event")


def test_one_edited_feature_is_found(tmp_path: Path) -> None:
    """An event that reads otherwise than when it was decided leads to another score."""
    made = eventful(tmp_path)
    record, document = labelled_event(made, with_label=False)
    document["x"][0] += 1e-3
    rewrite(made, Channel.EVENTS, record, orjson.dumps(document))

    result = tool(tmp_path, "audit", "--json")
    difference = as_json(result)["partitions"][0]["difference"]
    assert (result.exit_code, difference["offset"]) == (1, record.offset)


@pytest.mark.parametrize("alone", [True, False])
def test_one_edited_label_is_found_by_a_decision_after_it(tmp_path: Path, alone: bool) -> None:
    """A label that was learned cannot be turned round without changing what was decided afterwards."""
    made = eventful(tmp_path)
    labels = [
        (r, orjson.loads(r.value or b""))
        for r in made.records(Channel.EVENTS, 0)[300:]
        if (r.value or b"").startswith(b"{") and b'"y"' in (r.value or b"")
    ]
    record, document = next((r, d) for r, d in labels if ("x" not in d) == alone)
    document["y"] = -document["y"]
    rewrite(made, Channel.EVENTS, record, orjson.dumps(document))

    result = tool(tmp_path, "audit", "--json")
    difference = as_json(result)["partitions"][0]["difference"]
    assert result.exit_code == 1
    assert difference["offset"] > record.offset


def test_an_edited_label_that_no_decision_followed_is_found_by_the_state(tmp_path: Path) -> None:
    """The committed digest of the state shows even what no decision shows yet."""
    made = stage(tmp_path)
    made.send([*mixed(200), client.event("last", [0.1, 0.2, 0.3]), client.label("last", target=True)])
    made.run()
    record = made.records(Channel.EVENTS, 0)[-1]
    rewrite(made, Channel.EVENTS, record, (record.value or b"").replace(b'"y":1', b'"y":0'))

    result = tool(tmp_path, "audit", "--json")
    assert result.exit_code == 1
    assert as_json(result)["partitions"][0]["state_proven"] is False
    assert "is not the committed one" in tool(tmp_path, "audit").stdout


def test_a_lost_and_a_doubled_decision_are_found(tmp_path: Path) -> None:
    """What is missing and what nobody asked for is named."""
    made = eventful(tmp_path)
    log = made.log()
    last = made.records(Channel.DECISIONS, 0)[-1]
    log.append(Channel.DECISIONS, 0, [(last.key, last.value, last.headers, last.timestamp_ms)])
    log.close()
    result = tool(tmp_path, "audit")
    assert result.exit_code == 1
    assert "no event asked for it" in result.stdout

    tamper(
        made,
        "DELETE FROM records WHERE partition = 0 AND offset = 50 AND topic = "
        "(SELECT topic FROM topics WHERE name = 'events-decisions')",
    )
    result = tool(tmp_path, "audit")
    assert result.exit_code == 1
    assert "is missing" in result.stdout


def test_a_partition_that_was_halted_and_let_go_on_is_reproduced(tmp_path: Path) -> None:
    """The cap on dead letters stops a partition; a higher cap is a change of settings like any other."""
    made = stage(tmp_path, partitions=2, events={"dead_letter_cap": 0.01})
    rubbish = [client.Message(b"k%d" % i, b"rubbish") for i in range(15)]
    made.send(mixed(30) + rubbish + mixed(50, seed=2, first=30), partition=0)
    made.send(mixed(50), partition=1)
    assert list(made.run().paused) == [0]
    assert as_json(tool(tmp_path, "audit", "--json"))["holds"]
    assert made.run(settings={"events": {"dead_letter_cap": 0.5}}).paused == {}

    found = as_json(tool(tmp_path, "audit", "--json"))
    assert found["holds"]
    assert found["decisions"] == sum(len(made.records(Channel.DECISIONS, p)) for p in range(2))


def test_a_rollback_of_a_stream_without_dead_letters_is_reproduced(tmp_path: Path) -> None:
    """A topic that holds nothing is no obstacle to an audit across a rollback."""
    made = stage(tmp_path)
    made.send([client.event(i, [i % 7, i % 3, i % 5], target=i % 7 > 5) for i in range(300)])
    made.run()
    assert tool(tmp_path, "rollback", "--to", "0", "--execute").exit_code == 0
    made.run()

    assert as_json(tool(tmp_path, "audit", "--json"))["holds"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "2099-01-01T00:00:00Z"], "has decided nothing between"),
        (["--to", "0"], "has decided nothing between"),
        (["--partition", "7"], "partition 7 does not exist"),
        (["--from", "yesterday"], "neither an offset nor a timestamp"),
        (["--from", "2026-05-01T00:00:00"], "must name its time zone"),
    ],
)
def test_a_range_that_cannot_be_audited_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    """Wrong ranges end with one clear message and exit code 2."""
    made = stage(tmp_path)
    made.send(mixed(30))
    made.run()

    result = tool(tmp_path, "audit", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_group_that_has_decided_nothing_is_reported(tmp_path: Path) -> None:
    """An empty topic is not a success."""
    stage(tmp_path)

    result = tool(tmp_path, "audit")
    assert result.exit_code == 2
    assert "has decided nothing" in result.stderr
