"""The ports of a topic whose values need schemas: what is read from the events topic comes with its documents.

An event whose schema cannot be had stops its partition in front of it, and the
others go on. It does not become a dead letter: a later replay could read it.
"""

from collections.abc import Iterator, Mapping, Sequence

from npstream.errors import StateCorrupt, UnknownSchema
from npstream.port import Broker, Ends, FinishCommit, Listener, Log, Place, Start, StateReader
from npstream.records import Batch, Channel, Headers, LabelsWanted, Phase, Pointer, Record, Share
from npstream.registry.documents import DocumentReader


class DocumentBroker:
    """A worker's broker that hands out events with their documents."""

    def __init__(self, broker: Broker, reader: DocumentReader, topic: str) -> None:
        self._broker = broker
        self._reader = reader
        self._topic = topic
        self._listener: Listener | None = None
        self._unreadable: dict[int, StateCorrupt] = {}

    @property
    def state(self) -> StateReader:
        return self._broker.state

    def subscribe(self, listener: Listener) -> None:
        self._listener = listener
        self._broker.subscribe(listener)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        self._report_unreadable()
        batches = [Batch(p, self._read(p, records)) for p, records in self._broker.poll(max_records, timeout_s)]
        return [batch for batch in batches if batch.records]

    def _read(self, partition: int, records: Sequence[Record]) -> list[Record]:
        """The records with their documents, up to the first whose schema cannot be had."""
        read: list[Record] = []
        try:
            for record in records:
                read.append(_with_document(record, self._reader))
        except UnknownSchema as error:
            self._unreadable[partition] = problem(error, self._topic, partition, records[len(read)].offset)
        return read

    def _report_unreadable(self) -> None:
        """Report what the last poll could not read, now that the records before it are processed."""
        unreadable, self._unreadable = self._unreadable, {}
        for partition, error in unreadable.items():
            if self._listener is not None and self._listener.phase_of(partition) is not Phase.PAUSED:
                self._listener.on_failed(partition, error)

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        return self._broker.commit(shares)

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        return self._broker.start_commit(shares)

    def read_labels(self, wanted: Sequence[LabelsWanted]) -> dict[int, Sequence[Record]]:
        return self._broker.read_labels(wanted)

    def close(self, timeout_s: float) -> None:
        self._broker.close(timeout_s)

    def abandon(self) -> None:
        self._broker.abandon()


class DocumentLog:
    """A log whose events are read with their documents. Reading raises `StateCorrupt` where a schema cannot be had."""

    def __init__(self, log: Log, reader: DocumentReader, topic: str) -> None:
        self._log = log
        self._reader = reader
        self._topic = topic

    def partitions(self, channel: Channel) -> int:
        return self._log.partitions(channel)

    def topic_id(self, channel: Channel = Channel.EVENTS) -> str:
        return self._log.topic_id(channel)

    def ends(self, channel: Channel, partition: int) -> Ends:
        return self._log.ends(channel, partition)

    def all_ends(self, places: Sequence[Place]) -> dict[Place, Ends]:
        return self._log.all_ends(places)

    def offset_at(self, partition: int, start: Start, channel: Channel = Channel.EVENTS) -> int:
        return self._log.offset_at(partition, start, channel)

    def read(self, channel: Channel, partition: int, begin: int, end: int) -> Iterator[Record]:
        records = self._log.read(channel, partition, begin, end)
        return records if channel is not Channel.EVENTS else self._documents(partition, records)

    def read_all(self, ranges: Mapping[Place, tuple[int, int]]) -> Iterator[tuple[Place, Record | StateCorrupt]]:
        given_up = set[Place]()
        for place, found in self._log.read_all(ranges):
            channel, partition = place
            if place in given_up:
                continue
            if channel is not Channel.EVENTS or isinstance(found, StateCorrupt):
                yield place, found
                continue
            try:
                yield place, _with_document(found, self._reader)
            except UnknownSchema as error:
                given_up.add(place)
                yield place, problem(error, self._topic, partition, found.offset)

    def _documents(self, partition: int, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            try:
                yield _with_document(record, self._reader)
            except UnknownSchema as error:
                raise problem(error, self._topic, partition, record.offset) from None

    def append(
        self, channel: Channel, partition: int, records: Sequence[tuple[bytes | None, bytes | None, Headers, int]]
    ) -> None:
        self._log.append(channel, partition, records)

    def close(self) -> None:
        self._log.close()


def problem(error: UnknownSchema, topic: str, partition: int, offset: int) -> StateCorrupt:
    """What to report of an event whose schema cannot be had, and how to go on."""
    return StateCorrupt(
        f"{topic}/{partition}: the event at offset {offset} is written with {error}. Restore that schema under its "
        "id, or correct events.registry.url, and restart the worker: nothing is lost. To give the event up, continue "
        f"after it with `npstream reset --partition {partition} --to {offset + 1} --keep-model --execute`"
    )


def _with_document(record: Record, reader: DocumentReader) -> Record:
    offset, timestamp_ms, key, value, headers = record
    return Record(offset, timestamp_ms, key, reader.read(value), headers)
