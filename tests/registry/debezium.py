"""The payments as Debezium sends the rows of a table: each in an envelope that says what happened to the row."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tests.registry.payments import AVRO, EVENTS, FEATURES, PROTOBUF, Write, plain
from tests.registry.protos import message_classes
from tests.registry.values import avro_writer, register

_KINDS = ("number", "category", "flag", "time")


def _below(feature: Mapping[str, Any]) -> dict[str, Any]:
    return {name: f"after.{value}" if name in _KINDS else value for name, value in feature.items()}


ENVELOPED: dict[str, Any] = {
    "id": f"after.{EVENTS['id']}",
    "label": {**EVENTS["label"], "path": f"after.{EVENTS['label']['path']}"},
    "features": {name: _below(feature) for name, feature in FEATURES.items()},
}
"""`events` of the settings: the paths of the payments, below the row after the change."""


def _envelope(payment: Any) -> dict[str, Any]:
    """A row that was just inserted."""
    return {"before": None, "after": payment, "source": {"table": "payments"}, "op": "c", "ts_ms": 1_777_600_000_000}


def _json_writer(registry: str, topic: str) -> Write:
    return lambda payment, _: json.dumps(_envelope(plain(payment))).encode()


def _avro_writer(registry: str, topic: str) -> Write:
    writers = [avro_writer(registry, topic, _avro(schema)) for schema in AVRO]
    return lambda payment, version: writers[version](_envelope(payment))


def _avro(row: Mapping[str, Any]) -> dict[str, Any]:
    source = {"type": "record", "name": "Source", "fields": [{"name": "table", "type": "string"}]}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "shop.Payment"], "default": None},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
    }


_PROTO = """
message Envelope {
  message Source { string table = 1; }
  Payment before = 1;
  Payment after = 2;
  Source source = 3;
  string op = 4;
  int64 ts_ms = 5;
}
"""
_SECOND_MESSAGE = b"\x02\x02"
"""Which message of the file a value is: a path of length 1, to the message with index 1."""


def _protobuf_writer(registry: str, topic: str) -> Write:
    identities = [register(registry, f"{topic}-value", text + _PROTO, "PROTOBUF") for text in PROTOBUF]

    def write(payment: dict[str, Any], version: int) -> bytes:
        fields = {name: value for name, value in payment.items() if value is not None}
        envelope = _envelope(fields | {"amount": float(payment["amount"])})
        message = _protobuf_class(version)(**{name: part for name, part in envelope.items() if part is not None})
        return b"\0" + identities[version].to_bytes(4) + _SECOND_MESSAGE + bytes(message.SerializeToString())

    return write


@cache
def _protobuf_class(version: int) -> Any:
    return message_classes({"envelope.proto": PROTOBUF[version] + _PROTO})[f"shop{version + 1}.Envelope"]


ENVELOPE_WRITERS: Mapping[str, Callable[[str, str], Write]] = {
    "json": _json_writer,
    "avro": _avro_writer,
    "protobuf": _protobuf_writer,
}
