"""Observations that wait for their label, in bounded memory.

An entry is the 128-bit hash of an id, the raw float32 features (or the event's
own score), the event count and event time at which it was parked, and the
published decision, which the kernel writes and reads by slot. Order is the
order of parking; a slot is only an address and never influences anything, so a
restored buffer may use other slots than the one that was saved.

Beside the buffer two short memories say what became of a label's event: ids whose
observation is gone (labelled: a second label is a duplicate; expired: it is
late), and labels that came before their observation (early).
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from npstream.partition.config import LabelConfig

EARLY_MAX = 1024
"""Labels kept that arrived before their observation. Small: a label normally comes after."""

GONE_MAX = 4096
"""Ids remembered after their observation left, to name a further label duplicate or late."""

_LABELLED, _EXPIRED = 1, 0


@dataclass(frozen=True, slots=True)
class ParkedObservation:
    """One parked observation on its way out: its slot, and copies of what the slot held."""

    slot: int
    x: npt.NDArray[np.float32]
    score: float


class Pending:
    """The bounded buffer of one partition. `decided` is shared with the kernel."""

    def __init__(self, config: LabelConfig, d: int) -> None:
        size = config.buffer_max
        self._config = config
        self._slots: OrderedDict[bytes, int] = OrderedDict()
        self._free = list(range(size - 1, -1, -1))
        self._x = np.zeros((size, d), np.float32)
        self._score = np.zeros(size, np.float64)
        self._count = np.zeros(size, np.int64)
        self._clock = np.zeros(size, np.int64)
        self.decided = np.zeros(size, np.int8)
        self._gone: OrderedDict[bytes, int] = OrderedDict()
        self._early: OrderedDict[bytes, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._slots)

    def holds(self, key: bytes) -> bool:
        """Whether an observation with this id waits."""
        return key in self._slots

    def full(self) -> bool:
        """Whether parking one more must push out the oldest."""
        return not self._free

    def park(self, key: bytes, x: npt.NDArray[np.float32], score: float, count: int, clock: int) -> int:
        """Keep an observation; return its slot. The caller has made room and checked for duplicates."""
        slot = self._free.pop()
        self._slots[key] = slot
        self._x[slot] = x
        self._score[slot] = score
        self._count[slot] = count
        self._clock[slot] = clock
        # `decided` stays as it is: an operation planned earlier in this batch may still read the slot's last tenant.
        return slot

    def take(self, key: bytes) -> ParkedObservation:
        """Remove the observation a label has come for."""
        self._remember(key, _LABELLED)
        return self._leave(self._slots.pop(key))

    def expire(self, count: int, clock: int) -> Iterator[ParkedObservation]:
        """Remove, oldest first, what has waited longer than the rules allow at this event."""
        events, seconds = self._config.expire_events, self._config.expire_seconds
        if events is None and seconds is None:
            return
        while self._slots:
            slot = next(iter(self._slots.values()))
            by_count = events is not None and count - int(self._count[slot]) > events
            by_time = seconds is not None and clock - int(self._clock[slot]) > seconds * 1000
            if not (by_count or by_time):
                return
            yield self.evict()

    def evict(self) -> ParkedObservation:
        """Remove the oldest observation; its label, should it still come, will be late."""
        key, slot = self._slots.popitem(last=False)
        self._remember(key, _EXPIRED)
        return self._leave(slot)

    def fate(self, key: bytes) -> str:
        """What to call a label whose observation does not wait: duplicate, late or unmatched."""
        gone = self._gone.get(key)
        if gone is None:
            return "duplicate" if key in self._early else "unmatched"
        return "duplicate" if gone == _LABELLED else "late"

    def keep_early(self, key: bytes, y: int) -> bool:
        """Keep a label until its observation comes; return whether an older one was given up."""
        self._early[key] = y
        if len(self._early) <= EARLY_MAX:
            return False
        self._early.popitem(last=False)
        return True

    def take_early(self, key: bytes) -> int:
        """The label that came before this observation, 0 when none did."""
        if not self._early:
            return 0
        y = self._early.pop(key, 0)
        if y:
            self._remember(key, _LABELLED)
        return y

    def _leave(self, slot: int) -> ParkedObservation:
        self._free.append(slot)
        return ParkedObservation(slot, self._x[slot].copy(), float(self._score[slot]))

    def _remember(self, key: bytes, how: int) -> None:
        self._gone.pop(key, None)
        self._gone[key] = how
        if len(self._gone) > GONE_MAX:
            self._gone.popitem(last=False)

    def dump(self) -> dict[str, bytes]:
        """Canonical blobs for a snapshot: entries in order of parking, without free slots."""
        slots = np.fromiter(self._slots.values(), np.int64, len(self._slots))
        return {
            "pending.ids": b"".join(self._slots),
            "pending.x": self._x[slots].astype("<f4").tobytes(),
            "pending.score": self._score[slots].astype("<f8").tobytes(),
            "pending.count": self._count[slots].astype("<i8").tobytes(),
            "pending.clock": self._clock[slots].astype("<i8").tobytes(),
            "pending.decided": self.decided[slots].tobytes(),
            "labels.gone": _pack(self._gone),
            "labels.early": _pack(self._early),
        }

    @classmethod
    def load(cls, config: LabelConfig, d: int, blobs: Mapping[str, bytes]) -> "Pending":
        """A buffer with the dumped content. Raises ValueError when it does not fit the rules."""
        pending = cls(config, d)
        ids = blobs["pending.ids"]
        n = len(ids) // 16
        if n > config.buffer_max:
            raise ValueError(f"{n} waiting observations do not fit labels.buffer_max {config.buffer_max}")
        for i in range(n):
            pending._slots[ids[16 * i : 16 * i + 16]] = pending._free.pop()
        slots = np.fromiter(pending._slots.values(), np.int64, n)
        pending._x[slots] = np.frombuffer(blobs["pending.x"], "<f4").reshape(n, d)
        for name, target in _columns(pending):
            target[slots] = np.frombuffer(blobs[name], target.dtype.newbyteorder("<"))
        pending._gone = _unpack(blobs["labels.gone"])
        pending._early = _unpack(blobs["labels.early"])
        return pending


def id_hash(identity: str | int) -> bytes:
    """The 128-bit hash an id is remembered by."""
    return blake2b(id_text(identity), digest_size=16).digest()


def id_text(identity: str | int) -> bytes:
    """What is hashed of an id: the text "7" and the number 7 are different ids."""
    return b"s" + identity.encode() if isinstance(identity, str) else b"i%d" % identity


def _columns(pending: Pending) -> list[tuple[str, npt.NDArray[Any]]]:
    return [
        ("pending.score", pending._score),
        ("pending.count", pending._count),
        ("pending.clock", pending._clock),
        ("pending.decided", pending.decided),
    ]


def _pack(items: OrderedDict[bytes, int]) -> bytes:
    return b"".join(key + value.to_bytes(1, "little", signed=True) for key, value in items.items())


def _unpack(packed: bytes) -> OrderedDict[bytes, int]:
    return OrderedDict(
        (packed[at : at + 16], int.from_bytes(packed[at + 16 : at + 17], "little", signed=True))
        for at in range(0, len(packed), 17)
    )
