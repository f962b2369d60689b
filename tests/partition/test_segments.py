"""Waiting observations in segments: what a checkpoint writes, what it removes, and the state that comes back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.codec.chunks import SegmentKey, join
from npstream.codec.history import read_history
from npstream.codec.segments import first_record, named_in, with_segments, without_segments
from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.errors import StateCorrupt
from npstream.partition import LabelConfig, PartitionConfig, PartitionProcessor
from npstream.partition import segments as storage
from npstream.partition.archive import ArchiveRules
from npstream.partition.checkpoint import checkpoint_share
from npstream.records import KeyValue, Record, Share
from tests.partition.builders import config, mixed, overruled, processor, record

KEEP = 3


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four entries to a segment, so that a short stream fills and empties many."""
    monkeypatch.setattr(storage, "ENTRIES_MAX", 4)


@dataclass
class Topic:
    """A checkpoint topic of one partition, compacted all the time: the newest record of each key."""

    records: dict[bytes, KeyValue] = field(default_factory=dict)
    end: int = 0
    written: int = 0
    """Bytes of segments so far."""

    def commit(self, share: Share) -> int:
        """Append what a share writes; the offset of its first chunk."""
        for key, value in share.segments:
            self._append(key, value)
            self.written += len(value or b"")
        first = self.end
        for key, value in share.chunks:
            self._append(key, value)
        return first

    def _append(self, key: bytes, value: bytes | None) -> None:
        self.records.pop(key, None)
        if value is not None:
            self.records[key] = KeyValue(self.end, key, value)
        self.end += 1

    def segments(self) -> set[int]:
        """The numbers of those that are there."""
        return {int(key.rpartition(b"/")[2]) for key in self.records if b"/segment/" in key}


@dataclass
class Life:
    """A processor with its checkpoint topic."""

    machine: PartitionProcessor
    topic: Topic = field(default_factory=Topic)
    newest: int = 0
    snapshots: int = 0
    rules: ArchiveRules | None = None

    def checkpoint(self) -> Share:
        """Write one, as a worker does."""
        share = checkpoint_share(self.machine, (), self.snapshots % KEEP, self.newest, KEEP, self.rules)
        self.newest = self.topic.commit(share)
        self.snapshots += 1
        return share

    def die(self) -> None:
        """Go on from the newest checkpoint, read as a restore reads it: from the first segment to the pointer."""
        found = self.topic.records
        chunks = [found[key] for key, _ in sorted((r.key, r) for r in found.values() if r.offset >= self.newest)]
        snapshot = decode_snapshot(join(chunks))
        begin = first_record(snapshot)
        between = [r for r in found.values() if begin is not None and begin <= r.offset < self.newest]
        self.machine = PartitionProcessor.from_snapshot(with_segments(snapshot, between))


def whole(machine: PartitionProcessor) -> bytes:
    """The state in one piece, whatever lies in segments."""
    return encode_snapshot(machine.snapshot())


RULES = config(labels=LabelConfig(buffer_max=30, expire_events=120))
CORRECTING = config(labels=LabelConfig(buffer_max=30, expire_events=120, corrections=True))


@pytest.mark.parametrize(("rules", "stream"), [(RULES, mixed), (CORRECTING, overruled)], ids=["once", "corrected"])
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=25), st.integers(0, 9))
def test_a_state_in_segments_is_the_state_in_one_piece(
    rules: PartitionConfig, stream: Callable[[int, int], list[Record]], steps: list[tuple[int, bool]], seed: int
) -> None:
    """Checkpoints and deaths at any points: the same outputs, the same state, as without any; kept ones are whole."""
    records = stream(sum(size for size, _ in steps), seed)
    calm, life = processor(rules), Life(processor(rules))
    at = 0
    for size, dies in steps:
        batch, at = records[at : at + size], at + size
        assert life.machine.process(batch).outputs == calm.process(batch).outputs
        life.checkpoint()
        if dies:
            life.die()
        assert whole(life.machine) == whole(calm)
        assert life.machine.proof() == calm.proof()
        history = read_history(life.topic.records.values(), "g", "events", 0)
        assert len(history.snapshots) == min(KEEP, life.snapshots)
        for kept in history.snapshots:
            PartitionProcessor.from_snapshot(kept.snapshot)
        named = {number for kept in history.snapshots for number in named_in(kept.snapshot.blobs)}
        assert named <= life.topic.segments()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 9), st.integers(5, 60))
def test_what_is_stored_is_bounded_and_what_is_not_needed_is_removed(seed: int, every: int) -> None:
    """Twice what waits and some segments; when nothing waits any more nothing is left."""
    life = Life(processor(RULES))
    records = mixed(600, seed)
    for at in range(0, len(records), every):
        life.machine.process(records[at : at + every])
        life.checkpoint()
        stored = sum(each.stored for each in life.machine.pending.segments.named.values())
        assert stored <= 2 * len(life.machine.pending) + 2 * 4 + 4
    offset = life.machine.next_offset
    # All that waits expires, and every kept snapshot is replaced.
    life.machine.process([record(offset + i, {"x": [0, 0, 0], "y": 1}) for i in range(130)])
    for _ in range(KEEP + 1):
        life.checkpoint()

    assert len(life.machine.pending) == 0
    assert life.topic.segments() == set()


def observations(begin: int, end: int) -> list[Record]:
    """Observations whose ids are their offsets."""
    return [record(at, {"id": at, "x": [at % 7, 0, 0]}) for at in range(begin, end)]


