"""A file as a stream: rows of a data set, lines of events, or an export of a topic. Read once, replayed often."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from npstream.codec.decoder import EventConfig
from npstream.codec.murmur2 import partition_for
from npstream.data import files
from npstream.data.columns import NO_LABEL, Wanted
from npstream.data.lines import event_key, read_lines, refuse_label
from npstream.errors import UnknownSchema, UsageError
from npstream.records import Record
from npstream.replay.source import ArraySource, RecordSource, Source


@dataclass(frozen=True, slots=True)
class RowsFile:
    """Rows of features with a label each. Read when the features to take are known, once for each choice of them."""

    path: Path
    label: str | None = None
    _read: dict[Wanted, files.Rows] = field(default_factory=dict, repr=False)

    @property
    def width(self) -> int:
        """Numbers in an event."""
        return int(self._rows(Wanted(None, self.label)).x.shape[1])

    def rows(self, events: EventConfig) -> files.Rows:
        """The rows with the features that the settings name, or with every column of numbers. Raises `UsageError`."""
        return self._rows(Wanted.by(events, self.label))

    def _rows(self, wanted: Wanted) -> files.Rows:
        if wanted not in self._read:
            self._read[wanted] = files.read_rows(self.path, wanted)
        return self._read[wanted]

    def columns(self, events: EventConfig) -> str | None:
        """Which columns are taken for what, None where a file has none. Raises `UsageError` as `source` does."""
        return self._fitting(events).columns

    def source(self, events: EventConfig, topic: str, partitions: int = 1, delay: int = 0) -> Source:
        """The rows dealt to partitions of `topic` in turn, their labels `delay` rows later.

        Raises `UsageError` when the settings ask for another width.
        """
        rows = self._fitting(events)
        assert rows.y is not None
        return ArraySource(rows.x, rows.y, partitions, delay, topic=topic, ids=rows.ids)

    def _fitting(self, events: EventConfig) -> files.Rows:
        rows = self.rows(events)
        files.check_width(self.path, rows, events)
        if rows.y is None:
            raise UsageError(
                f"{self.path}: has no labels to learn from and to measure by; leave out --label {NO_LABEL}"
            )
        return rows


@dataclass(frozen=True, slots=True)
class LinesFile:
    """JSON lines: events as a producer would send them, or records exported from a topic."""

    path: Path
    records: dict[int, list[Record]] = field(repr=False)
    exported: bool

    @property
    def width(self) -> int:
        """Numbers in an event, by the first that shows it. Raises `UsageError` when none does."""
        found = self._width()
        if found is None:
            raise UsageError(f"{self.path}: no event with an array x to count features by; give --config")
        return found

    def _width(self) -> int | None:
        for records in self.records.values():
            for record in records:
                document = _parsed(record.value)
                if isinstance(document.get("x"), list):
                    return len(document["x"])
                if document.get("score") is not None:
                    return 1
        return None

    def with_values(self, read: Callable[[bytes | None], bytes | None]) -> "LinesFile":
        """The same records with other values. Raises `UsageError` naming the record whose value cannot be read."""
        found: dict[int, list[Record]] = {}
        for partition, records in self.records.items():
            found[partition] = []
            for record in records:
                try:
                    found[partition].append(record._replace(value=read(record.value)))
                except UnknownSchema as error:
                    place = f"partition {partition}, offset {record.offset}"
                    raise UsageError(f"{self.path}: the event at {place} is written with {error}") from None
        return replace(self, records=found)

    def columns(self, events: EventConfig) -> str | None:
        """Lines name their fields themselves."""
        return None

    def source(self, events: EventConfig, topic: str, partitions: int = 1, delay: int = 0) -> Source:
        """The records as they are in `topic`; events without a partition go where `npstream produce` would send them.

        Raises `UsageError` when the settings ask for another width, or the file cannot be spread or delayed.
        """
        found = self._width() if events.mapping is None else None
        if found is not None and found != events.width:
            raise files.wrong_width(self.path, found, events)
        if delay:
            raise UsageError(f"{self.path}: labels come when its lines say so; --delay is for data sets")
        if partitions == 1:
            return RecordSource(self.records, topic)
        if self.exported:
            raise UsageError(f"{self.path}: exported records keep their partitions; leave --partitions out")
        return RecordSource(_spread(self.records[0], partitions, events.id), topic)


EventFile = RowsFile | LinesFile


def open_file(path: Path, label: str | None = None) -> EventFile:
    """A file by its ending; `label` names a table's column. Raises `UsageError` naming it and what is wrong with it."""
    if path.suffix != ".jsonl":
        files.check(path)
        return RowsFile(path, label)
    refuse_label(path, label)
    lines = read_lines(path)
    return LinesFile(path, lines.by_partition(), lines.exported)


def _parsed(value: bytes | None) -> dict[str, Any]:
    try:
        document = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _spread(records: list[Record], partitions: int, path: str) -> dict[int, list[Record]]:
    """By the hash of the id, so that an event and its label meet; offsets count within each partition."""
    spread: dict[int, list[Record]] = {p: [] for p in range(partitions)}
    for number, record in enumerate(records):
        found = spread[partition_for(event_key(record.value, number, path), partitions)]
        found.append(record._replace(offset=len(found)))
    return {partition: found for partition, found in spread.items() if found}
