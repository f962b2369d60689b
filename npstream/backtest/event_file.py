"""A file as a stream: rows of a data set, lines of events, or an export of a topic. Read once, replayed often."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from npstream import client, files
from npstream.backtest.lines import read_lines
from npstream.backtest.messages import event_key
from npstream.backtest.source import ArraySource, RecordSource, Source
from npstream.errors import UsageError
from npstream.records import Record


@dataclass(frozen=True, slots=True)
class RowsFile:
    """Rows of features with a label each."""

    path: Path
    x: NDArray[np.float32] = field(repr=False)
    y: NDArray[np.int8] = field(repr=False)

    @property
    def width(self) -> int:
        """Numbers in an event."""
        return int(self.x.shape[1])

    def source(self, width: int, topic: str, partitions: int = 1, delay: int = 0) -> Source:
        """The rows dealt to partitions of `topic` in turn, their labels `delay` rows later.

        Raises `UsageError` when the settings ask for another width.
        """
        _check_width(self.path, self.width, width)
        return ArraySource(self.x, self.y, partitions, delay, topic=topic)


@dataclass(frozen=True, slots=True)
class LinesFile:
    """JSON lines: events as a producer would send them, or records exported from a topic."""

    path: Path
    records: dict[int, list[Record]] = field(repr=False)
    exported: bool

    @property
    def width(self) -> int:
        """Numbers in an event, by the first that tells. Raises `UsageError` when none does."""
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

    def source(self, width: int, topic: str, partitions: int = 1, delay: int = 0) -> Source:
        """The records as they are in `topic`; events without a partition go where `npstream produce` would send them.

        Raises `UsageError` when the settings ask for another width, or the file cannot be spread or delayed.
        """
        found = self._width()
        if found is not None:
            _check_width(self.path, found, width)
        if delay:
            raise UsageError(f"{self.path}: labels come when its lines say so; --delay is for data sets")
        if partitions == 1:
            return RecordSource(self.records, topic)
        if self.exported:
            raise UsageError(f"{self.path}: exported records keep their partitions; leave --partitions out")
        return RecordSource(_spread(self.records[0], partitions), topic)


EventFile = RowsFile | LinesFile


def open_file(path: Path) -> EventFile:
    """Read a file by its ending. Raises `UsageError` naming it and what is wrong with it."""
    if path.suffix != ".jsonl":
        return RowsFile(path, *files.read(path))
    lines = read_lines(path)
    return LinesFile(path, lines.by_partition(), lines.exported)


def _check_width(path: Path, found: int, expected: int) -> None:
    if found != expected:
        raise UsageError(f"{path}: has {found} features, the settings say {expected} (model.d)")


def _parsed(value: bytes | None) -> dict[str, Any]:
    try:
        document = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _spread(records: list[Record], partitions: int) -> dict[int, list[Record]]:
    """By the hash of the id, so that an event and its label meet; offsets count within each partition."""
    spread: dict[int, list[Record]] = {p: [] for p in range(partitions)}
    for number, record in enumerate(records):
        found = spread[client.partition_for(event_key(record.value, number), partitions)]
        found.append(record._replace(offset=len(found)))
    return {partition: found for partition, found in spread.items() if found}
