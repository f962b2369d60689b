"""Exactly-once access to an embedded log for its one worker: a commit is one SQLite transaction."""

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from npstream import failpoints
from npstream.codec.position import encode_position
from npstream.embedded.compaction import compact
from npstream.embedded.lock import WorkerLock
from npstream.embedded.positions import Row, position_of, read_chunks, read_row
from npstream.embedded.store import Plain, Store, append
from npstream.errors import Fatal, Retryable, StateCorrupt
from npstream.port import Landing, Listener
from npstream.records import Batch, Channel, KeyValue, Pointer, Position, Record, Share, Topics

_PAUSE_MIN_S, _PAUSE_MAX_S = 0.002, 0.02
"""How long an idle poll sleeps between looks at the file: short at first, then 50 looks a second."""

COMPACT_EVERY = 64
"""Snapshots written between two compactions."""


@dataclass(slots=True)
class _Cursor:
    """Reading place of one owned partition."""

    next_offset: int
    paused: bool


class EmbeddedBroker:
    """The `Broker` of an embedded file; owns every partition. Not for sharing between threads."""

    def __init__(self, path: Path, topics: Topics, group: str) -> None:
        """Raises `Fatal` when another worker runs on the file or a topic is missing."""
        self._path = path
        self._group = group
        self._name = topics.events
        self._store = Store(path)
        try:
            self._ids, counts = zip(*(self._store.topic(name) for name in topics.names()), strict=True)
            self._partitions: int = counts[Channel.EVENTS]
            self._require_partitions(topics, counts)
            with self._store.translated():
                self._lock = WorkerLock(path)
        except BaseException:
            self._store.close()
            raise
        self._listener: Listener | None = None
        self._cursors: dict[int, _Cursor] | None = None
        self._seen: dict[int, Row | None] = {}
        self._turn = 0
        self._snapshots = 0
        self._abandoned = False
        self.records_read = 0
        """Records that `read_checkpoint` has taken from the log so far."""
        self._compact()

    def _require_partitions(self, topics: Topics, counts: Sequence[int]) -> None:
        for name, count in zip(topics.names(), counts, strict=True):
            if count < self._partitions:
                raise Fatal(
                    f"topic {name!r} has {count} partitions, {topics.events!r} has {self._partitions}: "
                    "run `npstream init`"
                )

    def subscribe(self, listener: Listener) -> None:
        """Remember the listener; the first `poll` assigns all partitions to it."""
        self._listener = listener

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Wait for records, at most `timeout_s`. The first call assigns every partition."""
        self._require_open()
        deadline = time.monotonic() + timeout_s
        self._maybe_assign()
        pause_s = _PAUSE_MIN_S
        while not (batches := self._fetch(max_records)):
            seen = self._store.version()
            while self._store.version() == seen:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return []
                time.sleep(min(pause_s, left_s))
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)
        return batches

    def _maybe_assign(self) -> None:
        if self._cursors is not None:
            return
        assert self._listener is not None, "subscribe before poll"
        self._cursors = {}
        partitions = list(range(self._partitions))
        self._seen = {partition: self._row(partition) for partition in partitions}
        starts = self._listener.on_assigned(partitions)
        for partition in partitions:
            start = starts[partition]
            self._cursors[partition] = _Cursor(-1, True) if start is None else _Cursor(start, False)

    def _fetch(self, max_records: int) -> list[Batch]:
        """Records from the partitions in turn, so that a long backlog of one does not starve the others."""
        assert self._cursors is not None
        batches: list[Batch] = []
        left = max_records
        for step in range(self._partitions):
            partition = (self._turn + step) % self._partitions
            if left and (records := self._fetch_one(partition, left)):
                batches.append(Batch(partition, records))
                left -= len(records)
        self._turn = (self._turn + 1) % self._partitions
        return batches

    def _fetch_one(self, partition: int, limit: int) -> list[Record]:
        assert self._cursors is not None
        assert self._listener is not None
        cursor = self._cursors[partition]
        if cursor.paused:
            return []
        try:
            records = self._next_records(partition, cursor.next_offset, limit)
        except StateCorrupt as error:
            cursor.paused = True
            self._listener.on_failed(partition, error)
            return []
        if records:
            cursor.next_offset = records[-1].offset + 1
        return records

    def _next_records(self, partition: int, begin: int, limit: int) -> list[Record]:
        events = self._ids[Channel.EVENTS]
        ends = self._store.ends(events, partition)
        if not ends.begin <= begin <= ends.high:
            raise StateCorrupt(
                f"events partition {partition}: offset {begin} is outside the records kept ({ends.begin}..{ends.high}) "
                f"in {self._path}: they were trimmed before they were read; reset the partition to start anew"
            )
        return self._store.fetch(events, partition, begin, ends.stable, limit)

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        """Publish all shares or nothing, on the disk when it returns.

        Raises `Fatal` when a position is not where this worker last saw it.
        """
        self._require_open()
        failpoints.hit("begin")
        with self._store.transaction() as db:
            for share in shares:
                self._require_unmoved(share.partition)
            pointers = {share.partition: self._write(db, share) for share in shares}
            rows = {share.partition: _row_of(share, pointers[share.partition]) for share in shares}
            failpoints.hit("before_send_offsets")
            topic = self._ids[Channel.EVENTS]
            db.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?)",
                [(self._group, topic, partition, *row) for partition, row in rows.items()],
            )
            failpoints.hit("after_send_offsets")
            failpoints.hit("before_commit")
        self._seen |= rows
        failpoints.hit("after_commit")
        self._maybe_compact(shares)
        return pointers

    def start_commit(self, shares: Sequence[Share]) -> Landing:
        """Commit at once: there is nobody to wait for."""
        pointers = self.commit(shares)
        return lambda: pointers

    def _write(self, db: sqlite3.Connection, share: Share) -> Pointer:
        plain: dict[Channel, list[Plain]] = {}
        for output in share.outputs:
            failpoints.hit("produce")
            plain.setdefault(output.channel, []).append((output.key, output.value, output.headers, output.timestamp_ms))
        for channel, records in plain.items():
            append(db, self._ids[channel], share.partition, records)
        return self._write_checkpoint(db, share)

    def _write_checkpoint(self, db: sqlite3.Connection, share: Share) -> Pointer:
        topic, now_ms = self._ids[Channel.CHECKPOINTS], int(time.time() * 1000)
        pointer = share.position.pointer
        if share.chunks:
            failpoints.hit("mid_snapshot")
            first = append(db, topic, share.partition, [(key, value, (), now_ms) for key, value in share.chunks])
            pointer = replace(pointer, offset=first)
        append(db, topic, share.partition, [(key, value, (), now_ms) for key, value in share.changes])
        return pointer

    def _require_unmoved(self, partition: int) -> None:
        """What no lock can promise: whoever has committed since is the owner now, and this worker a zombie."""
        seen, found = self._seen.get(partition), self._row(partition)
        if found != seen:
            was, now = ("nowhere" if row is None else f"at offset {row[0]}" for row in (seen, found))
            raise Fatal(
                f"events partition {partition}: group {self._group!r} was {was} when this worker last looked and is "
                f"{now} now: another program has committed to {self._path}. Nothing was published; stop every worker "
                "of this file and start one"
            )

    def _row(self, partition: int) -> Row | None:
        return read_row(self._store, self._group, self._ids[Channel.EVENTS], partition)

    def _maybe_compact(self, shares: Sequence[Share]) -> None:
        self._snapshots += sum(bool(share.chunks) for share in shares)
        if self._snapshots >= COMPACT_EVERY:
            self._compact()

    def _compact(self) -> None:
        compact(self._store, self._ids[Channel.CHECKPOINTS], self._partitions)
        self._snapshots = 0

    def committed(self, partition: int) -> Position | None:
        """The committed position; raises `StateCorrupt` when its metadata cannot be read."""
        self._require_open()
        self._seen[partition] = self._row(partition)
        return position_of(self._seen[partition], f"{self._name}/{partition}")

    def read_checkpoint(self, partition: int, pointer: Pointer) -> list[KeyValue]:
        """The chunks of one snapshot; raises `StateCorrupt` when they are gone."""
        self._require_open()
        found = read_chunks(self._store, self._ids[Channel.CHECKPOINTS], partition, pointer)
        self.records_read += len(found)
        return found

    def pause(self, partition: int) -> None:
        """Stop handing out records of a partition until the next start."""
        assert self._cursors is not None
        self._cursors[partition].paused = True

    def close(self, timeout_s: float) -> None:
        """Let the listener write its last checkpoint, then let go of the file."""
        if self._listener is not None and self._cursors and not self._abandoned:
            self._listener.on_revoked(sorted(self._cursors))
        self.abandon()

    def abandon(self) -> None:
        """Drop everything at once. Never raises."""
        self._abandoned = True
        self._store.close()
        self._lock.release()

    def _require_open(self) -> None:
        if self._abandoned:
            raise Retryable("this embedded broker was closed: open a new one")


def _row_of(share: Share, pointer: Pointer) -> Row:
    position = replace(share.position, pointer=pointer)
    return position.next_offset, encode_position(position)
