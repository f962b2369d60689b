"""The cap on dead letters, as an operator meets it: the partition pauses, and what its message advises works."""

import re
from pathlib import Path

import pytest

from npstream import client
from npstream.errors import Fatal
from npstream.records import Channel
from tests.history.stages import as_json, stage, tool

BAD, GOOD = 700, 3000
RUBBISH = [client.Message(b"bad%d" % i, b"rubbish") for i in range(BAD)]
EVENTS = [client.event(i, [i % 7, i % 3, i % 5], target=i % 7 > 5) for i in range(GOOD)]


def test_the_way_on_that_the_message_names_is_one(tmp_path: Path) -> None:
    """A restart alone changes nothing; the setting that is named lets every event through, and can be put back."""
    made = stage(tmp_path)
    made.send(RUBBISH + EVENTS)
    messages = []
    for _ in range(2):
        with pytest.raises(Fatal) as paused:
            made.run()
        messages.append(str(paused.value))
    raised, lowered = re.findall(r"set events\.dead_letter_cap to (\S+) and restart", messages[0])

    assert made.run(settings={"events": {"dead_letter_cap": float(raised)}}).paused == {}
    made.send([*RUBBISH[:400], *EVENTS[:10]])
    outcome = made.run(settings={"events": {"dead_letter_cap": float(lowered)}})

    assert messages[0] == messages[1]
    assert float(lowered) == made.settings.events.dead_letter_cap == 0.5
    assert outcome.paused == {}
    assert len(made.records(Channel.DEAD_LETTERS, 0)) == BAD + 400
    assert [decision.id for decision in outcome.decisions] == [*range(GOOD), *range(10)]
    found = as_json(tool(tmp_path, "audit", "--json"))
    assert (found["holds"], found["decisions"]) == (True, GOOD + 10)


def test_crashes_on_the_way_leave_no_trace(tmp_path: Path) -> None:
    """Pause, higher cap, lower cap: the same bytes whether or not workers die in between."""
    published = []
    for name, crashes in (("calm", ()), ("stormy", (3, 9, 20, 40))):
        made = stage(tmp_path / name)
        made.send(RUBBISH + EVENTS[:500])
        with pytest.raises(Fatal):
            made.run(crashes)
        made.run(crashes, settings={"events": {"dead_letter_cap": 1.0}})
        made.send([*RUBBISH[:100], *EVENTS[500:600]])
        published.append(made.run(crashes, settings={"events": {"dead_letter_cap": 0.5}}).published)

    assert published[0] == published[1]
