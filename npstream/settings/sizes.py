"""How large a partition's state can grow, computed before it does."""

from dataclasses import dataclass
from typing import Protocol

from npstream.model import Params
from npstream.model.account import dump_account, empty_account
from npstream.model.state import empty_state, named_arrays
from npstream.partition import PartitionConfig
from npstream.partition.pending import Widths
from npstream.partition.proof import BLOCK
from npstream.partition.segments import segment_entries
from npstream.partition.timeline import PACKED_MAX

SNAPSHOT_MAX_BYTES = 64 * 2**20
"""Largest snapshot accepted: some 75 chunks in one transaction, a second or two to write and to read."""

BUFFER_MAX_BYTES = 512 * 2**20
"""Largest buffer of waiting observations: a restore reads it, and half as much again lies around it in memory."""

_ENTRY_BYTES = 16 + 8 + 8 + 1
"""A waiting observation without its features or score: hash of the id, count, event time, decision."""

_SCORE_BYTES = 8
"""What preset external keeps in place of features."""

_REMEMBERED_BYTES = 17
"""A remembered id: its hash and a sign."""

_NUMBER_BYTES = 8 + 1
"""Where an observation is stored, and its label, in the snapshot that holds it."""

_NAMED_BYTES = 36 + 16 + 16 + 1
"""A segment in a snapshot that names it: number, place, digest, age; and until it is removed. A bit an entry more,
and two where labels may be corrected."""

_OUTPUT_BYTES = 512
"""A decision with key and headers in the open block of the proof, generously."""

_ACCOUNT_BYTES = len(dump_account(empty_account()))
"""What decisions came to, in all and recently, at one rate."""

_HEADER_BYTES = 4096
"""Parameters, counters and lengths in the snapshot's header, without feature names."""


class HasPartitionConfig(Protocol):
    """Settings, as far as sizes are concerned."""

    def partition_config(self) -> PartitionConfig:
        """What a partition does with an event."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of one partition: the model, a full label buffer, and a snapshot, which holds the newest of it."""

    state: int
    buffer: int
    snapshot: int


def sizes(settings: HasPartitionConfig) -> Sizes:
    """The sizes per partition under these settings."""
    return sizes_of(settings.partition_config())


def sizes_of(config: PartitionConfig) -> Sizes:
    """The sizes per partition, with the label buffer full."""
    state = _model_bytes(config.params)
    entry, waiting = _entry_bytes(config), config.labels.buffer_max
    entries = segment_entries(entry)
    # No more segments are named: half of each was written, and at most twice what waits is stored, and two of them.
    bits = entries // 8 * (3 if config.labels.corrections else 1)
    named = (4 * waiting // entries + 4) * (_NAMED_BYTES + bits)
    newest = min(waiting, entries) * (entry + _NUMBER_BYTES)
    names = sum(len(name.encode()) + 3 for name in config.events.columns or ())
    remembered = config.labels.remembered_max + config.labels.early_max
    rest = remembered * _REMEMBERED_BYTES + BLOCK * _OUTPUT_BYTES + _HEADER_BYTES + PACKED_MAX + names
    rest += len(config.params.rates) * _ACCOUNT_BYTES
    if config.challenger is not None:
        state += _model_bytes(config.challenger.params)
        rest += len(config.challenger.params.rates) * _ACCOUNT_BYTES + _HEADER_BYTES
    return Sizes(state, waiting * entry, state + newest + named + rest)


def size_problems(config: PartitionConfig) -> list[str]:
    """Why these settings would make a partition's state too large, and what to lower; empty when they do not."""
    found, params = sizes_of(config), config.params
    problems = []
    if found.buffer > BUFFER_MAX_BYTES:
        problems.append(
            f"labels.buffer_max: {config.labels.buffer_max} observations would take {_mb(found.buffer)}, at most "
            f"{_mb(BUFFER_MAX_BYTES)} is allowed; lower it to {BUFFER_MAX_BYTES // _entry_bytes(config)} or less"
        )
    if found.snapshot > SNAPSHOT_MAX_BYTES:
        problems.append(
            f"model.D: {params.D} units of {params.d} features: a snapshot would take {_mb(found.snapshot)}, at most "
            f"{_mb(SNAPSHOT_MAX_BYTES)} is allowed; lower D or d"
        )
    return problems


def _entry_bytes(config: PartitionConfig) -> int:
    widths = Widths.of(config)
    return _ENTRY_BYTES + 4 * (widths.d + widths.further) + _SCORE_BYTES * widths.score + widths.shadow


def _model_bytes(params: Params) -> int:
    directions = 8 * params.d * params.D
    if directions > SNAPSHOT_MAX_BYTES:
        return directions  # already too large; not worth allocating to count the rest
    return sum(array.nbytes for array in named_arrays(empty_state(params)).values())


def _mb(size: int) -> str:
    return f"{size / 2**20:.1f} MB"
