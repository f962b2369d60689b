"""Segments: waiting observations as records of their own, so that a checkpoint costs what is new.

Observations are numbered as they are parked; a segment is a range of numbers. Once
all of its numbers are given, those of it that still wait are written, one record,
once. From then on snapshots name the segment and say which of its entries still
wait, and under which label others stay; only what waits in the newest, open range is part of the snapshot itself. A
segment of which nothing waits any more is named no longer, and removed when the
last kept snapshot that named it has been replaced: one of the ring, or an archived one.

Numbers are for storage alone: no decision depends on them. Where few entries of a
range still wait they get new numbers, so that what is stored stays within a
multiple of what waits.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from npstream.arrays import Ints, Signs
from npstream.codec.segments import (
    NAMED,
    NON_TARGETS,
    TARGETS,
    WAITING,
    NamedSegment,
    dump_named,
    named_in,
    record_digest,
)

ENTRIES_MAX = 1000
"""Entries of a segment, fewer where they are large."""
_RECORD_MAX_BYTES = 800_000
"""Of a segment's entries: with what surrounds them they stay below what brokers take."""
_STORED_MAX = 2
"""Times what waits that may be stored, and two segments more."""

Mask = NDArray[np.bool_]
Places = tuple[Mask, Signs]
"""For each place of a segment whether its entry is still there, and its label, 0 for none."""
_LABELS = {NON_TARGETS: -1, TARGETS: 1}
"""Blobs that say which entries have which label; empty where none has any."""
_DROPPED = np.dtype([("number", "<i8"), ("at", "<i8")])
_RUN = np.dtype([("archive", "<i8"), ("begin", "<i8"), ("count", "<i8")])


