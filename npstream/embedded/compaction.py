"""Compaction of the checkpoint topic: of each key only the newest record stays, none where that has no value."""

import sqlite3

from npstream.embedded.store import Store

_STALE = """
DELETE FROM records WHERE topic = :topic AND partition = :partition AND (value IS NULL OR offset NOT IN (
    SELECT max(offset) FROM records
    WHERE topic = :topic AND partition = :partition AND key IS NOT NULL GROUP BY key
))
"""


def compact(store: Store, topic: int, partitions: int) -> int:
    """Drop every record that a newer one of the same key replaces; returns how many."""
    with store.transaction() as db:
        return sum(_compact_partition(db, topic, partition) for partition in range(partitions))


def _compact_partition(db: sqlite3.Connection, topic: int, partition: int) -> int:
    return db.execute(_STALE, {"topic": topic, "partition": partition}).rowcount
