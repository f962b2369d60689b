"""Observations that wait for their label, in bounded memory.

An entry is the key of an id, the raw float32 features (or the event's own
score), the event count and event time at which it was parked, and the published
decision, which the kernel writes and reads by slot. Order is the order of
parking. Compiled code (`joining`) puts entries in and takes them out.

Beside the buffer two memories say what became of a label's event: ids whose
observation is gone (labelled: a second label is a duplicate; expired: it is
late), and labels that came before their observation (early).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from npstream.arrays import Features, Floats, Ints, Signs
from npstream.codec.digest import KEY_BYTES
from npstream.partition.config import LabelConfig
from npstream.partition.keyed import COUNT, Keyed, append_all, keyed, slots_of


class Buffer(NamedTuple):
    """What waits, by slot: `x` float32[size, d]; `score` float64[size] where events bring one (d = 0), else empty.

    `parked_at` is the number of the event it came with, `parked_ms` the partition's own time then.
    """

    entries: Keyed
    x: Features
    score: Floats
    parked_at: Ints
    parked_ms: Ints
    decided: Signs


class Memory(NamedTuple):
    """A value for each of the newest ids."""

    entries: Keyed
    value: Signs


class Pending:
    """The waiting observations of one partition, and its two memories."""

    def __init__(self, config: LabelConfig, d: int) -> None:
        size = config.buffer_max
        self._config = config
        self.buffer = Buffer(
            keyed(size),
            np.zeros((size, d), np.float32),
            np.zeros(0 if d else size, np.float64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int8),
        )
        self.gone = _memory(config.remembered_max)
        self.early = _memory(config.early_max)

    def __len__(self) -> int:
        return int(self.buffer.entries.numbers[COUNT])

    @property
    def decided(self) -> Signs:
        """The published decisions by slot, shared with the kernel."""
        return self.buffer.decided

    def dump(self) -> dict[str, bytes]:
        """Canonical blobs for a snapshot: entries in order of parking, without free slots."""
        slots = slots_of(self.buffer.entries)
        columns = {name: _little(column[slots]) for name, column in _columns(self.buffer)}
        return columns | {"labels.gone": _pack(self.gone), "labels.early": _pack(self.early)}

    @classmethod
    def load(cls, config: LabelConfig, d: int, blobs: Mapping[str, bytes]) -> "Pending":
        """A buffer with the dumped content. Raises ValueError when it does not fit the rules."""
        pending = cls(config, d)
        keys = np.frombuffer(blobs["pending.ids"], "<u8").reshape(-1, 2)
        if len(keys) > config.buffer_max:
            raise ValueError(f"{len(keys)} waiting observations do not fit labels.buffer_max {config.buffer_max}")
        n, slots = len(keys), append_all(pending.buffer.entries, keys.astype(np.uint64))
        for name, column in _columns(pending.buffer):
            column[slots] = np.frombuffer(blobs[name], column.dtype.newbyteorder("<")).reshape(n, *column.shape[1:])
        _unpack(pending.gone, blobs["labels.gone"])
        _unpack(pending.early, blobs["labels.early"])
        return pending


def _memory(size: int) -> Memory:
    return Memory(keyed(size), np.zeros(size, np.int8))


def _columns(buffer: Buffer) -> list[tuple[str, npt.NDArray[Any]]]:
    columns: list[tuple[str, npt.NDArray[Any]]] = [
        ("pending.ids", buffer.entries.key),
        ("pending.x", buffer.x),
        ("pending.count", buffer.parked_at),
        ("pending.clock", buffer.parked_ms),
        ("pending.decided", buffer.decided),
    ]
    return columns + ([("pending.score", buffer.score)] if buffer.score.size else [])


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