def segment_entries(entry_bytes: int) -> int:
    """How many entries a segment has when one has so many bytes."""
    return max(1, min(ENTRIES_MAX, _RECORD_MAX_BYTES // entry_bytes))


@dataclass(frozen=True, slots=True)
class Layout:
    """What a checkpoint does with the entries, each by its place in the array of their numbers.

    `inline` go into the snapshot; `new` are segments to write, by number; `removed` those to remove from the log.
    """

    inline: Ints
    new: dict[int, Ints]
    removed: list[int]


@dataclass(slots=True)
class SegmentIndex:
    """Which segments of one partition are written, and which wait to be removed."""

    size: int
    named: dict[int, NamedSegment] = field(default_factory=dict)
    dropped: dict[int, int] = field(default_factory=dict)
    """Segments that are named no longer, with the number of the first snapshot that did not."""
    snapshots: int = 0
    since: dict[int, int] = field(default_factory=dict)
    """The number of the snapshot with which each of these segments was written."""
    held: dict[int, set[int]] = field(default_factory=dict)
    """Segments that are kept for an archived snapshot alone, by the number of the newest one that names them."""

    def lay_out(self, numbers: Ints, parked: Ints, keep: int, archives: Collection[int] = ()) -> Layout:
        """Decide for all that waits, changing `numbers` and `parked` (the next number) where entries are moved.

        What is removed is named by none of the `keep` snapshots that are kept from now on, nor by the archived
        ones, of which the numbers are given.
        """
        self.snapshots += 1
        self._move(numbers, parked)
        segment = numbers // self.size
        alive = {*_counts(segment)}
        for number in self.named.keys() - alive:
            del self.named[number]
            self.dropped[number] = self.snapshots
        removed = self._release(keep, archives)
        closed = int(parked[0]) // self.size
        unwritten = sorted(number for number in alive - self.named.keys() if number < closed)
        places = _by_number(np.flatnonzero(_is_one_of(segment, unwritten)), numbers)
        cuts = np.searchsorted(segment[places], unwritten[1:])
        new = dict(zip(unwritten, np.split(places, cuts), strict=True)) if unwritten else {}
        return Layout(_by_number(np.flatnonzero(segment >= closed), numbers), new, removed)

    def _release(self, keep: int, archives: Collection[int]) -> list[int]:
        """The segments that no kept snapshot names any more."""
        gone = [archive for archive in self.held if archive not in archives]
        removed = [number for archive in gone for number in sorted(self.held.pop(archive))]
        for number, at in [each for each in sorted(self.dropped.items()) if self.snapshots - each[1] >= keep]:
            del self.dropped[number]
            since = self.since.pop(number, 0)
            naming = max((archive for archive in archives if since <= archive < at), default=None)
            if naming is None:
                removed.append(number)
            else:
                self.held.setdefault(naming, set()).add(number)
        return removed

    def _move(self, numbers: Ints, parked: Ints) -> None:
        """Give new numbers to what is left of segments that are hardly worth keeping."""
        segment = numbers // self.size
        sparse = [number for number in self._sparse(_counts(segment)) if number < parked[0] // self.size]
        moved = _by_number(np.flatnonzero(_is_one_of(segment, sparse)), numbers)
        numbers[moved] = parked[0] + np.arange(len(moved))
        parked[0] += len(moved)

    def _sparse(self, waiting: Mapping[int, int]) -> list[int]:
        """Not written and less than half full; or written, mostly gone, and too much of that is stored."""
        sparse = [number for number, left in waiting.items() if number not in self.named and 2 * left < self.size]
        stored = sum(each.stored for each in self.named.values())
        for _, number in sorted((waiting.get(number, 0), number) for number in self.named):
            if stored <= _STORED_MAX * sum(waiting.values()) + 2 * self.size:
                break
            stored -= self.named[number].stored
            sparse.append(number)
        return sparse

    def begun_again(self, size: int) -> "SegmentIndex":
        """An index of segments of another size, for what is written again; those there are named no longer."""
        dropped = self.dropped | dict.fromkeys(self.named, self.snapshots + 1)
        return SegmentIndex(size, {}, dropped, self.snapshots, self.since, self.held)

    def written(self, number: int, after: int, stored: int, value: bytes) -> None:
        """This segment's record is part of the checkpoint that is being made."""
        self.named[number] = NamedSegment(after, stored, record_digest(value))
        self.since[number] = self.snapshots
        self.dropped.pop(number, None)

    def dump(self, numbers: Ints, label: Signs) -> dict[str, bytes]:
        """Blobs for a snapshot: what is named, and which of it is still there; `numbers` and labels of all that is."""
        inside = _is_one_of(numbers // self.size, self.named)
        numbers, label = numbers[inside], label[inside]
        return {
            NAMED: dump_named(self.named),
            WAITING: self._bits(numbers),
            **{name: self._bits(numbers[label == y]) if label.any() else b"" for name, y in _LABELS.items()},
            "segments.dropped": np.array(sorted(self.dropped.items()), _DROPPED).tobytes(),
            "segments.since": np.array(sorted(self.since.items()), _DROPPED).tobytes(),
            "segments.held": np.array(_runs(self.held), _RUN).tobytes(),
        }

    def _bits(self, numbers: Ints) -> bytes:
        """A bit for each place of each segment, set for these numbers."""
        named = np.array(sorted(self.named), np.int64)
        places = np.zeros((len(named), self.size), np.bool_)
        places[np.searchsorted(named, numbers // self.size), numbers % self.size] = True
        return np.packbits(places, axis=1).tobytes()

    @classmethod
    def load(cls, size: int, snapshots: int, blobs: Mapping[str, bytes]) -> tuple["SegmentIndex", dict[int, Places]]:
        """What `dump` wrote, and what became of each segment's entries. Raises ValueError."""
        named = named_in(blobs)

        def flags(name: str) -> Mask:
            packed = np.frombuffer(blobs[name], np.uint8).reshape(len(named), -(-size // 8))
            return np.unpackbits(packed, axis=1, count=size).astype(np.bool_)

        waits, label = flags(WAITING), np.zeros((len(named), size), np.int8)
        for name, y in _LABELS.items():
            if blobs[name]:
                label[flags(name)] = y
        dropped = dict(np.frombuffer(blobs["segments.dropped"], _DROPPED).tolist())
        since = dict(np.frombuffer(blobs["segments.since"], _DROPPED).tolist())
        held: dict[int, set[int]] = {}
        for archive, begin, count in np.frombuffer(blobs["segments.held"], _RUN).tolist():
            held.setdefault(archive, set()).update(range(begin, begin + count))
        places = dict(zip(sorted(named), zip(waits, label, strict=True), strict=True))
        return cls(size, named, dropped, snapshots, since, held), places


def _runs(held: Mapping[int, Collection[int]]) -> list[tuple[int, int, int]]:
    """Held segments as runs of numbers that follow one another: observations leave about as they came."""
    runs: list[tuple[int, int, int]] = []
    for archive in sorted(held):
        for number in sorted(held[archive]):
            if runs and runs[-1][0] == archive and sum(runs[-1][1:]) == number:
                runs[-1] = (archive, runs[-1][1], runs[-1][2] + 1)
            else:
                runs.append((archive, number, 1))
    return runs


def _counts(segment: Ints) -> dict[int, int]:
    """How many entries each segment has that has any."""
    if not len(segment):
        return {}
    low = int(segment.min())
    counts = np.bincount(segment - low)
    found = np.flatnonzero(counts)
    return dict(zip((found + low).tolist(), counts[found].tolist(), strict=True))


def _by_number(places: Ints, numbers: Ints) -> Ints:
    """These places in the order of their numbers: where an entry lies must not show in what is written."""
    return places[np.argsort(numbers[places])]


def _is_one_of(segment: Ints, numbers: Collection[int]) -> Mask:
    """Which entries lie in one of these segments, by a table: there may be a million entries."""
    if not len(segment) or not numbers:
        return np.zeros(len(segment), np.bool_)
    low, high = int(segment.min()), int(segment.max())
    table = np.zeros(high - low + 1, np.bool_)
    table[[number - low for number in numbers if low <= number <= high]] = True
    return table[segment - low]
