"""Exported events: one JSON object a line, with everything a replay needs to give the live decisions again.

    {"partition":0,"offset":12,"timestamp":1767225600000,"key":"order-17","value":"{\\"id\\": ...}"}

`headers` ([[name, value], ...]) is there when the record had any. Bytes that
are not UTF-8 are given as {"base64": "..."}. A line without `value` is taken as
an event of its own, as a producer would send it.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from npstream.errors import UsageError
from npstream.records import Record


def to_line(partition: int, record: Record) -> bytes:
    """One line, newline included."""
    line: dict[str, Any] = {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
    }
    if record.headers:
        line["headers"] = [[name, _text(content)] for name, content in record.headers]
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def read_lines(path: Path) -> list[Record]:
    """All records of a file, whatever their partition. Raises `UsageError` naming the line that is wrong."""
    return [record for _, record in _numbered(path)]


def read_partitions(path: Path) -> dict[int, list[Record]]:
    """Records by partition, in the order of the file."""
    found: dict[int, list[Record]] = {}
    for partition, record in _numbered(path):
        found.setdefault(partition, []).append(record)
    return found


def _numbered(path: Path) -> Iterator[tuple[int, Record]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    if not any(line.strip() for line in lines):
        raise UsageError(f"{path}: is empty")
    count = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _record(path, number, line, count)
            count += 1


def _record(path: Path, number: int, line: bytes, count: int) -> tuple[int, Record]:
    try:
        document = orjson.loads(line)
        if "value" not in document:
            return 0, Record(count, count + 1, None, line, ())
        headers = tuple((name, _bytes(content)) for name, content in document.get("headers", ()))
        key, value = _bytes(document.get("key")), _bytes(document["value"])
        record = Record(int(document["offset"]), int(document["timestamp"]), key, value, headers)
        return int(document["partition"]), record
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}, line {number}: is neither an event nor an exported record ({error})") from None


def _text(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def _bytes(content: Any) -> bytes | None:
    if content is None:
        return None
    return b64decode(content["base64"], validate=True) if isinstance(content, dict) else content.encode()
