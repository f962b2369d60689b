"""Exactly-once access to an embedded log for its one worker: a commit is one SQLite transaction."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from npstream import failpoints
from npstream.codec.position import encode_position
from npstream.embedded.compaction import compact
from npstream.embedded.lock import WorkerLock
from npstream.embedded.state import EmbeddedStateReader, Row, read_row
from npstream.embedded.store import Plain, Store, append
from npstream.errors import Fatal, Retryable, StateCorrupt
from npstream.port import LABELS_MAX, FinishCommit, Listener, due_labels
from npstream.records import Batch, Channel, LabelsWanted, Phase, Pointer, Record, Share, Topics

_PAUSE_MIN_S, _PAUSE_MAX_S = 0.002, 0.02
"""How long an idle poll sleeps between looks at the file: short at first, then 50 looks a second."""

COMPACT_EVERY = 64
"""Snapshots written between two compactions."""


class EmbeddedBroker:
    """The `Broker` of an embedded file; owns every partition. Not for sharing between threads."""

    def __init__(self, path: Path, topics: Topics, group: str) -> None:
        """Raises `Fatal` when another worker runs on the file or a topic is missing."""
        self._path = path
        self._group = group
        with ExitStack() as opened:
            self._store = Store(path)
            opened.callback(self._store.close)
            self._ids, counts = zip(*(self._store.topic(name) for name in topics.names()), strict=True)
            self._partitions: int = counts[Channel.EVENTS]
            if problem := topics.misplaced_labels(counts):
                raise Fatal(problem)
            for name, problem in topics.too_narrow(counts):
                raise Fatal(f"topic {name!r} {problem}: run `npstream init`, which adds the missing ones")
            self.state = EmbeddedStateReader(path, topics, group)
            opened.callback(self.state.close)
            with self._store.translated():
                self._lock = WorkerLock(path)
            opened.callback(self._lock.release)
            self._let_go = opened.pop_all().close
        self._listener: Listener | None = None
        self._next_offsets: dict[int, int] | None = None
        """Where each owned partition is read next; None before the assignment."""
        self._seen: dict[int, Row | None] = {}
        self._turn = 0
        self._snapshots = 0
        self._abandoned = False
        self._compact()

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
        if self._next_offsets is not None:
            return
        assert self._listener is not None, "subscribe before poll"
        self._next_offsets = dict.fromkeys(range(self._partitions), -1)
        self._seen = {partition: self._row(partition) for partition in self._next_offsets}
        starts = self._listener.on_assigned(list(self._next_offsets))
        self._next_offsets |= {partition: start for partition, start in starts.items() if start is not None}

    def _fetch(self, max_records: int) -> list[Batch]:
        """Records from the partitions in turn, so that a long backlog of one does not starve the others."""
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
        assert self._next_offsets is not None
        assert self._listener is not None
        if self._listener.phase_of(partition) is Phase.PAUSED:
            return []
        try:
            records = self._next_records(partition, self._next_offsets[partition], limit)
        except StateCorrupt as error:
            self._listener.on_failed(partition, error)
            return []
        if records:
            self._next_offsets[partition] = records[-1].offset + 1
        return records

    def _next_records(self, partition: int, begin: int, limit: int) -> list[Record]:
        events = self._ids[Channel.EVENTS]
        ends = self._store.ends(events, partition)
        if not ends.begin <= begin <= ends.high:
            raise StateCorrupt(
                f"events partition {partition}: offset {begin} is outside the records kept ({ends.begin}..{ends.high}) "
                f"in {self._path}: they were trimmed before they were read; `npstream reset` starts the partition over"
            )
        return self._store.fetch(events, partition, begin, ends.stable, limit)

    def read_labels(self, wanted: Sequence[LabelsWanted]) -> dict[int, Sequence[Record]]:
        """Labels that come before a batch of each partition."""
        self._require_open()
        assert self._listener is not None
        found: dict[int, Sequence[Record]] = {}
        for each in wanted:
            try:
                found[each.partition] = self._due_labels(each)
            except StateCorrupt as error:
                self._listener.on_failed(each.partition, error)
        return found

    def _due_labels(self, wanted: LabelsWanted) -> Sequence[Record]:
        assert self._next_offsets is not None
        partition, begin, topic = wanted.partition, wanted.next_label, self._ids[Channel.LABELS]
        ends = self._store.ends(topic, partition)
        if begin and not ends.begin <= begin <= ends.high:
            raise StateCorrupt(
                f"labels partition {partition}: offset {begin} is outside the records kept ({ends.begin}..{ends.high}) "
                f"in {self._path}: they were trimmed before they were learned; `npstream reset --partition {partition} "
                f"--to {self._next_offsets[partition]} --keep-model --execute` goes on with those that are left"
            )
        left = self._store.ends(self._ids[Channel.EVENTS], partition).high - self._next_offsets[partition]
        records = self._store.fetch(topic, partition, max(begin, ends.begin), ends.stable, LABELS_MAX)
        return due_labels(records, wanted.moment_ms, left)

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

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        """Commit at once: there is nothing to wait for."""
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
        if share.segments:
            failpoints.hit("segment")
            append(db, topic, share.partition, [(key, value, (), now_ms) for key, value in share.segments])
        if share.chunks:
            failpoints.hit("mid_snapshot")
            first = append(db, topic, share.partition, [(key, value, (), now_ms) for key, value in share.chunks])
            pointer = replace(pointer, offset=first)
        append(db, topic, share.partition, [(key, value, (), now_ms) for key, value in share.changes])
        return pointer

    def _require_unmoved(self, partition: int) -> None:
        """What no lock can promise: if another program has committed since, it is the owner now, this one a zombie."""
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

    def close(self, timeout_s: float) -> None:
        """Let the listener write its last checkpoint, then close the file."""
        if self._listener is not None and self._next_offsets and not self._abandoned:
            self._listener.on_revoked(sorted(self._next_offsets))
        self.abandon()

    def abandon(self) -> None:
        """Drop everything at once. Never raises."""
        self._abandoned = True
        self._let_go()

    def _require_open(self) -> None:
        if self._abandoned:
            raise Retryable("this embedded broker was closed: open a new one")


def _row_of(share: Share, pointer: Pointer) -> Row:
    position = replace(share.position, pointer=pointer)
    return position.next_offset, encode_position(position)
