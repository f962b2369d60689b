"""Exported events: one JSON object per line, with everything a replay needs to give the live decisions again.

    {"partition":0,"offset":12,"timestamp":1767225600000,"key":"order-17","value":"{\\"id\\": ...}"}

`headers` ([[name, value], ...]) is there when the record had any. Bytes that
are not UTF-8 are given as {"base64": "..."}. Lines of a file in which none is
such a record are events of their own, as a producer would send them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from npstream.codec.features import steps_of
from npstream.codec.mapping import find
from npstream.codec.text import bytes_of, text_of
from npstream.errors import UsageError
from npstream.records import UNREADABLE_HEADERS, Headers, Record


def to_line(partition: int, record: Record) -> bytes:
    """One line, newline included."""
    line: dict[str, Any] = {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": text_of(record.key),
        "value": text_of(record.value),
    }
    if record.headers:
        line["headers"] = [[name, text_of(content)] for name, content in record.headers]
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class Lines:
    """The records of a file in its order, each with its partition; plain events all have partition 0."""

    records: list[tuple[int, Record]]
    exported: bool

    def by_partition(self) -> dict[int, list[Record]]:
        """The same records, partition by partition."""
        found: dict[int, list[Record]] = {}
        for partition, record in self.records:
            found.setdefault(partition, []).append(record)
        return found


def read_lines(path: Path) -> Lines:
    """All records of a file. Raises `UsageError` naming the line that is wrong."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    given = [(number, line, _parsed(path, number, line)) for number, line in enumerate(lines, 1) if line.strip()]
    if not given:
        raise UsageError(f"{path}: is empty")
    if not any(_is_exported(document) for _, _, document in given):
        plain = [(0, Record(count, count + 1, None, line, ())) for count, (_, line, _) in enumerate(given)]
        return Lines(plain, exported=False)
    return Lines(_exported(path, [(number, document) for number, _, document in given]), exported=True)


def read_events(path: Path) -> list[Record]:
    """The events of a file of lines, or the one JSON document that a file is. Raises `UsageError`."""
    if path.suffix == ".jsonl":
        return [record for _, record in read_lines(path).records]
    try:
        return [Record(0, 1, None, path.read_bytes(), ())]
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None


def _parsed(path: Path, number: int, line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path}, line {number}: is not JSON ({error})") from None


def _is_exported(document: Any) -> bool:
    return isinstance(document, dict) and {"partition", "offset", "value"} <= document.keys()


def _exported(path: Path, given: list[tuple[int, Any]]) -> list[tuple[int, Record]]:
    records: list[tuple[int, Record]] = []
    reached: dict[int, int] = {}
    for number, document in given:
        try:
            partition, record = _record(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"{path}, line {number}: is not an exported record ({error!r})") from None
        if min(partition, record.offset) < 0 or record.offset <= reached.get(partition, -1):
            raise UsageError(
                f"{path}, line {number}: offset {record.offset} of partition {partition} does not follow the one "
                "before it; sort the export by partition and offset"
            )
        reached[partition] = record.offset
        records.append((partition, record))
    return records


def _record(document: Any) -> tuple[int, Record]:
    headers: Headers = tuple((name, bytes_of(content)) for name, content in document.get("headers", ()))
    if headers == tuple(UNREADABLE_HEADERS):
        headers = UNREADABLE_HEADERS
    key, value = bytes_of(document.get("key")), bytes_of(document["value"])
    return int(document["partition"]), Record(int(document["offset"]), int(document["timestamp"]), key, value, headers)


def event_key(value: bytes | None, number: int, path: str = "id") -> bytes:
    """The id of an event, found at `path`, else its number: it spreads events, and brings a label to its own."""
    try:
        identity = find(orjson.loads(value or b""), steps_of(path))
    except orjson.JSONDecodeError:
        identity = None
    return str(number if identity is None else identity).encode()


def refuse_label(path: Path, label: str | None) -> None:
    """Raises `UsageError` when a label's column is named for a file of events."""
    if label is not None:
        raise UsageError(f"{path}: its lines say what is a label; --label is for tables")
