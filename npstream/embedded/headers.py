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
    """The headers of a blob, in order. Raises ValueError for what `encode_headers` did not write."""
    if blob is None:
        return ()
    headers: list[tuple[str, bytes | None]] = []
    at = 0
    try:
        while at < len(blob):
            (length,) = _KEY.unpack_from(blob, at)
            at += _KEY.size + length
            name = blob[at - length : at].decode()
            (length,) = _VALUE.unpack_from(blob, at)
            at += _VALUE.size + max(length, 0)
            headers.append((name, None if length < 0 else blob[at - length : at]))
    except struct.error as error:
        raise ValueError(str(error)) from error
    if at != len(blob):
        raise ValueError("the last one is cut off")
    return headers
