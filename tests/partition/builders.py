"""Small builders for partition tests: records of a seeded stream, and a processor to give them to."""

import numpy as np
import orjson

from npstream.codec.decoder import EventConfig
from npstream.codec.labels import LabelTopic
from npstream.model import Params
from npstream.partition import LabelConfig, PartitionConfig, PartitionProcessor
from npstream.records import Record

D = 3


def config(**changes: object) -> PartitionConfig:
    """Small model, short buffer; `changes` are fields of `PartitionConfig`."""
    fields: dict[str, object] = {
        "params": Params(d=D, D=8, tau=0.1, budget=5.0),
        "events": EventConfig(d=D),
        "labels": LabelConfig(buffer_max=50, expire_events=200),
    }
    return PartitionConfig(**(fields | changes))  # type: ignore[arg-type]


def processor(using: PartitionConfig | None = None, partition: int = 0) -> PartitionProcessor:
    """A cold processor of group g, topic events."""
    return PartitionProcessor.cold(using or config(), "g", "events", partition, 0, None)


def record(offset: int, value: object, timestamp_ms: int | None = None) -> Record:
    """One record; a value that is not bytes becomes JSON."""
    data = value if isinstance(value, bytes) or value is None else orjson.dumps(value)
    return Record(offset, 1_000 + 10 * offset if timestamp_ms is None else timestamp_ms, b"k%d" % offset, data, ())


def point(rng: np.random.Generator, y: int) -> list[float]:
    """Features of one event: targets lie shifted."""
    return [round(float(value), 4) for value in rng.normal(0.8 if y > 0 else 0.0, 1.0, D)]


def labelled(n: int, seed: int = 0) -> list[Record]:
    """Events that bring their label."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.3, 1, -1)
    return [record(i, {"id": i, "x": point(rng, int(y)), "y": int(y)}) for i, y in enumerate(labels)]


def mixed(n: int, seed: int = 0) -> list[Record]:
    """A stream of everything: late, early, repeated, echoed and missing labels, bad events, gaps in offsets."""
    rng = np.random.default_rng(seed)
    records: list[Record] = []
    waiting: list[tuple[str, int, list[float]]] = []
    offset = 0
    while len(records) < n:
        offset += int(rng.integers(1, 3))
        roll = rng.random()
        y = 1 if rng.random() < 0.3 else -1
        identity = f"e{offset}"
        x = point(rng, y)
        if roll < 0.35:
            value: object = {"id": identity, "x": x}
            waiting.append((identity, y, x))
        elif roll < 0.5:
            value = {"x": x, "y": y}
        elif roll < 0.75 and waiting:
            identity, y, x = waiting.pop(int(rng.integers(len(waiting))))
            value = {"id": identity, "y": y}
        elif roll < 0.8 and waiting:
            identity, y, x = waiting[-1]
            value = {"id": identity, "x": x, "y": y, "kind": "label"}
        elif roll < 0.85:
            value = {"id": f"e{offset + 3}", "y": y}
        elif roll < 0.9:
            value = {"id": f"e{max(1, offset - 400)}", "y": y}
        elif roll < 0.95:
            value = b"not json"
        else:
            value = {"id": identity, "x": [1, 2], "y": y}
        records.append(record(offset, value))
    return records


def overruled(n: int, seed: int = 0) -> list[Record]:
    """A stream of everything in which many labels come again later: most the other way round, some unchanged."""
    rng = np.random.default_rng((seed, 3))
    values: list[tuple[float, object]] = []
    for at, item in enumerate(mixed(n, seed)):
        found = orjson.loads(item.value or b"{}") if item.value != b"not json" else {}
        if rng.random() < 0.5 and "x" in found and "y" in found:
            found["id"] = f"named{at}"
        values.append((at, item.value if item.value == b"not json" else found))
        for _ in range(int(rng.integers(3)) if "id" in found and "y" in found else 0):
            values.append((at + rng.exponential(60), {"id": found["id"], "y": int(rng.choice([1, -1]))}))
    values.sort(key=lambda pair: pair[0])
    return [record(at, value) for at, (_, value) in enumerate(values)]


def split(records: list[Record], size: int) -> list[list[Record]]:
    """The same records in batches of `size`."""
    return [records[at : at + size] for at in range(0, len(records), size)]


def with_labels_topic(**changes: object) -> PartitionConfig:
    """The same, its labels on a topic of their own."""
    return config(**({"label_topic": LabelTopic("labels")} | changes))


def two_topics(n: int, seed: int = 0) -> tuple[list[Record], list[Record]]:
    """A stream of everything, and a labels topic: late, early, repeated and unknown labels, and bad ones.

    Offsets count from 0 in both, without gaps. Labels come some time after their events.
    """
    rng = np.random.default_rng((seed, 2))
    events = [item._replace(offset=at, timestamp_ms=1_000 + 10 * at) for at, item in enumerate(mixed(n, seed))]
    values: list[tuple[int, object]] = []
    for item in events:
        found = orjson.loads(item.value or b"{}") if item.value != b"not json" else {}
        roll = rng.random()
        if "x" in found and "y" not in found and roll < 0.7:
            at = item.timestamp_ms + int(rng.integers(-30, 1500))
            values += [(at, {"id": found["id"], "y": int(rng.choice([1, -1]))})] * (1 + (roll < 0.05))
        elif roll < 0.05:
            values.append(
                (item.timestamp_ms, [b"no json", {"id": "q"}, {"y": 1}, {"id": "q", "y": 9}][int(rng.integers(4))])
            )
    values.sort(key=lambda pair: pair[0])
    return events, [record(at, value, moment) for at, (moment, value) in enumerate(values)]
