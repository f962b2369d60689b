"""Plain reading and writing of an embedded log, beside its worker and in any process."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from npstream.embedded.store import Plain, Store, append
from npstream.errors import StateCorrupt
from npstream.port import Ends, Place, Start
from npstream.records import Channel, Record, Topics

_PAGE = 2000
"""Records per query of a long read: keeps memory flat without a cursor that would pin the file's history."""


class EmbeddedLog:
    """The `Log` of an embedded file. Threads may share one."""

    def __init__(self, path: Path, topics: Topics) -> None:
        self._store = Store(path)
        self._names = topics.names()

    def partitions(self, channel: Channel) -> int:
        """Partition count of a topic; raises `Fatal` naming it when it does not exist."""
        return self._store.topic(self._names[channel])[1]

    def topic_id(self, channel: Channel = Channel.EVENTS) -> str:
        """None: topics of a file live as long as the file."""
        return ""

    def ends(self, channel: Channel, partition: int) -> Ends:
        """The partition's range now."""
        return self._store.ends(self._topic(channel), partition)

    def all_ends(self, places: Sequence[Place]) -> dict[Place, Ends]:
        """The ranges of many partitions."""
        return {place: self.ends(*place) for place in places}

    def offset_at(self, partition: int, start: Start, channel: Channel = Channel.EVENTS) -> int:
        """A topic's first offset at or after `start`."""
        ends = self.ends(channel, partition)
        if start == "earliest":
            return ends.begin
        if start == "latest":
            return ends.stable
        rows = self._store.rows(
            "SELECT offset FROM records WHERE topic = ? AND partition = ? AND ts >= ? ORDER BY offset LIMIT 1",
            (self._topic(channel), partition, start),
        )
        return int(rows[0][0]) if rows else ends.stable

    def read(self, channel: Channel, partition: int, begin: int, end: int) -> Iterator[Record]:
        """Committed records with `begin <= offset < end`, bounded by the end at call time."""
        bound = min(end, self.ends(channel, partition).stable)
        # A hole among the events would go unnoticed; one among the outputs is audit's to find, with what is missing.
        return self._pages(
            self._topic(channel), partition, begin, bound, dense=channel in (Channel.EVENTS, Channel.LABELS)
        )

    def read_all(self, ranges: Mapping[Place, tuple[int, int]]) -> Iterator[tuple[Place, Record | StateCorrupt]]:
        """What `read` gives of each place, one place after another."""
        for place, (begin, end) in ranges.items():
            try:
                for record in self.read(*place, begin, end):
                    yield place, record
            except StateCorrupt as error:
                yield place, error

    def _pages(self, topic: int, partition: int, begin: int, end: int, *, dense: bool) -> Iterator[Record]:
        while (begin := max(begin, self._store.ends(topic, partition).begin)) < end:
            page = self._store.fetch(topic, partition, begin, end, _PAGE, dense=dense)
            if not page:
                return
            yield from page
            begin = page[-1].offset + 1

    def append(self, channel: Channel, partition: int, records: Sequence[Plain]) -> None:
        """Write records durably: on the disk, and visible to every reader, when this returns."""
        topic = self._topic(channel)
        with self._store.transaction() as db:
            append(db, topic, partition, records)

    def quick_check(self) -> list[str]:
        """What SQLite finds wrong with the file's pages; empty when nothing is."""
        return self._store.quick_check()

    def close(self) -> None:
        """Let go of the file. Never raises."""
        self._store.close()

    def _topic(self, channel: Channel) -> int:
        return self._store.topic(self._names[channel])[0]
