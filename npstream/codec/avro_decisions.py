"""A decision's fields to Avro and back, by one schema of our own, so that no library is needed for either.

In a registry's wire format: a zero byte, the id that the schema was registered
under, then the fields in the order of the schema. An integer id beyond 64 bits
with a sign is published as text.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson

from npstream.arrays import Floats
from npstream.codec.decision_columns import DecisionColumns
from npstream.codec.event import EventId

_MAYBE_NUMBER = ["null", "double"]


def avro_schema(reasons: Sequence[str]) -> str:
    """The schema of decisions, as JSON text; `reasons` are the words of a reason by its number."""
    types = {
        "id": ["string", "long"],
        "decision": "int",
        "reason": {"type": "enum", "name": "Reason", "symbols": [*reasons]},
        "score": _MAYBE_NUMBER,
        "threshold": _MAYBE_NUMBER,
        "tau": "double",
        "gamma": _MAYBE_NUMBER,
        "fpr": _MAYBE_NUMBER,
        "t": "long",
        "model": "string",
    }
    fields: list[dict[str, object]] = [{"name": name, "type": kind} for name, kind in types.items()]
    fields.append({"name": "review_probability", "type": _MAYBE_NUMBER, "default": None})
    fields.append({"name": "tier", "type": ["null", "string"], "default": None})
    shares = [{"name": "feature", "type": "string"}, {"name": "contribution", "type": "double"}]
    listed = {"type": "array", "items": {"type": "record", "name": "Contribution", "fields": shares}}
    fields.append({"name": "reasons", "type": listed, "default": []})
    return orjson.dumps({"type": "record", "name": "Decision", "namespace": "npstream", "fields": fields}).decode()


def encode_avro(columns: DecisionColumns, schema: int) -> list[bytes]:
    """The value of each decision."""
    frame, tau, model = b"\0" + schema.to_bytes(4), struct.pack("<d", columns.tau), _text(columns.model)
    rows = zip(
        columns.ids,
        columns.decision.tolist(),
        columns.reason.tolist(),
        _numbers(columns.score),
        _numbers(columns.threshold),
        _numbers(columns.gamma),
        _numbers(columns.fpr),
        columns.t.tolist(),
        strict=True,
    )
    asks = (b"\0", b"\2" + struct.pack("<d", columns.review))
    reviewed = columns.reviewed
    tiers = [b"\0", *(b"\2" + _text(name) for name in columns.tiers)]
    reached = [tiers[depth if columns.tiers else 0] for depth in columns.depth.tolist()]
    behind = zip(reached, _reasons(columns), strict=True)
    ends = [asks[row in reviewed] + tier + reasons for row, (tier, reasons) in enumerate(behind)]
    return [
        b"".join((frame, avro_id(i), _long(d), _long(r), s, h, tau, g, f, _long(n), model, end))
        for (i, d, r, s, h, g, f, n), end in zip(rows, ends, strict=True)
    ]


def _reasons(columns: DecisionColumns) -> list[bytes]:
    """An array of as many items as there are, and its end; the end alone where there are none."""
    found = [b"\0"] * len(columns.ids)
    for row, reasons in columns.reasons():
        items = [_text(feature) + struct.pack("<d", moved) for feature, moved in reasons]
        found[row] = b"".join((_long(len(items)), *items, b"\0"))
    return found


def _numbers(column: Floats) -> Iterator[bytes]:
    raw = column.astype("<f8").tobytes()
    for at, exists in enumerate(np.isfinite(column).tolist()):
        yield b"\2" + raw[8 * at : 8 * at + 8] if exists else b"\0"


def avro_id(identity: EventId) -> bytes:
    """An id as a decision in Avro begins, behind its frame."""
    if isinstance(identity, str):
        return b"\0" + _text(identity)
    return b"\2" + _long(identity) if -(2**63) <= identity < 2**63 else b"\0" + _text(str(identity))


def _text(text: str) -> bytes:
    content = text.encode()
    return _long(len(content)) + content


def _long(number: int) -> bytes:
    rest = number << 1 if number >= 0 else (-number << 1) - 1  # zigzag: small numbers of either sign are short
    if rest < 0x80:
        return bytes((rest,))
    found = bytearray()
    while rest >= 0x80:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def decode_fields(value: bytes) -> dict[str, Any]:
    """The fields of one decision, the reason by its number. Raises ValueError when the bytes are not one."""
    try:
        source = _Source(value, at=5)
        found: dict[str, Any] = {
            "id": source.text() if source.long() == 0 else source.long(),
            "decision": source.long(),
            "reason": source.long(),
            "score": source.maybe(),
            "threshold": source.maybe(),
            "tau": source.double(),
            "gamma": source.maybe(),
            "fpr": source.maybe(),
            "t": source.long(),
            "model": source.text(),
        }
        review = source.maybe()
        if review is not None:
            found |= {"review": True, "review_probability": review}
        if source.long():
            found["tier"] = source.text()
        reasons = source.reasons()
        if reasons:
            found["reasons"] = reasons
    except (IndexError, struct.error, UnicodeDecodeError):
        raise ValueError("the bytes end too soon, or are not those of the schema") from None
    if source.at != len(value):
        raise ValueError("bytes are left over")
    return found


class _Source:
    """Bytes, read from the front."""

    def __init__(self, value: bytes, at: int) -> None:
        self._value = value
        self.at = at

    def long(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._value[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
        raise ValueError("a number too long")

    def text(self) -> str:
        size = self.long()
        content = self._value[self.at : self.at + size] if size >= 0 else b""
        if len(content) != size:
            raise IndexError(size)
        self.at += size
        return content.decode()

    def double(self) -> float:
        (number,) = struct.unpack_from("<d", self._value, self.at)
        self.at += 8
        return float(number)

    def reasons(self) -> list[dict[str, str | float]]:
        found: list[dict[str, str | float]] = []
        while (items := self.long()) > 0:
            found += [{"feature": self.text(), "contribution": self.double()} for _ in range(items)]
        if items < 0:
            raise ValueError("reasons in blocks with sizes, as npstream never writes them")
        return found

    def maybe(self) -> float | None:
        return self.double() if self.long() else None
