"""Events to measure with: eight features, a label, an id, in the shapes that topics have."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import orjson

from npstream.codec.decoder import EventConfig
from npstream.codec.features import Feature, LabelRule
from npstream.model import Params
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.records import Headers, Record
from npstream.registry.client import Schema
from npstream.registry.documents import DocumentReader

Shape = Literal["compact", "mapped", "delayed", "avro", "f32"]
"""`compact`: {"id":…,"x":[…],"y":…}; `mapped`: names of their own, with spaces, read by a mapping; `delayed`: compact,
the label in an event of its own a thousand observations later; `avro`: mapped, with a schema; `f32`: raw numbers."""

SHAPES: tuple[Shape, ...] = get_args(Shape)
D_FEATURES = 8
D_HIDDEN = 100
FIRST_MS = 1_700_000_000_000
LABEL_LAG = 1_000
"""Observations of a partition between one and its label."""

_NAMES = ("amount", "velocity", "device_score", "account_age", "balance", "ratio", "distance", "attempts")

_SCHEMA_ID = 1
_SCHEMA = Schema(
    "AVRO",
    json.dumps(
        {
            "type": "record",
            "name": "Payment",
            "fields": [
                {"name": "payment_id", "type": "string"},
                *({"name": name, "type": "double"} for name in _NAMES),
                {"name": "fraud", "type": "boolean"},
            ],
        }
    ),
)

Event = tuple[bytes, Headers]


def bench_config(shape: Shape) -> PartitionConfig:
    """The classifier that is measured: it learns from every event."""
    events: dict[str, Any] = {"format": shape if shape in ("f32", "avro") else "json"}
    if shape in ("mapped", "avro"):
        events["mapping"] = tuple(Feature(name=name, kind="number", path=name) for name in _NAMES)
        events["id"], events["label"] = "payment_id", LabelRule("fraud", (True,), (False,))
    params = Params(d=D_FEATURES, D=D_HIDDEN, tau=0.05)
    return PartitionConfig(params=params, events=EventConfig(d=D_FEATURES, **events))


def bench_events(count: int, shape: Shape, lanes: int = 1, seed: int = 0) -> list[Event]:
    """`count` events: targets lie shifted, a quarter of all. Event i goes to partition i modulo `lanes`."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(count) < 0.25, 1, -1)
    x = (rng.normal(size=(count, D_FEATURES)) + (y > 0)[:, None]).round(4)
    rows = list(zip(x.tolist(), y.tolist(), strict=True))
    if shape == "delayed":
        return _delayed(rows, lanes)
    if shape == "avro":
        return _avro(rows)
    return [_written(i, row, label, shape) for i, (row, label) in enumerate(rows)]


def _written(i: int, row: list[float], label: int, shape: Shape) -> Event:
    if shape == "f32":
        return np.array(row, "<f4").tobytes(), [("id", b"event-%d" % i), ("y", b"%d" % label)]
    if shape == "mapped":
        return json.dumps(_fields(i, row, label)).encode(), ()
    return orjson.dumps({"id": f"event-{i}", "x": row, "y": label}), ()


def _fields(i: int, row: list[float], label: int) -> dict[str, Any]:
    return {"payment_id": f"event-{i}", **dict(zip(_NAMES, row, strict=True)), "fraud": label > 0}


def _avro(rows: list[tuple[list[float], int]]) -> list[Event]:
    from npstream.registry.avro import compile_avro_writer  # an extra, which no other shape needs

    write, frame = compile_avro_writer(_SCHEMA), b"\0" + _SCHEMA_ID.to_bytes(4)
    return [(frame + write(_fields(i, row, label)), ()) for i, (row, label) in enumerate(rows)]


class OneSchema:
    """The schema of all Avro events here, without a server: a worker asks for each schema once."""

    url = "npstream bench"

    def schema(self, identity: int) -> Schema:
        """The one there is."""
        assert identity == _SCHEMA_ID
        return _SCHEMA

    def version(self, subject: str, version: int) -> Schema:
        """Nothing refers to another schema."""
        raise AssertionError(subject, version)


def schema_reader(config: PartitionConfig) -> DocumentReader | None:
    """What reads values before they are decoded, where a schema is needed."""
    return DocumentReader("avro", OneSchema(), config.events.max_bytes) if config.events.format == "avro" else None


def _delayed(rows: list[tuple[list[float], int]], lanes: int) -> list[Event]:
    """As many events as rows, every second one a label of an earlier event in the same partition."""
    found: list[Event] = [(b"", ())] * len(rows)
    for lane in range(lanes):
        places = range(lane, len(rows), lanes)
        for place, event in zip(places, _one_lane(rows, lane, lanes, len(places)), strict=True):
            found[place] = event
    return found


def _one_lane(rows: list[tuple[list[float], int]], lane: int, lanes: int, count: int) -> Iterator[Event]:
    observations, seen, labelled = count - count // 2, 0, 0
    for _ in range(count):
        if seen < observations and seen - labelled <= LABEL_LAG:
            yield orjson.dumps({"id": f"event-{lane}-{seen}", "x": rows[seen * lanes + lane][0]}), ()
            seen += 1
        else:
            yield orjson.dumps({"id": f"event-{lane}-{labelled}", "y": rows[labelled * lanes + lane][1]}), ()
            labelled += 1


def asking(events: Sequence[Event], shape: Shape) -> list[Event]:
    """The events that get a decision."""
    return [event for event in events if b'"x":' in event[0]] if shape == "delayed" else list(events)


def records_of(events: Sequence[Event], config: PartitionConfig) -> list[Record]:
    """The events as a worker reads them from one partition."""
    read = schema_reader(config)
    values = [value if read is None else read.read(value) for value, _ in events]
    return [Record(i, FIRST_MS + i, b"%d" % i, value, events[i][1]) for i, value in enumerate(values)]


def sample_decisions(events: Sequence[Event], config: PartitionConfig) -> list[bytes]:
    """The values a worker would publish for these events, for somebody who must write as much without thinking."""
    processor = PartitionProcessor.cold(config, "bench", "events", 0, 0, None)
    return [output.value or b"" for output in processor.process(records_of(events, config)).outputs]