def test_a_checkpoint_costs_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many wait: what a checkpoint writes of them stays within twice what parking the new ones costs."""
    monkeypatch.setattr(storage, "ENTRIES_MAX", 100)
    life = Life(processor(config(labels=LabelConfig(buffer_max=10_000))))
    for at in range(0, 10_000, 500):
        life.machine.process(observations(at, at + 500))
        blobs, segments = life.machine.pending.store(0, KEEP, life.machine._segment)
        written = sum(len(value or b"") for _, value in segments) + sum(map(len, blobs.values()))
        assert written < 2 * 500 * (33 + 4 * 3)

    assert len(life.machine.pending) == 10_000


def test_a_segment_is_written_once() -> None:
    """While its observations wait, checkpoint after checkpoint names the record that is there."""
    life = Life(processor(config(labels=LabelConfig(buffer_max=50))))
    life.machine.process(observations(0, 21))
    first = life.checkpoint()
    life.machine.process(observations(21, 22))
    second = life.checkpoint()

    assert [parsed.number for parsed in segment_keys(first)] == [0, 1, 2, 3, 4]
    assert second.segments == ()
    assert first.segments[0][0] == SegmentKey("g", "events", 0, 0).encode()


def segment_keys(share: Share) -> list[SegmentKey]:
    """Which segments a share writes or removes."""
    return [SegmentKey("g", "events", 0, int(key.rpartition(b"/")[2])) for key, _ in share.segments]


@pytest.mark.parametrize("damage", ["gone", "another", "flipped"])
def test_a_segment_that_is_not_what_was_written_is_refused(damage: str) -> None:
    """Gone, replaced by another whole one, or with a changed byte: named by its key, with the way back."""
    life = Life(processor(config(labels=LabelConfig(buffer_max=50))))
    life.machine.process(observations(0, 21))
    life.checkpoint()
    key = SegmentKey("g", "events", 0, 1).encode()
    other = life.topic.records[SegmentKey("g", "events", 0, 2).encode()].value
    old = life.topic.records.pop(key)
    assert old.value is not None
    if damage != "gone":
        value = other if damage == "another" else old.value[:-20] + b"\x01" + old.value[-19:]
        life.topic.records[key] = old._replace(value=value)

    with pytest.raises(StateCorrupt, match=r"1 of its 5 segments .* g/events/0/segment/0+1; .*npstream rollback"):
        life.die()
    assert read_history(life.topic.records.values(), "g", "events", 0).snapshots == ()


@pytest.mark.parametrize("change", [{"buffer_max": 60}, {"buffer_max": 12}, {"remembered_max": 7}])
def test_other_settings_leave_what_is_written(change: dict[str, Any]) -> None:
    """A larger or smaller buffer: nothing is written again but what is new, and the state comes back."""
    life = Life(processor(config(labels=LabelConfig(buffer_max=50))))
    life.machine.process(observations(0, 40))
    life.checkpoint()
    life.machine.reconfigure(config(labels=LabelConfig(**{"buffer_max": 50, **change})))
    share = life.checkpoint()
    before = whole(life.machine)
    life.die()

    assert [value for _, value in share.segments if value is not None] == []
    assert whole(life.machine) == before


def test_a_label_since_the_segment_was_written_survives() -> None:
    """The record of a segment stays as it is; the snapshot says which of its observations have which label."""
    life = Life(processor(config(labels=LabelConfig(buffer_max=50, corrections=True))))
    life.machine.process(observations(0, 21))
    life.checkpoint()
    life.machine.process([record(21, {"id": 3, "y": 1}), record(22, {"id": 5, "y": -1})])
    share = life.checkpoint()
    life.die()
    life.machine.process(
        [record(23, {"id": 3, "y": -1}), record(24, {"id": 5, "y": -1}), record(25, {"id": 3, "y": 1})]
    )
    tally = life.machine.tally

    assert share.segments == ()
    assert (tally.labels_corrected, tally.labels_duplicate) == (2, 1)
    assert (life.machine.model.negatives, life.machine.model.positives) == (1, 1)


def test_large_entries_make_small_segments() -> None:
    """The record of a segment stays below what brokers take, whatever the number of features."""
    sizes = [storage.segment_entries(33 + 4 * d) * (33 + 4 * d + 8) for d in (1, 29, 200, 1000, 50_000)]

    assert max(sizes) < 900_000
    assert np.all(np.array([storage.segment_entries(33 + 4 * d) for d in (1000, 10**6)]) >= 1)


def test_held_segments_that_follow_one_another_take_the_room_of_one() -> None:
    """A long archive of a long buffer costs a snapshot little; each archived snapshot has runs of its own."""
    held = {2: {6}, 9: {3, 4, 5, 7, 8}}
    blobs = storage.SegmentIndex(4, held=held).dump(np.zeros(0, np.int64), np.zeros(0, np.int8))

    assert np.frombuffer(blobs["segments.held"], "<i8").reshape(-1, 3).tolist() == [[2, 6, 1], [9, 3, 3], [9, 7, 2]]
    assert storage.SegmentIndex.load(4, 0, blobs)[0].held == held


def test_what_waits_in_segments_is_counted_without_them() -> None:
    """Those that have a label, whichever it is, wait no more."""
    life = Life(processor(config(labels=LabelConfig(buffer_max=50, corrections=True))))
    life.machine.process(observations(0, 21))
    life.checkpoint()
    life.machine.process([record(21 + i, {"id": i, "y": y}) for i, y in enumerate((1, -1, 1, 1))])
    snapshot, _ = life.machine.checkpoint(1, life.newest, KEEP)

    assert without_segments(snapshot)[1] == 5 * 4 - 4
