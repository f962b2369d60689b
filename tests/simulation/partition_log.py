"""One partition of a topic in memory: records of open, committed and aborted transactions, markers, compaction."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from npstream.port import Ends
from npstream.records import Headers, Record


class _Entry(NamedTuple):
    """A record, or a transaction's marker, which has none. `writer` is the transaction, None outside any."""

    offset: int
    writer: int | None
    record: Record | None


class PartitionLog:
    """Offsets only grow; markers take one each, and what is compacted or deleted leaves a gap."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._begin = 0
        self._high = 0
        self._open: dict[int, int] = {}
        """The first offset of each transaction that has no marker here yet."""
        self._aborted: set[int] = set()

    @property
    def ends(self) -> Ends:
        """The offsets it holds. Below the stable end no transaction is open."""
        return Ends(self._begin, min(self._open.values(), default=self._high), self._high)

    def append(
        self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int, writer: int | None = None
    ) -> int:
        """Write one record, at once visible unless a transaction writes it; return its offset."""
        offset = self._high
        if writer is not None:
            self._open.setdefault(writer, offset)
        self._put(_Entry(offset, writer, Record(offset, max(timestamp_ms, 1), key, value, list(headers))))
        return offset

    def decide(self, writer: int, *, committed: bool) -> None:
        """Write the marker that ends a transaction here, if it has written anything."""
        if self._open.pop(writer, None) is not None:
            if not committed:
                self._aborted.add(writer)
            self._put(_Entry(self._high, writer, None))

    def _put(self, entry: _Entry) -> None:
        self._entries.append(entry)
        self._high = entry.offset + 1

    def first(self, limit: int, begin: int, end: int) -> list[Record]:
        """At most `limit` of what `read` gives."""
        return list(islice(self.read(begin, end), limit))

    def read(self, begin: int, end: int) -> Iterator[Record]:
        """Committed records with `begin <= offset < end`, in order, as far as they are stable now."""
        first, last = self._place(begin), self._place(min(end, self.ends.stable))
        for _, writer, record in self._entries[first:last]:
            if record is not None and writer not in self._aborted:
                yield record

    def compact(self) -> None:
        """Of each key keep the newest committed record, none where that has no value; drop markers and the aborted."""
        stable = self.ends.stable
        newest = {record.key: record.offset for record in self.read(0, stable) if record.value is not None}
        removed = {record.key: record.offset for record in self.read(0, stable) if record.value is None}
        kept = {offset for key, offset in newest.items() if offset > removed.get(key, -1)}
        self._entries = [entry for entry in self._entries if entry.offset >= stable or entry.offset in kept]

    def delete(self, before: int) -> None:
        """Drop everything below an offset, as retention would."""
        self._begin = min(self._high, max(self._begin, before))
        del self._entries[: self._place(self._begin)]

    def _place(self, offset: int) -> int:
        return bisect_left(self._entries, offset, key=lambda entry: entry.offset)
