"""Very many observations that wait for their labels: memory, what checkpoints write, and how long a restore takes."""

import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import orjson

from npstream.bench.events import FIRST_MS
from npstream.bench.kernel import Clock, clouds
from npstream.bench.memory import resident_bytes
from npstream.codec.decoder import EventConfig
from npstream.codec.segments import segment_keys, with_segments
from npstream.model import Params
from npstream.partition import LabelConfig, PartitionConfig, PartitionProcessor
from npstream.partition.checkpoint import checkpoint_share
from npstream.records import KeyValue, Record, Share
from npstream.state import processor_of, snapshot_of
from npstream.worker import Cadence

_BATCH = 5_000
_PATTERN = 20_000
"""Different events; they come again and again under other ids."""


class _Life:
    """A partition, and the newest record of each key of its checkpoint topic: in a file, as on a broker."""

    def __init__(self, machine: PartitionProcessor, keep: int, log: BinaryIO) -> None:
        self.machine, self._keep, self._log = machine, keep, log
        self._places: dict[bytes, tuple[int, int, int]] = {}
        self._end = self._first = self._checkpoints = 0
        self.written = 0

    def checkpoint(self) -> None:
        share = checkpoint_share(self.machine, (), self._checkpoints % self._keep, self._first, self._keep)
        self._first = self._end + len(share.segments)
        self._checkpoints += 1
        self._append(share)

    def _append(self, share: Share) -> None:
        for key, value in (*share.segments, *share.chunks):
            self.written += len(key) + len(value or b"")
            self._places.pop(key, None)
            if value is not None:
                self._places[key] = self._end, self._log.tell(), self._log.write(value)
            self._end += 1

    def _record(self, key: bytes) -> KeyValue:
        offset, place, size = self._places[key]
        self._log.seek(place)
        record = KeyValue(offset, key, self._log.read(size))
        self._log.seek(0, os.SEEK_END)
        return record

    def restored(self) -> PartitionProcessor:
        """From the newest checkpoint, as a worker does when it has read the records."""
        chunks = sorted(map(self._record, [key for key, place in self._places.items() if place[0] >= self._first]))
        snapshot, _ = snapshot_of(chunks)
        wanted = segment_keys(snapshot)
        return processor_of(with_segments(snapshot, (self._record(key) for key in wanted if key in self._places)))


def bench_waiting(observations: int = 1_000_000, d: int = 29, clock: Clock = time.perf_counter) -> dict[str, Any]:
    """Fill the buffer, then let as many again push the first ones out; a checkpoint as often as by default.

    Bytes are those of observations as they are parked and of checkpoints as they are written; `filling` and `full`
    are bytes of checkpoints per event in each half. Memory is that of the process, measured where it has a /proc.
    """
    config = PartitionConfig(
        params=Params(d=d), events=EventConfig(d=d), labels=LabelConfig(buffer_max=observations, expire_events=None)
    )
    machine = PartitionProcessor.cold(config, "npstream-bench", "events", 0, 0, None)
    with tempfile.TemporaryFile() as log:
        return _measured(_Life(machine, Cadence().keep, cast(BinaryIO, log)), observations, d, clock)


def _measured(life: _Life, observations: int, d: int, clock: Clock) -> dict[str, Any]:
    events = _events(2 * observations, d)
    life.machine.process(next(events))
    empty = resident_bytes()
    written = [_run(life, events, _BATCH, observations)]
    memory = resident_bytes() - empty
    written.append(_run(life, events, observations, 2 * observations))
    began = clock()
    life.checkpoint()
    checkpoint_s = clock() - began
    began = clock()
    restored = life.restored()
    restore_s = clock() - began
    assert restored.proof() == life.machine.proof()
    return {
        "waiting": restored.pending.waiting,
        "d": d,
        "memory_bytes": round(memory / observations),
        "filling": round(written[0] / observations),
        "full": round(written[1] / observations),
        "checkpoint_ms": round(1e3 * checkpoint_s, 1),
        "restore_s": round(restore_s, 2),
    }


def _run(life: _Life, events: Iterator[list[Record]], begin: int, end: int) -> int:
    """Process up to there; the bytes of the checkpoints on the way."""
    before, cadence = life.written, Cadence().every_events
    while life.machine.next_offset < end:
        life.machine.process(next(events))
        if life.machine.next_offset % cadence < _BATCH:
            life.checkpoint()
    return life.written - before


def _events(count: int, d: int) -> Iterator[list[Record]]:
    x, _ = clouds(_PATTERN, d)
    rows = [orjson.dumps(row) for row in x.round(4).tolist()]
    for start in range(0, count, _BATCH):
        offsets = range(start, start + _BATCH)
        yield [Record(i, FIRST_MS + i, None, b'{"id":"p-%d","x":%b}' % (i, rows[i % _PATTERN]), ()) for i in offsets]
