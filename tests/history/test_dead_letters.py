"""Dead letters: found, shown, sent back."""

from pathlib import Path

import pytest

from npstream import client
from npstream.history.dead_letters import paced
from npstream.records import Channel
from npstream.testing import Stage
from tests.history.stages import as_json, mixed, stage, tool

GOOD = client.event("late", [1.0, 2.0, 3.0], target=True, timestamp_ms=1_700_000_000_123)


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """Two partitions with three kinds of bad events among good ones."""
    found = stage(tmp_path, partitions=2)
    bad = [
        client.Message(b"a", b"rubbish", [("trace", b"1"), ("trace", b"2")], 1_700_000_000_500),
        client.Message(b"b", b'{"id":"b","x":[1,2]}', [], 1_700_000_000_900),
        client.Message(b"c", b"\xff\x00", [], 1_700_000_001_500),
    ]
    found.send([*mixed(10), *bad], partition=0)
    found.send([*bad[:1], *mixed(10, seed=1)], partition=1)
    found.run()
    return found


def own(found: dict[str, object]) -> list[tuple[object, ...]]:
    """The bad events of the fixture among the listed ones, as (partition, key, reason)."""
    dead_letters = found["dead_letters"]
    assert isinstance(dead_letters, list)
    return [(x["partition"], x["key"], x["reason"]) for x in dead_letters if x["key"] in ("a", "b", "c")]


def test_letters_are_counted_by_reason_and_listed(made: Stage, tmp_path: Path) -> None:
    """Totals count all; the list is cut at the limit."""
    found = as_json(tool(tmp_path, "dlq", "list", "--json"))
    total = sum(len(made.records(Channel.DEAD_LETTERS, p)) for p in range(2))

    assert found["total"] == sum(found["by_reason"].values()) == total
    assert own(found) == [(0, "a", "not_json"), (0, "b", "wrong_length"), (0, "c", "not_json"), (1, "a", "not_json")]
    assert len(as_json(tool(tmp_path, "dlq", "list", "--limit", "1", "--json"))["dead_letters"]) == 1
    text = tool(tmp_path, "dlq", "list", "--limit", "1").stdout
    assert "not_json" in text
    assert f"and {total - 1} more" in text


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--reason", "wrong_length"], [(0, "b")]),
        (["--reason", "wrong_length", "--reason", "not_json", "--partition", "1"], [(1, "a")]),
        (["--from", "11"], [(0, "b"), (0, "c")]),
        (["--from", "10", "--to", "11"], [(0, "a")]),
        (["--from", "2023-11-14T22:13:20.600Z", "--to", "2023-11-14T22:13:21+00:00"], [(0, "b")]),
    ],
)
def test_letters_are_chosen_by_reason_partition_time_and_offset(
    made: Stage, tmp_path: Path, arguments: list[str], wanted: list[tuple[int, str]]
) -> None:
    """Times and offsets are those of the events."""
    found = own(as_json(tool(tmp_path, "dlq", "list", *arguments, "--json")))

    assert [(partition, key) for partition, key, _ in found] == wanted


def test_one_letter_in_full(made: Stage, tmp_path: Path) -> None:
    """The event as it was sent, in text and, where it is none, in base64."""
    found = as_json(tool(tmp_path, "dlq", "show", "--partition", "0", "--offset", "10", "--json"))
    assert (found["value"], found["headers"]) == ("rubbish", [["trace", "1"], ["trace", "2"]])
    assert (found["topic"], found["timestamp"]) == ("events", 1_700_000_000_500)
    assert "b'rubbish'" in tool(tmp_path, "dlq", "show", "--partition", "0", "--offset", "10").stdout

    binary = as_json(tool(tmp_path, "dlq", "show", "--partition", "0", "--offset", "12", "--json"))
    assert binary["value"] == {"base64": "/wA="}
    assert tool(tmp_path, "dlq", "show", "--partition", "0", "--offset", "11111").exit_code == 2


def test_redrive_sends_events_as_they_were_to_the_partition_they_came_from(made: Stage, tmp_path: Path) -> None:
    """Key, value, headers and timestamp are the producer's; ours are gone; nothing else is sent."""
    before = {p: made.records(Channel.EVENTS, p) for p in range(2)}
    result = tool(tmp_path, "dlq", "redrive", "--reason", "not_json", "--from", "10", "--to", "11")

    assert "sent 1 event to the end of events; order is not kept" in result.stdout
    sent = made.records(Channel.EVENTS, 0)[len(before[0]) :]
    assert [(r.key, r.value, tuple(r.headers), r.timestamp_ms) for r in sent] == [
        (b"a", b"rubbish", (("trace", b"1"), ("trace", b"2")), 1_700_000_000_500)
    ]
    assert made.records(Channel.EVENTS, 1) == before[1]


