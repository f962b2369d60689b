"""Observations that wait for their label, in bounded memory.

An entry is the key of an id, the raw float32 features (or the event's own
score), the event count and event time at which it was parked, and the published
decision, which the kernel writes and reads by slot. Where labels may be corrected it stays with
its label. With a challenger it has what that one reads and has decided, too. Order is
the order of parking. Compiled code (`joining`) puts entries in and takes them out.

Beside the buffer two memories say what became of a label's event: ids whose
observation is gone (under a label: the same one is a duplicate; any other is
late), and labels that came before their observation (early).
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.arrays import Features, Floats, Ints, Signs
from npstream.codec.digest import KEY_BYTES
from npstream.model.sampling import NEVER, WARM
from npstream.model.unread import UNREAD
from npstream.partition.config import LabelConfig, PartitionConfig
from npstream.partition.keyed import COUNT, Keyed, append_all, keyed, slots_of
from npstream.partition.labelled import Labelled, labelled
from npstream.partition.segments import SegmentIndex, segment_entries

Encode = Callable[[int, Mapping[str, bytes]], bytes]
"""Makes the record of a segment out of its number and columns."""

_Columns = list[tuple[str, npt.NDArray[Any]]]
_NUMBER, _LABEL, _COUNTERS = "pending.number", "pending.label", "segments.counters"
_SCORE, _SHADOW = "pending.score", "pending.shadow"


class Widths(NamedTuple):
    """What is kept of an observation beside its key: columns of the model, further ones of its challenger, a score of
    the event's own, and what the challenger has decided."""

    d: int
    further: int = 0
    score: bool = False
    shadow: bool = False

    @classmethod
    def of(cls, config: PartitionConfig) -> "Widths":
        """Those that these settings ask for."""
        d, challenger = config.params.d, config.challenger
        if challenger is None:
            return cls(d, score=d == 0)
        further = challenger.params.d if config.reads_twice else 0
        return cls(d, further, d == 0 or challenger.params.d == 0, shadow=True)


class Buffer(NamedTuple):
    """What waits, by slot: `x` float32[size, d], those of a challenger's own behind; `score` float64[size] where events
    bring one, else empty.

    `parked_at` is the number of the event it came with, `parked_ms` the partition's own time then. `label` is 0 while
    it waits, `labelled` those that may be corrected. `number` says where it is stored (see `segments`), `parked`
    int64[1] is the next one.
    """

    entries: Keyed
    x: Features
    score: Floats
    parked_at: Ints
    parked_ms: Ints
    decided: Signs
    label: Signs
    labelled: Labelled
    number: Ints
    parked: Ints


class Memory(NamedTuple):
    """A value for each of the newest ids."""

    entries: Keyed
    value: Signs


