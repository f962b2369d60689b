"""Archived snapshots: when one is due, that each stays whole with its segments, and that the oldest go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.chunks import ArchiveKey, parse_key
from npstream.codec.history import read_history
from npstream.codec.segments import named_in
from npstream.partition import PartitionProcessor
from npstream.partition import segments as storage
from npstream.partition.archive import Archive, Archived, ArchiveRules
from npstream.records import Record
from tests.partition.builders import config, mixed, processor, record
from tests.partition.test_segments import RULES, Life, whole

DAY_MS = 86_400_000
MINUTE_MS = 60_000


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four entries to a segment, so that a short stream fills and empties many."""
    monkeypatch.setattr(storage, "ENTRIES_MAX", 4)


def archives_in(life: Life) -> list[int]:
    """The offsets of the archived snapshots in the topic."""
    keys = [parse_key(key) for key in life.topic.records]
    return sorted({key.offset for key in keys if isinstance(key, ArchiveKey)})


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=25),
    st.integers(0, 9),
    st.integers(20, 200),
    st.integers(1, 4),
)
def test_every_archived_snapshot_stays_whole(steps: list[tuple[int, bool]], seed: int, every: int, keep: int) -> None:
    """Checkpoints and deaths at any points: each of the archived ones is the state as it was then, segments and all."""
    life = Life(processor(RULES), rules=ArchiveRules(None, every, keep))
    records = mixed(sum(size for size, _ in steps), seed)
    then: dict[int, bytes] = {}
    at = 0
    for size, dies in steps:
        life.machine.process(records[at : at + size])
        at += size
        life.checkpoint()
        then[life.machine.next_offset] = state(life.machine)
        if dies:
            life.die()
        history = read_history(life.topic.records.values(), "g", "events", 0)
        archived = [kept for kept in history.snapshots if kept.is_archived]
        assert [kept.next_offset for kept in archived] == archives_in(life)
        assert [each.offset for each in life.machine.archive.kept] == archives_in(life)
        assert len(archived) <= keep
        assert history.incomplete == ()
        for kept in archived if at == len(records) else archived[-1:]:
            assert state(PartitionProcessor.from_snapshot(kept.snapshot)) == then[kept.next_offset]
        named = {number for kept in history.snapshots for number in named_in(kept.snapshot.blobs)}
        assert named <= life.topic.segments()


def state(machine: PartitionProcessor) -> bytes:
    """The whole state, without the archive's own bookkeeping."""
    machine = PartitionProcessor.from_snapshot(machine.snapshot())
    machine.archive = Archive()
    return whole(machine)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 9), st.integers(5, 60), st.integers(1, 4))
def test_segments_of_archived_snapshots_go_with_them(seed: int, every: int, keep: int) -> None:
    """What is stored stays bounded, and nothing is left once nothing waits and every snapshot is replaced."""
    life = Life(processor(RULES), rules=ArchiveRules(None, 100, keep))
    records = mixed(800, seed)
    for at in range(0, len(records), every):
        life.machine.process(records[at : at + every])
        life.checkpoint()
        held = life.machine.pending.segments.held.values()
        assert sum(map(len, held)) <= keep * (2 * 30 + 4)
    for _ in range(keep + 1):
        offset = life.machine.next_offset
        life.machine.process([record(offset + i, {"x": [0, 0, 0], "y": 1}) for i in range(130)])
        life.checkpoint()
    for _ in range(4):
        life.checkpoint()

    assert len(archives_in(life)) == keep
    assert life.topic.segments() == set()
    assert life.machine.pending.segments.held == {}
    assert life.machine.pending.segments.since == {}


def test_the_same_records_archive_the_same_bytes() -> None:
    """Two lives with the same checkpoints write the same records, to the last byte, through any death."""
    shares = []
    for dies in (False, True):
        life = Life(processor(RULES), rules=ArchiveRules(None, 100, 2))
        written = []
        for at in range(0, 600, 60):
            life.machine.process(mixed(600, 3)[at : at + 60])
            written.append(life.checkpoint())
            if dies:
                life.die()
        shares.append(written)
    assert shares[0] == shares[1]


def test_none_is_archived_without_rules_and_all_go_with_none_to_keep() -> None:
    """archive_keep 0 removes what is there; a tool that moves a position leaves the archive alone."""
    life, offsets = Life(processor(RULES), rules=ArchiveRules(None, 40, 3)), []
    for at in range(0, 250, 50):
        life.machine.process(mixed(250, 1)[at : at + 50])
        life.checkpoint()
        offsets.append(life.machine.next_offset)
    assert archives_in(life) == offsets[-3:]

    life.rules = None
    life.checkpoint()
    assert archives_in(life) == offsets[-3:]
    life.rules = ArchiveRules(None, 50, 0)
    life.checkpoint()
    assert archives_in(life) == []


def timed(offset: int, at_ms: int) -> Record:
    """An observation of this time."""
    return record(offset, {"id": offset, "x": [0, 0, 0]})._replace(timestamp_ms=at_ms)


def test_one_a_day_of_event_time() -> None:
    """Days pass by the timestamps of the events, however long the worker took."""
    life = Life(processor(config()), rules=ArchiveRules(DAY_MS, None, 10))
    for i in range(300):  # four an hour, 75 hours
        life.machine.process([timed(i, DAY_MS * 9 + i * 15 * MINUTE_MS)])
        life.checkpoint()
    assert archives_in(life) == [97, 193, 289]


@given(st.lists(st.integers(-5 * MINUTE_MS, 3 * DAY_MS), min_size=1, max_size=60), st.integers(1, 7))
def test_event_time_is_the_same_in_any_batching(stamps: list[int], size: int) -> None:
    """One timestamp after another, or many at once."""
    alone, together = Archive(), Archive()
    for stamp in stamps:
        alone.pass_time(np.array([stamp], np.int64))
    for at in range(0, len(stamps), size):
        together.pass_time(np.array(stamps[at : at + size], np.int64))
    assert alone == together


def test_one_far_future_timestamp_does_not_end_the_archive() -> None:
    """It moves the time by a quarter of an hour: the next day is archived as ever."""
    archive = Archive()
    archive.pass_time(np.array([0, 2**55], np.int64))
    assert archive.clock_ms == 15 * MINUTE_MS
    archive.pass_time(np.arange(0, DAY_MS + 1, MINUTE_MS))
    assert archive.is_due(ArchiveRules(DAY_MS, None, 10), 10)


def test_what_a_given_up_past_has_archived_goes_first() -> None:
    """After a rollback: those that are gone are forgotten, those of the other past are the first to be removed."""
    archive = Archive(kept=[Archived(100, 1, 4), Archived(200, 2, 9)])
    archive.adopt([(200, 2), (300, 3)])
    assert archive.kept == [Archived(300, 3, -1), Archived(200, 2, 9)]
    assert archive.let_go(1) == [Archived(300, 3, -1)]
    assert Archive.load(archive.dump()) == archive