def test_a_dry_run_sends_nothing(made: Stage, tmp_path: Path) -> None:
    """It says how many it would send, and where."""
    before = made.records(Channel.EVENTS, 0)
    found = as_json(tool(tmp_path, "dlq", "redrive", "--reason", "wrong_length", "--dry-run", "--json"))

    assert found == {"dry_run": True, "sent": 1, "foreign": 0, "truncated": 0, "partitions": {"0": 1}}
    assert made.records(Channel.EVENTS, 0) == before


def test_a_redriven_event_is_decided_once_its_cause_is_mended(tmp_path: Path) -> None:
    """An event that was too long for the settings is decided after the limit was raised, and audit agrees."""
    made = stage(tmp_path, events={"max_bytes": 20})
    made.send([GOOD])
    assert len(made.run().dead_letters) == 1
    tool(tmp_path, "dlq", "redrive")
    outcome = made.run(settings={"events": {"max_bytes": 1000}})

    assert [decision.id for decision in outcome.decisions] == ["late"]
    assert tool(tmp_path, "audit").exit_code == 0


def test_a_letter_that_fails_again_keeps_its_history(made: Stage, tmp_path: Path) -> None:
    """Sent back without a remedy it comes back as a dead letter of its new offset."""
    tool(tmp_path, "dlq", "redrive", "--partition", "0", "--from", "10", "--to", "11")
    made.run()
    newest = made.records(Channel.DEAD_LETTERS, 0)[-1]
    assert newest.value == b"rubbish"
    assert own(as_json(tool(tmp_path, "dlq", "list", "--partition", "0", "--from", "13", "--json"))) == [
        (0, "a", "not_json")
    ]
    assert tool(tmp_path, "audit").exit_code == 0


def test_a_rate_spreads_what_is_sent(tmp_path: Path) -> None:
    """After each event the sender waits until it is time for the next one, and catches up when it was late."""
    now, waited = 100.0, []

    def sleep(seconds: float) -> None:
        nonlocal now
        waited.append(seconds)
        now += seconds

    pace = paced(4.0, lambda: now, sleep)
    pace(1)
    now += 0.4
    pace(2)
    pace(3)
    paced(None, lambda: now, sleep)(4)

    assert waited == pytest.approx([0.25, 0.0, 0.1])


def test_an_event_that_was_refused_twice_is_sent_back_once(made: Stage, tmp_path: Path) -> None:
    """After a rollback the same event has two dead letters, and only one of them goes back."""
    before = as_json(tool(tmp_path, "dlq", "list", "--json"))
    assert tool(tmp_path, "rollback", "--to", "0", "--execute").exit_code == 0
    made.run()

    dead_letters = sum(len(made.records(Channel.DEAD_LETTERS, p)) for p in range(2))
    assert dead_letters == 2 * before["total"]
    assert as_json(tool(tmp_path, "dlq", "list", "--json")) == before
    assert as_json(tool(tmp_path, "dlq", "redrive", "--dry-run", "--json"))["sent"] == before["total"]


def test_dead_letters_of_another_topic_stay(tmp_path: Path) -> None:
    """A dead-letter topic that is shared by several inputs does not mix them."""
    made = stage(tmp_path)
    made.send([client.Message(b"k", b"rubbish")])
    made.run()
    dead_letter = made.records(Channel.DEAD_LETTERS, 0)[0]
    log = made.log()
    headers = [(n, b"elsewhere" if n == "npstream-topic" else content) for n, content in dead_letter.headers]
    log.append(Channel.DEAD_LETTERS, 0, [(dead_letter.key, dead_letter.value, headers, dead_letter.timestamp_ms)])
    log.close()

    result = tool(tmp_path, "dlq", "redrive")
    assert "sent 1 event " in result.stdout
    assert "left out 1 that came from another topic" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reason", "tired"], "--reason tired: unknown; known are tombstone"),
        (["--partition", "5"], "partition 5 does not exist"),
        (["--from", "noon"], "neither an offset nor a timestamp"),
    ],
)
def test_a_wrong_choice_is_refused(made: Stage, tmp_path: Path, arguments: list[str], message: str) -> None:
    """One clear message and exit code 2."""
    result = tool(tmp_path, "dlq", "list", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def test_a_record_that_is_no_dead_letter_is_named(tmp_path: Path) -> None:
    """A wrong topic name is found out at the first record."""
    made = stage(tmp_path)
    log = made.log()
    log.append(Channel.DEAD_LETTERS, 0, [(b"k", b"v", (), 1)])
    log.close()

    result = tool(tmp_path, "dlq", "list")
    assert result.exit_code == 2
    assert "check the name of the dead-letter topic" in result.stderr


def test_an_empty_dead_letter_topic_is_good_news(tmp_path: Path) -> None:
    """Nothing to list is said in words and exits 0."""
    stage(tmp_path)

    result = tool(tmp_path, "dlq", "list")
    assert (result.exit_code, result.stdout) == (0, "no dead letters\n")