class Pending:
    """The waiting observations of one partition, and its two memories."""

    def __init__(self, config: LabelConfig, widths: Widths) -> None:
        size = config.buffer_max
        self._config = config
        self._widths = widths
        self.shadow: Signs = np.full(size if widths.shadow else 0, NEVER, np.int8)
        """What the challenger has decided, by slot."""
        self.buffer = Buffer(
            keyed(size),
            np.zeros((size, widths.d + widths.further), np.float32),
            np.zeros(size if widths.score else 0, np.float64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int8),
            np.zeros(size, np.int8),
            labelled(size if config.corrections else 0),
            np.zeros(size, np.int64),
            np.zeros(1, np.int64),
        )
        self.segments = SegmentIndex(segment_entries(sum(column[:1].nbytes for _, column in self._columns())))
        self.gone = _memory(config.remembered_max)
        self.early = _memory(config.early_max)

    def __len__(self) -> int:
        return int(self.buffer.entries.numbers[COUNT])

    @property
    def labelled(self) -> int:
        """How many of them have a label, which may be corrected."""
        return int(self.buffer.labelled.number[0])

    @property
    def waiting(self) -> int:
        """How many wait for their label."""
        return len(self) - self.labelled

    @property
    def decided(self) -> Signs:
        """The published decisions by slot, shared with the kernel."""
        return self.buffer.decided

    def dump(self) -> dict[str, bytes]:
        """Canonical blobs of everything: entries in order of parking, without slots and segments."""
        columns = [*self._columns(), (_LABEL, self.buffer.label)]
        return self._blobs(columns, slots_of(self.buffer.entries)) | self._memories()

    def store(
        self, after: int, keep: int, encode: Encode, archives: Collection[int] = ()
    ) -> tuple[dict[str, bytes], list[tuple[int, bytes | None]]]:
        """Blobs for a checkpoint, and the segments it writes, or removes where there is no value, by number.

        `after` is a log offset before everything that this checkpoint writes, `keep` how many are kept, `archives`
        the numbers of those that are archived. The checkpoint must be committed, or this buffer thrown away.
        """
        # In no order, which costs a tenth of following it.
        slots = self.buffer.entries.table[self.buffer.entries.table > 0] - 1
        numbers = self.buffer.number[slots]
        layout = self.segments.lay_out(numbers, self.buffer.parked, keep, archives)
        self.buffer.number[slots] = numbers
        columns = [*self._columns(), (_NUMBER, self.buffer.number)]
        # Removed first: should a number come back, its new record is the one that stays.
        records: list[tuple[int, bytes | None]] = [(number, None) for number in layout.removed]
        for number, places in layout.new.items():
            value = encode(number, self._blobs(columns, slots[places]))
            self.segments.written(number, after, len(places), value)
            records.append((number, value))
        counters = np.array([self.segments.size, self.segments.snapshots, self.buffer.parked[0]], "<i8").tobytes()
        # A segment is written once: labels that came since are part of the snapshot.
        stored = self._blobs([*columns, (_LABEL, self.buffer.label)], slots[layout.inline]) | {_COUNTERS: counters}
        return stored | self.segments.dump(numbers, self.buffer.label[slots]) | self._memories(), records

    def _blobs(self, columns: _Columns, slots: npt.NDArray[np.int32]) -> dict[str, bytes]:
        return {name: _little(column[slots]) for name, column in columns}

    def _memories(self) -> dict[str, bytes]:
        return {"labels.gone": _pack(self.gone), "labels.early": _pack(self.early)}

    @classmethod
    def load(
        cls,
        config: LabelConfig,
        widths: Widths,
        blobs: Mapping[str, bytes],
        segments: Mapping[int, Mapping[str, bytes]],
        since: int = -1,
    ) -> "Pending":
        """A buffer with what `dump` or `store` wrote. Raises ValueError when it does not fit the rules.

        The challenger, if there is one, has decided nothing that was parked up to the event number `since`: what a
        segment says of that is another challenger's.
        """
        pending = cls(config, widths)
        parts = [blobs]
        kept: list[npt.NDArray[np.bool_] | None] = [None]
        if _COUNTERS in blobs:
            size, snapshots, pending.buffer.parked[0] = np.frombuffer(blobs[_COUNTERS], "<i8").tolist()
            pending.segments, places = SegmentIndex.load(size, snapshots, blobs)
            for number, (waits_at, label_at) in places.items():
                part = segments[number]
                stored = np.frombuffer(part[_NUMBER], "<i8") - number * size
                rows = waits_at[stored]
                if rows.sum() != waits_at.sum():
                    raise ValueError(f"segment {number} lacks observations that wait")
                parts.append({**part, _LABEL: label_at[stored].tobytes()})
                kept.append(rows)
        pending._fill(parts, kept)
        pending.shadow[pending.buffer.parked_at[: len(pending.shadow)] <= since] = NEVER
        _unpack(pending.gone, blobs["labels.gone"])
        _unpack(pending.early, blobs["labels.early"])
        return pending

    def under(self, config: LabelConfig, widths: Widths) -> "Pending":
        """The same under other rules, for which nothing waits too much; what is written stays written.

        Of a challenger that is a new one, or reads other features than before, nothing is known: see `forget_shadow`.
        """
        made = Pending.load(config, widths, self._in(widths), {})
        if widths._replace(shadow=False) == self._widths._replace(shadow=False):
            made.segments, made.buffer.parked[0] = self.segments, self.buffer.parked[0]
            made.buffer.number[slots_of(made.buffer.entries)] = self.buffer.number[slots_of(self.buffer.entries)]
        else:
            made._store_again(self)
        return made

    def promoted(self, config: LabelConfig, widths: Widths, tiers: int) -> "Pending":
        """The same with what the challenger reads as features of the model; the published decisions stay.

        They are told apart by at most so many `tiers`.
        """
        blobs = self.dump()
        if self._widths.further or widths.d == 0:
            x = np.frombuffer(blobs["pending.x"], "<f4").reshape(len(self), self.buffer.x.shape[1])
            blobs["pending.x"] = x[:, self._widths.d :].tobytes()
        decided = np.frombuffer(blobs["pending.decided"], np.int8).copy()
        alarmed = (decided > 0) & (decided < WARM)
        decided[alarmed] = np.minimum(decided[alarmed], tiers)
        blobs["pending.decided"] = decided.tobytes()
        made = Pending.load(config, widths, blobs, {})
        made._store_again(self)
        return made

    def forget_shadow(self) -> None:
        """A challenger begins: it has decided nothing that waits, and read nothing that only it reads."""
        self.shadow[:] = NEVER
        if self._widths.further:
            self.buffer.x[:, self._widths.d :] = UNREAD
            self._store_again(self)

    def _in(self, widths: Widths) -> dict[str, bytes]:
        """As `dump`, with columns of these widths; what is not known is unread."""
        blobs, n = self.dump(), len(self)
        x = np.full((n, widths.d + widths.further), UNREAD, "<f4")
        kept = min(widths.further, self._widths.further)
        known = np.frombuffer(blobs["pending.x"], "<f4").reshape(n, self.buffer.x.shape[1])
        x[:, : widths.d + kept] = known[:, : widths.d + kept]
        score = {_SCORE: np.full(n, UNREAD, "<f8").tobytes()} if widths.score and _SCORE not in blobs else {}
        return {**blobs, "pending.x": x.tobytes(), **score}

    def _store_again(self, old: "Pending") -> None:
        """What is written has other columns: it is written again, under numbers that were never used."""
        before = old.segments
        used = [old.buffer.parked[0] // before.size, *before.named, *before.dropped]
        used += [number for numbers in before.held.values() for number in numbers]
        first = int(max(used) + 1) * self.segments.size
        self.segments = before.begun_again(self.segments.size)
        slots = slots_of(self.buffer.entries)
        self.buffer.number[slots] = first + np.arange(len(slots))
        self.buffer.parked[0] = first + len(slots)

    def _columns(self) -> _Columns:
        columns: _Columns = [
            ("pending.ids", self.buffer.entries.key),
            ("pending.x", self.buffer.x),
            ("pending.count", self.buffer.parked_at),
            ("pending.clock", self.buffer.parked_ms),
            ("pending.decided", self.buffer.decided),
        ]
        columns += [(_SCORE, self.buffer.score)] if self.buffer.score.size else []
        return columns + ([(_SHADOW, self.shadow)] if self.shadow.size else [])

    def _fill(self, parts: list[Mapping[str, bytes]], kept: list[npt.NDArray[np.bool_] | None]) -> None:
        """Take what is kept of each part, all of it for None, in order of parking."""
        counts = _joined(parts, kept, "pending.count", self.buffer.parked_at)
        order = np.argsort(counts)
        if len(order) > self._config.buffer_max:
            raise ValueError(
                f"{len(order)} waiting observations do not fit labels.buffer_max {self._config.buffer_max}"
            )
        slots = append_all(self.buffer.entries, _joined(parts, kept, "pending.ids", self.buffer.entries.key)[order])
        for name, column in [*self._columns()[1:], (_LABEL, self.buffer.label)]:
            column[slots] = _joined(parts, kept, name, column)[order]
        if _NUMBER in parts[0]:
            self.buffer.number[slots] = _joined(parts, kept, _NUMBER, self.buffer.number)[order]
        else:  # written whole, without any segments: all are stored again
            self.buffer.number[slots] = np.arange(len(slots))
            self.buffer.parked[0] = len(slots)
        with_label = slots[self.buffer.label[slots] != 0]
        if len(with_label) and not self._config.corrections:
            raise ValueError("observations stay after their label though labels.corrections is off")
        heap = self.buffer.labelled
        heap.slot[: len(with_label)], heap.number[0] = with_label, len(with_label)


def _joined(
    parts: list[Mapping[str, bytes]], kept: list[npt.NDArray[np.bool_] | None], name: str, like: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """One column of all parts, in native bytes."""
    found = []
    for part, rows in zip(parts, kept, strict=True):
        n = len(part["pending.count"]) // 8
        # A segment may be older than the challenger.
        stored = NEVER.to_bytes(1, "little", signed=True) * n if name == _SHADOW and name not in part else part[name]
        column = np.frombuffer(stored, like.dtype.newbyteorder("<")).reshape(n, *like.shape[1:])
        found.append(column if rows is None else column[rows])
    return np.concatenate(found).astype(like.dtype, copy=False)


def _memory(size: int) -> Memory:
    return Memory(keyed(size), np.zeros(size, np.int8))


def _little(column: npt.NDArray[Any]) -> bytes:
    return column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()


def _pack(memory: Memory) -> bytes:
    """Key and value of each id, in order."""
    slots = slots_of(memory.entries)
    keys = np.frombuffer(_little(memory.entries.key[slots]), np.uint8).reshape(-1, KEY_BYTES)
    return np.hstack([keys, memory.value[slots, None].view(np.uint8)]).tobytes()


def _unpack(memory: Memory, packed: bytes) -> None:
    """The newest of the packed ids, as many as there is room for."""
    rows = np.frombuffer(packed, np.uint8).reshape(-1, KEY_BYTES + 1)[-len(memory.value) :]
    keys = np.ascontiguousarray(rows[:, :KEY_BYTES]).view("<u8").astype(np.uint64)
    memory.value[append_all(memory.entries, keys)] = np.ascontiguousarray(rows[:, KEY_BYTES]).view(np.int8)
