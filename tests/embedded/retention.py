"""Retention for the embedded log, which has none of its own: what a broker does to old records after a while."""

from npstream.embedded import EmbeddedLog
from npstream.port import Log
from npstream.records import Channel


def trim(log: Log, channel: Channel, partition: int, before: int) -> None:
    """Delete the records below an offset."""
    assert isinstance(log, EmbeddedLog)
    place = (log._topic(channel), partition)
    with log._store.transaction() as db:
        db.execute("DELETE FROM records WHERE topic = ? AND partition = ? AND offset < ?", (*place, before))
        db.execute(
            "UPDATE spans SET begin = min(next, max(begin, ?)) WHERE topic = ? AND partition = ?", (before, *place)
        )


def delete(log: Log, channel: Channel, partition: int, begin: int, end: int) -> None:
    """Delete records in the middle, which retention never does."""
    assert isinstance(log, EmbeddedLog)
    with log._store.transaction() as db:
        db.execute(
            "DELETE FROM records WHERE topic = ? AND partition = ? AND offset >= ? AND offset < ?",
            (log._topic(channel), partition, begin, end),
        )
