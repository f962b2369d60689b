"""The kit for a user's own tests: real workers, real crashes, no Kafka."""

import inspect
from itertools import count
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from npstream import client, testing
from npstream.errors import Fatal, SettingsError
from npstream.testing import Stage, run

SETTINGS: dict[str, Any] = {
    "topics": {"events": "orders"},
    "model": {"d": 2, "D": 8, "tau": 0.1},
    "worker": {"batch_max": 25},
    "checkpoint": {"every_events": 60},
}


def events(count: int, first: int = 0) -> list[client.Message]:
    """Observations whose labels come 30 events later, and a bad event now and then."""
    found: list[client.Message] = []
    for i in range(first, first + count):
        found.append(client.event(i, [i % 7 / 7, i % 3 / 3]) if i % 50 else client.Message(b"%d" % i, b"rubbish"))
        if i - first >= 30 and (i - 30) % 50:
            found.append(client.label(i - 30, target=(i - 30) % 7 > 5))
    return found


def test_the_documented_example_runs() -> None:
    """The example of the module's docstring is a test that passes."""
    text = inspect.getdoc(testing)
    assert text is not None
    code = dedent(text.split("\n\n", 1)[1].split("\n\nNo Kafka", 1)[0])
    space: dict[str, Any] = {}
    exec(code, space)

    space["test_crashes_leave_no_trace"]()
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_every_crash_is_met_and_leaves_no_trace() -> None:
    """Whichever call is the last of a life, the outcome is that of a calm run, dead letters included."""
    calm = run(SETTINGS, events(150))
    assert len(calm.dead_letters) == 3
    replayed = 0
    for at in count(1):
        stormy = run(SETTINGS, events(150), crashes=[at])
        assert stormy == calm, at
        replayed += stormy.replayed
        if stormy.crashes == 0:
            break
    assert at > 10  # joins, reads its state, polls for each batch, and twice for each commit
    assert replayed > 0


def test_a_worker_may_die_again_and_again_on_several_partitions() -> None:
    """Deaths in restore, in replay and in the very next commit add up to nothing."""
    calm = run(SETTINGS, events(300), partitions=3)
    stormy = run(SETTINGS, events(300), crashes=range(2, 60, 3), partitions=3)

    assert stormy == calm
    assert stormy.crashes > 5


def test_other_events_give_another_outcome() -> None:
    """Equality of outcomes can fail: one changed feature shows."""
    changed = events(150)
    changed[60] = client.event(40, [9.0, 9.0], key=changed[60].key)

    assert run(SETTINGS, changed) != run(SETTINGS, events(150))


def test_settings_may_be_a_file_whose_broker_is_not_needed(tmp_path: Path) -> None:
    """A settings file for Kafka serves as it is; its cluster is never asked."""
    file = tmp_path / "settings.yaml"
    file.write_text("kafka: {bootstrap: '${NOWHERE}', group: g}\ntopics: {events: e}\nmodel: {d: 2, D: 4}\n")

    assert len(run(file, events(20)).decisions) == 19


def test_a_stage_goes_on_with_other_settings(tmp_path: Path) -> None:
    """Events sent later are decided under what is in force then."""
    stage = Stage(SETTINGS, tmp_path)
    stage.send(events(60))
    stage.run()
    stage.send(events(60, first=60))
    outcome = stage.run(settings={"model": {**SETTINGS["model"], "tau": 0.3}})

    assert [decision.tau for decision in outcome.decisions] == [0.1] * 58 + [0.3] * 59


def test_what_cannot_work_is_refused() -> None:
    """Bad settings and a partition full of rubbish are reported as by a worker."""
    with pytest.raises(SettingsError, match="tau"):
        run({**SETTINGS, "model": {"d": 2, "tau": 3}}, [])
    with pytest.raises(Fatal, match="dead_letter_cap"):
        run({**SETTINGS, "events": {"dead_letter_cap": 0.001}}, [client.Message(b"k", b"x")] * 5)
