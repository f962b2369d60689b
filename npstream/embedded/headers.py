"""Record headers as one blob: for each, key length, key, value length (-1 for none), value."""

import struct

from npstream.records import Headers

_KEY = struct.Struct("<H")
_VALUE = struct.Struct("<i")


def encode_headers(headers: Headers) -> bytes | None:
    """The blob of these headers, None when there are none."""
    if not headers:
        return None
    parts: list[bytes] = []
    for name, value in headers:
        key = name.encode()
        parts += (_KEY.pack(len(key)), key)
        parts += (_VALUE.pack(-1),) if value is None else (_VALUE.pack(len(value)), value)
    return b"".join(parts)


def decode_headers(blob: bytes | None) -> Headers:
    """The headers of a blob, in order."""
    if blob is None:
        return ()
    headers: list[tuple[str, bytes | None]] = []
    at = 0
    while at < len(blob):
        (length,) = _KEY.unpack_from(blob, at)
        at += _KEY.size
        name = blob[at : at + length].decode()
        at += length
        (length,) = _VALUE.unpack_from(blob, at)
        at += _VALUE.size
        headers.append((name, None if length < 0 else blob[at : at + length]))
        at += max(length, 0)
    return headers
