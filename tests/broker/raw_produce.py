"""One record written with a raw produce request: what Kafka allows and no client library would send."""

import socket
import struct
from collections.abc import Sequence

_PRODUCE, _PRODUCE_VERSION = 0, 3
_TIMEOUT_S = 30.0


def produce_raw(
    bootstrap: str,
    topic: str,
    partition: int,
    value: bytes,
    headers: Sequence[tuple[bytes, bytes]] = (),
    key: bytes | None = None,
    timestamp_ms: int = 1,
) -> int:
    """Append the record to a partition that the broker at `bootstrap` leads; returns its offset."""
    batch = _batch(_record(key, value, headers), timestamp_ms)
    body = b"".join(
        (
            struct.pack(">hhi", -1, -1, 30_000),  # no transactional id, all replicas, ms
            struct.pack(">i", 1) + _string(topic.encode()),
            struct.pack(">ii", 1, partition),
            struct.pack(">i", len(batch)) + batch,
        )
    )
    request = struct.pack(">hhi", _PRODUCE, _PRODUCE_VERSION, 1) + _string(b"raw") + body
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _exactly(connection, 4))
        response = _exactly(connection, size)
    at = 4 + 4 + 2 + len(topic.encode()) + 4 + 4  # correlation, topics, name, partitions, partition
    error, offset = struct.unpack_from(">hq", response, at)
    assert error == 0, f"the broker refused the record with error {error}"
    return int(offset)


def _record(key: bytes | None, value: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    parts = [b"\0", _varint(0), _varint(0)]  # attributes, timestamp delta, offset delta
    parts += (_varint(-1),) if key is None else (_varint(len(key)), key)
    parts += (_varint(len(value)), value, _varint(len(headers)))
    for name, content in headers:
        parts += (_varint(len(name)), name, _varint(len(content)), content)
    body = b"".join(parts)
    return _varint(len(body)) + body


def _batch(record: bytes, timestamp_ms: int) -> bytes:
    """A record batch of version 2 with one record, uncompressed, of no producer in particular."""
    checked = struct.pack(">hiqqqhii", 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1) + record
    head = struct.pack(">ibI", -1, 2, crc32c(checked))  # leader epoch, magic
    return struct.pack(">qi", 0, len(head) + len(checked)) + head + checked


def _string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def _varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _exactly(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        part = connection.recv(size - len(got))
        assert part, "the broker closed the connection: it could not read the request"
        got += part
    return got


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum, which the standard library does not have."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _entry(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value


_TABLE = [_entry(value) for value in range(256)]
