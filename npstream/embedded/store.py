"""The SQLite file: its schema, how it is opened, how its errors are named.

    topics(topic, name, partitions)                      what exists
    spans(topic, partition, begin, next)                 the offsets each partition holds
    records(topic, partition, offset, ts, key, headers, value)
    positions(group_name, topic, partition, next_offset, metadata)

A reader sees whole transactions only (WAL snapshots), a commit is on the disk
when it returns (synchronous=FULL).
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from npstream.embedded.headers import decode_headers, encode_headers
from npstream.errors import Fatal, NpstreamError, Retryable
from npstream.port import Ends
from npstream.records import Headers, Record, Topics

FORMAT = 1
"""Kept in the file's user_version; a file of another format is refused."""

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another writer: far more than a commit takes, well below a drain budget."""

Plain = tuple[bytes | None, bytes | None, Headers, int]
"""One record to append: key, value, headers, timestamp in ms."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (
    topic INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partitions INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS spans (
    topic INTEGER NOT NULL, partition INTEGER NOT NULL, begin INTEGER NOT NULL, next INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    topic INTEGER NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL,
    ts INTEGER NOT NULL, key BLOB, headers BLOB, value BLOB,
    PRIMARY KEY (topic, partition, offset)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (
    group_name TEXT NOT NULL, topic INTEGER NOT NULL, partition INTEGER NOT NULL,
    next_offset INTEGER NOT NULL, metadata TEXT NOT NULL,
    PRIMARY KEY (group_name, topic, partition)
) WITHOUT ROWID;
"""

_INSERT = "INSERT INTO records (topic, partition, offset, ts, key, headers, value) VALUES (?, ?, ?, ?, ?, ?, ?)"
_SELECT = (
    "SELECT offset, ts, key, value, headers FROM records"
    " WHERE topic = ? AND partition = ? AND offset >= ? AND offset < ? ORDER BY offset LIMIT ?"
)


def create_topics(path: Path, topics: Topics, partitions: int) -> None:
    """Make the file and those of the four topics that are missing, or grow the ones with fewer partitions."""
    with _readable_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with Store(path, create=True) as store, store.transaction() as db:
        for name in topics.names():
            db.execute(
                "INSERT INTO topics (name, partitions) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET partitions = max(partitions, excluded.partitions)",
                (name, partitions),
            )
            db.executemany(
                "INSERT OR IGNORE INTO spans SELECT topic, ?, 0, 0 FROM topics WHERE name = ?",
                [(partition, name) for partition in range(partitions)],
            )


class Store:
    """One connection to the file. Threads may share it: each transaction holds its lock."""

    def __init__(self, path: Path, create: bool = False) -> None:
        with _readable_errors(path):
            if path.is_dir():
                raise Fatal(f"{path} is a folder: embedded.path must name a file in it")
            if not create and not path.exists():
                raise Fatal(f"no embedded log at {path}: run `npstream init` to create it, or correct embedded.path")
        self.path = path
        self._lock = RLock()
        with self.translated():
            self._db = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
            )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._prepare()

    def _prepare(self) -> None:
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if found not in (0, FORMAT):
            raise Fatal(
                f"{self.path} has log format {found}, this npstream knows {FORMAT}: use the npstream it came from"
            )
        if found == 0:
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was not committed never happened. Never raises."""
        with self._lock, suppress(sqlite3.Error):  # nothing is lost: the file only ever holds whole transactions
            self._db.close()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Give errors of SQLite and of the file system their place in our tree."""
        try:
            with _readable_errors(self.path):
                yield
        except sqlite3.Error as error:
            raise _named(error, self.path) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One atomic write; rolled back when the body raises."""
        with self._lock, self.translated():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of one query."""
        with self._lock, self.translated():
            return self._db.execute(sql, tuple(parameters)).fetchall()

    def version(self) -> int:
        """A number that changes when another connection has committed."""
        with self._lock, self.translated():
            (version,) = self._db.execute("PRAGMA data_version").fetchone()
            return int(version)

    def topic(self, name: str) -> tuple[int, int]:
        """(id, partition count) of a topic; raises `Fatal` when it does not exist."""
        with self._lock, self.translated():
            row = self._db.execute("SELECT topic, partitions FROM topics WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise Fatal(f"topic {name!r} does not exist in {self.path}: run `npstream init`, or correct topics")
        return row[0], row[1]

    def ends(self, topic: int, partition: int) -> Ends:
        """The offsets a partition holds now. A reader never sees an open transaction, so stable is the end."""
        with self._lock, self.translated():
            row = self._db.execute(
                "SELECT begin, next FROM spans WHERE topic = ? AND partition = ?", (topic, partition)
            ).fetchone()
        if row is None:
            raise Fatal(
                f"partition {partition} does not exist in {self.path}: run `npstream init` with more partitions"
            )
        return Ends(row[0], row[1], row[1])

    def fetch(self, topic: int, partition: int, begin: int, end: int, limit: int) -> list[Record]:
        """At most `limit` records with `begin <= offset < end`, in order."""
        with self._lock, self.translated():
            rows = self._db.execute(_SELECT, (topic, partition, begin, end, limit)).fetchall()
        return [
            Record(offset, ts, key, value, () if headers is None else decode_headers(headers))
            for offset, ts, key, value, headers in rows
        ]


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """Name what the file system refuses, and the path it refuses it for."""
    try:
        yield
    except OSError as error:
        raise Fatal(
            f"{path} cannot be used ({error.strerror}): correct embedded.path, or check that its folder can be "
            "made and written to"
        ) from error


def append(db: sqlite3.Connection, topic: int, partition: int, records: Iterable[Plain]) -> int:
    """Add records to a partition inside an open transaction; answers the offset of the first."""
    row = db.execute("SELECT next FROM spans WHERE topic = ? AND partition = ?", (topic, partition)).fetchone()
    if row is None:
        raise Fatal(f"topic {topic} has no partition {partition}: run `npstream init` with more partitions")
    first: int = row[0]
    rows = [
        (topic, partition, offset, ts if ts > 0 else 1, key, encode_headers(headers), value)
        for offset, (key, value, headers, ts) in enumerate(records, first)
    ]
    db.executemany(_INSERT, rows)
    db.execute("UPDATE spans SET next = ? WHERE topic = ? AND partition = ?", (first + len(rows), topic, partition))
    return first


_NAMED: dict[str, Callable[[Path], NpstreamError]] = {
    "SQLITE_BUSY": lambda path: Retryable(
        f"another writer held {path} for more than {BUSY_TIMEOUT_MS / 1000:g} s: stop it, or wait"
    ),
    "SQLITE_FULL": lambda path: Retryable(f"no space left for {path}: free disk space"),
    "SQLITE_NOTADB": lambda path: Fatal(f"{path} is not an embedded log: correct embedded.path"),
    "SQLITE_CORRUPT": lambda path: Fatal(f"{path} is damaged: restore a backup, or move it away and start anew"),
    "SQLITE_CANTOPEN": lambda path: Fatal(f"{path} cannot be opened: check that its folder exists and is writable"),
    "SQLITE_READONLY": lambda path: Fatal(f"{path} is read-only: check its owner and permissions"),
}


def _named(error: sqlite3.Error, path: Path) -> NpstreamError:
    name = getattr(error, "sqlite_errorname", "")
    for prefix, build in _NAMED.items():
        if name.startswith(prefix):
            return build(path)
    return Retryable(f"embedded log {path}: {name or type(error).__name__}: {error}")
