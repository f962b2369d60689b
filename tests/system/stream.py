"""The events of a run: observations, labels that come hundreds of events later, and what goes wrong in real streams."""

import uuid
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
import orjson

from npstream.codec.decoder import EventConfig
from npstream.codec.labels import LabelTopic
from npstream.model import Params
from npstream.partition import LabelConfig, PartitionConfig
from npstream.records import Headers

D = 4
FIRST_MS = 1_700_000_000_000

Plain = tuple[bytes | None, bytes | None, Headers, int]
"""Key, value, headers, timestamp: a record without its place in the log."""

_BAD = (
    b"",
    b"{not json",
    b"[1,2,3]",
    b'{"id":"b","x":[1,2],"y":1}',
    b'{"id":"b","x":[1,2,3,1e300],"y":-1}',
    b'{"id":"b","x":[1,2,3,4],"y":7}',
    b'{"y":1}',
    None,
)


def system_config(**changes: object) -> PartitionConfig:
    """A small model with a bounded wait for labels, deciding bad events that have an id, alarms with reasons."""
    fields: dict[str, object] = {
        "params": Params(d=D, D=16, tau=0.1),
        "events": EventConfig(d=D),
        "labels": LabelConfig(buffer_max=600, expire_events=1500),
        "on_bad_event": "-1",
        "reasons": 2,
        "dead_letter_cap": 0.5,
    }
    return PartitionConfig(**(fields | changes))  # type: ignore[arg-type]


def labelled_apart() -> PartitionConfig:
    """The same with labels on a topic of their own."""
    return system_config(label_topic=LabelTopic(f"labels-{uuid.uuid4().hex[:8]}"))


def late_observation(partition: int, number: int) -> Plain:
    """One more, after the stream."""
    value = orjson.dumps({"id": f"p{partition}-late-{number}", "x": [0.1 * number] * D})
    return b"late", value, [], FIRST_MS + 10**9 + number


def stream(count: int, seed: int, partition: int) -> list[Plain]:
    """`count` events of one partition.

    Every second observation gets its label 100 to 700 events later, some twice,
    some never, some after they have been given up; a fifth of the events bring
    their label along; one in fifty is bad. Timestamps go back now and then.
    """
    rng = np.random.default_rng((seed, partition))
    waiting: list[tuple[int, int, str]] = []
    events: list[Plain] = []
    for number in range(count):
        if waiting and waiting[0][0] <= number:
            _, y, identity = heappop(waiting)
            value: bytes | None = orjson.dumps({"id": identity, "y": y})
        else:
            value = _observation(rng, number, partition, waiting)
        headers: Headers = [("traceparent", b"00-%032x" % number)] if number % 7 == 0 else []
        timestamp_ms = FIRST_MS + 10 * number - int(rng.integers(0, 50))
        events.append((b"k%d" % (number % 97), value, headers, timestamp_ms))
    return events


def _observation(
    rng: np.random.Generator, number: int, partition: int, waiting: list[tuple[int, int, str]]
) -> bytes | None:
    roll = rng.random()
    if roll < 0.02:
        return _BAD[int(rng.integers(len(_BAD)))]
    y = 1 if rng.random() < 0.3 else -1
    identity = f"p{partition}-{number}"
    x = [round(float(value), 5) for value in rng.normal(1.0 if y > 0 else 0.0, 1.0, D)]
    if roll < 0.22:
        return orjson.dumps({"x": x, "y": y})
    if roll < 0.90:
        heappush(waiting, (number + int(rng.integers(100, 700)), y, identity))
    if roll < 0.25:
        heappush(waiting, (number + int(rng.integers(700, 2500)), y, identity))
    return orjson.dumps({"id": identity, "x": x})


def is_label(event: Plain) -> bool:
    """Whether this is a label alone, a bad one included: where labels have a topic, it goes there."""
    value = event[1]
    return value is not None and b'"y":' in value and b'"x":' not in value


def interleaved(streams: Sequence[Sequence[Plain]]) -> list[tuple[int, Plain]]:
    """The streams of all partitions, one event of each in turn, with the partition's number."""
    return [(partition, event) for row in zip(*streams, strict=True) for partition, event in enumerate(row)]
