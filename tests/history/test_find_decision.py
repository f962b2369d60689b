"""A decision found by the id or key of its event."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from npstream import client
from npstream.codec.decisions import Decision, encode_decision
from npstream.history import find_decision
from npstream.history.find_decision import Sought, find_decisions
from npstream.records import Channel
from npstream.testing import FIRST_MS
from tests.history.stages import as_json, mixed, stage, tool
from tests.stage.stage import Stage


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """Two partitions; ids are text, a number, and none."""
    found = stage(tmp_path, partitions=2)
    found.send(mixed(120), partition=0)
    found.send([client.event(4711, [0.5, 1.0, 2.0]), client.Message(b"card-9", b'{"x":[1,2,3]}')], partition=1)
    found.run(crashes=[7])
    return found


def explained(folder: Path, *arguments: str) -> dict[str, Any]:
    """What the command says."""
    result = tool(folder, "explain", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = as_json(result)
    return found


def time_of(index: int) -> str:
    """The time of the event that was sent as number `index`."""
    return datetime.fromtimestamp((FIRST_MS + index) / 1000, UTC).isoformat()


def test_every_decision_is_found_by_its_id(made: Stage, tmp_path: Path) -> None:
    """The one explained has this id, is at the offset of its header, and is the published one."""
    for record in made.records(Channel.DECISIONS, 0)[::15]:
        decision = client.read_decision(record.value)
        found = explained(tmp_path, "--id", str(decision.id))
        assert (found["partition"], found["offset"]) == (0, client.input_offset(record.headers))
        assert (found["decision"]["id"], found["published"]) == (decision.id, True)


@pytest.mark.parametrize(
    ("arguments", "offset"),
    [(("--id", "4711"), 0), (("--id", "events/1/1"), 1), (("--key", "card-9"), 1), (("--key", "4711"), 0)],
)
def test_a_number_a_default_id_and_a_key_are_found(
    made: Stage, tmp_path: Path, arguments: tuple[str, ...], offset: int
) -> None:
    """Whatever partition they are in."""
    found = explained(tmp_path, *arguments)
    assert (found["partition"], found["offset"]) == (1, offset)


def test_a_time_range_chooses_among_decisions_with_one_id(tmp_path: Path) -> None:
    """The newest by default; an older one by its time."""
    made = stage(tmp_path)
    made.send([client.event("a" if i % 10 == 0 else f"e{i}", [i % 5, 0.0, 1.0]) for i in range(30)])
    made.run()

    assert explained(tmp_path, "--id", "a")["offset"] == 20
    assert explained(tmp_path, "--id", "a")["other_decisions"] == 2
    assert explained(tmp_path, "--id", "a", "--until", time_of(15))["offset"] == 10
    older = explained(tmp_path, "--id", "a", "--since", time_of(5), "--until", time_of(15))
    assert (older["offset"], older["other_decisions"]) == (10, 0)
    nothing = tool(tmp_path, "explain", "--id", "a", "--since", time_of(21))
    assert (nothing.exit_code, "for that time" in nothing.stderr) == (2, True)


def test_after_a_rollback_the_decision_that_counts_is_explained(
    made: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The superseded one is counted, not explained, also by a time range that many later decisions lie behind."""
    last = client.read_decision(made.records(Channel.DECISIONS, 0)[-1].value)
    assert tool(tmp_path, "rollback", "--partition", "0", "--to", "50", "--execute").exit_code == 0
    made.run()
    found = explained(tmp_path, "--id", str(last.id))
    assert (found["published"], found["other_decisions"]) == (True, 1)

    monkeypatch.setattr(find_decision, "LATE_MAX", 5)
    first = made.records(Channel.DECISIONS, 0)[0].timestamp_ms
    at = next(record for record in made.records(Channel.DECISIONS, 0) if record.timestamp_ms > first + 60)
    since, until = (time_of(at.timestamp_ms + step - FIRST_MS) for step in (0, 1))
    identity = str(client.read_decision(at.value).id)
    found = explained(tmp_path, "--id", identity, "--since", since, "--until", until)
    assert (found["published"], found["other_decisions"]) == (True, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--id", "nobody"), "no decision with id 'nobody' is in the decisions topic"),
        (("--offset", "3"), "give --partition and --offset, or --id, or --key"),
        (("--partition", "0", "--offset", "3", "--id", "a"), "give --partition and --offset, or --id, or --key"),
        ((), "give --partition and --offset, or --id, or --key"),
        (("--id", "a", "--since", "yesterday"), "'yesterday' is not a timestamp such as"),
    ],
)
def test_what_cannot_be_found_is_refused(made: Stage, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """With one clear message and exit code 2."""
    result = tool(tmp_path, "explain", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("schema", [None, 7])
def test_ids_are_compared_whole_in_both_formats(tmp_path: Path, schema: int | None) -> None:
    """An id that begins like another, a number and the same number as text, quotes and other scripts."""
    made = stage(tmp_path)
    ids: list[str | int] = ["a", "ab", "1", 1, -1, 2**63, 'q"uo', "ünï", "", "1,"]
    plain = Decision("", 1, "score", 0.5, 0.1, 0.1, None, None, 0, "m")
    with closing(made.log()) as log:
        values = [encode_decision(replace(plain, id=each), schema) for each in ids]
        log.append(
            Channel.DECISIONS,
            0,
            [(b"k", value, (("npstream-offset", b"%d" % i),), i + 1) for i, value in enumerate(values)],
        )
        for i, each in enumerate(ids):
            found = [hit.offset for hit in find_decisions(log, 0, Sought(str(each)))]
            assert found == [j for j, other in enumerate(ids) if str(other) == str(each)], each
            assert i in found
