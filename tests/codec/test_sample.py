"""How an event is read, for people."""

import orjson

from npstream.codec.sample import read_sample
from tests.codec.builders import record
from tests.codec.payments import EVENT, PAYMENTS


def test_a_good_event_is_shown_column_by_column() -> None:
    """What is written at each path, and what the model sees."""
    found = read_sample(record(orjson.dumps(EVENT), offset=7), PAYMENTS)

    assert (found.offset, found.event_id, found.label, found.problem) == (7, "'p-1'", "non-target", None)
    assert found.columns[1].texts == ("velocity", "velocity_1h", "3")
    assert found.columns[1].seen == "3"
    assert len(found.lines()) == 1 + len(found.columns) == 1 + PAYMENTS.d


def test_a_bad_event_is_shown_by_its_reason() -> None:
    """And nothing else."""
    found = read_sample(record(b"no json", offset=8), PAYMENTS)

    assert found.problem is not None
    assert found.lines() == [f"event 8 is bad: {found.problem}"]
    assert found.columns == ()
