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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from npstream.embedded.file import open_file
from npstream.embedded.headers import encode_headers
from npstream.embedded.rows import DamagedRow, records_of
from npstream.errors import Fatal, NpstreamError, Retryable, StateCorrupt
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
_TOPIC = """
SELECT topic, partitions, (SELECT count(*) FROM spans WHERE spans.topic = topics.topic) FROM topics WHERE name = ?
"""
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
        with ExitStack() as stack:
            # First in, last out: closing it before SQLite's own descriptors would cancel SQLite's locks.
            self._file = open_file(path, create=create)
            stack.callback(self._file.close)
            self._require_one_name()
            with self.translated():
                self._db = sqlite3.connect(
                    path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
                )
                stack.callback(self._db.close)
                self._db.text_factory = _text
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._prepare()
            self._open = stack.pop_all()

    def _require_one_name(self) -> None:
        if self._file.names > 1:
            raise Fatal(
                f"{self.path} has {self._file.names} names (hard links): SQLite keeps its journal beside the name, "
                "so two names would damage the log. Remove all but one (`find FOLDER -samefile FILE` lists them), or "
                "copy the file"
            )

    def _require_same_file(self) -> None:
        """Raises `Fatal` when the path leads elsewhere: a process that opens it there does not see this journal."""
        if not self._file.is_at(self.path):
            raise Fatal(
                f"{self.path} was moved, replaced or deleted while it was open: stop whatever did it, put the file "
                "back or correct embedded.path, and start again"
            )

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
            self._open.close()

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
            self._require_same_file()
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

    def quick_check(self) -> list[str]:
        """What SQLite finds wrong with its pages and rows; empty when nothing is. Takes long on a large file."""
        return [str(line) for (line,) in self.rows("PRAGMA quick_check(10)") if line != "ok"]

    def version(self) -> int:
        """A number that changes when another connection has committed."""
        with self._lock, self.translated():
            self._require_same_file()
            (version,) = self._db.execute("PRAGMA data_version").fetchone()
            return int(version)

    def topic(self, name: str) -> tuple[int, int]:
        """(id, partition count) of a topic; raises `Fatal` when it does not exist."""
        with self._lock, self.translated():
            row = self._db.execute(_TOPIC, (name,)).fetchone()
        if row is None:
            raise Fatal(f"topic {name!r} does not exist in {self.path}: run `npstream init`, or correct topics")
        topic, partitions, spans = row
        if type(topic) is not int or type(partitions) is not int or not 0 < partitions <= spans:
            raise self.damaged(f"topic {name!r} should have {partitions!r} partitions, there are {spans}")
        return topic, partitions

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
        begin, following = row
        if not (type(begin) is type(following) is int and 0 <= begin <= following):
            raise self.damaged(f"partition {partition} of topic {topic} claims to hold {begin!r} to {following!r}")
        return Ends(begin, following, following)

    def fetch(
        self, topic: int, partition: int, begin: int, end: int, limit: int, *, dense: bool = True
    ) -> list[Record]:
        """At most `limit` records with `begin <= offset < end`, in order; `dense` when none of them may be missing.

        Raises `StateCorrupt` naming the first record that is not as it was written.
        """
        rows = self.rows(_SELECT, (topic, partition, begin, end, limit))
        try:
            return records_of(rows, begin, end, dense=dense)
        except DamagedRow as damage:
            names = self.rows("SELECT name FROM topics WHERE topic = ?", (topic,))
            name = names[0][0] if names else f"topic {topic}"
            raise self.damaged(f"{name}/{partition}: the record at offset {damage.offset} {damage}") from damage

    def damaged(self, what: str) -> StateCorrupt:
        """An error that says what is wrong with this file, and what to do."""
        return StateCorrupt(f"{self.path} is damaged: {what}. {_REMEDY}")


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
    """Add records to a partition inside an open transaction; returns the offset of the first."""
    row = db.execute("SELECT next FROM spans WHERE topic = ? AND partition = ?", (topic, partition)).fetchone()
    if row is None:
        raise Fatal(f"topic {topic} has no partition {partition}: run `npstream init` with more partitions")
    first: int = row[0]
    if type(first) is not int:
        raise StateCorrupt(f"the end of topic {topic}, partition {partition}, is damaged ({first!r}). {_REMEDY}")
    rows = [
        (topic, partition, offset, ts if ts > 0 else 1, key, encode_headers(headers), value)
        for offset, (key, value, headers, ts) in enumerate(records, first)
    ]
    db.executemany(_INSERT, rows)
    db.execute("UPDATE spans SET next = ? WHERE topic = ? AND partition = ?", (first + len(rows), topic, partition))
    return first


def _text(stored: bytes) -> str:
    """Text of a damaged file may be anything; the reader then finds a value that npstream did not write."""
    return stored.decode(errors="replace")


_NAMED: dict[str, Callable[[Path], NpstreamError]] = {
    "SQLITE_BUSY": lambda path: Retryable(
        f"another writer held {path} for more than {BUSY_TIMEOUT_MS / 1000:g} s: stop it, or wait"
    ),
    "SQLITE_FULL": lambda path: Retryable(f"no space left for {path}: free disk space"),
    "SQLITE_NOTADB": lambda path: Fatal(f"{path} is not an embedded log: correct embedded.path"),
    "SQLITE_CANTOPEN": lambda path: Fatal(f"{path} cannot be opened: check that its folder exists and is writable"),
    "SQLITE_READONLY": lambda path: Fatal(f"{path} is read-only: check its owner and permissions"),
}


_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG")
"""What a whole file of our format never gives: its tables, keys and types are those that our statements name."""
_REMEDY = (
    "`npstream doctor` lists what is; restore a backup, or move the file away with its -wal and -shm, run "
    "`npstream init` and start over"
)


def _named(error: sqlite3.Error, path: Path) -> NpstreamError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(_DAMAGE):
        return StateCorrupt(f"{path} is damaged: {error}. {_REMEDY}")
    for prefix, build in _NAMED.items():
        if name.startswith(prefix):
            return build(path)
    return Retryable(f"embedded log {path}: {name or type(error).__name__}: {error}")
